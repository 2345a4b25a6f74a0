"""A sample of reports: rows that stand for one report each, or for any number of equal reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldprecover import counting
from ldprecover.counting.tiles import tiles
from ldprecover.protocols import FrequencyOracle
from ldprecover.protocols.oracle import ALL_ITEMS, Items
from ldprecover.reports.tally import Tally
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

Lines = NDArray[Any]
"""Rows of bits of a sample's reports: bits of single reports are packed, eight a byte."""

Drawn = BoolArray | Int64Array
"""Whether each row is drawn; for rows of several equal reports, how many of them."""

_TESTS = 1 << 22  # hashes of a block of reports
_TILE = 1 << 21  # products of multiplicities and bits in memory


@dataclass(frozen=True, eq=False)
class Sample:
    """Checked reports of an oracle: row i stands for `multiplicities[i]` equal reports.

    Without multiplicities a row is one report. `first` is the index of a block's first row among
    all rows of its source. Counts are the same to the bit for rows of single
    reports and for distinct reports with multiplicities, of fewer than 2^53 reports.
    """

    oracle: FrequencyOracle
    reports: Reports
    multiplicities: Int64Array | None = None
    first: int = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.reports)

    def __getitem__(self, rows: BoolArray | slice) -> Sample:
        """Return the sample of some rows."""
        multiplicities = None if self.multiplicities is None else self.multiplicities[rows]
        return replace(self, reports=self.reports[rows], multiplicities=multiplicities)

    @property
    def n(self) -> int:
        """The number of reports."""
        return len(self) if self.multiplicities is None else int(self.multiplicities.sum())

    def tally(self) -> Tally:
        """Return the tally of the reports."""
        if self.multiplicities is None:
            return Tally(self.oracle.summarise(self.reports), len(self))
        summary = np.zeros(self.oracle.summary_size, np.int64)
        summary[self.reports] = self.multiplicities
        return Tally(summary, self.n)

    def draw(self, rate: float, rng: np.random.Generator) -> Drawn:
        """Return which rows are drawn, or of how many reports, each report at this `rate`.

        Of equal reports the number is binomial, one draw a row.
        """
        if self.multiplicities is None:
            return rng.random(len(self)) < rate
        return rng.binomial(self.multiplicities, rate)

    def split(self, chosen: Drawn) -> tuple[Sample, Sample]:
        """Return the sample of the reports that `draw` chose, and that of the others."""
        if self.multiplicities is None:
            rows = chosen.astype(np.bool_, copy=False)
            return self[rows], self[~rows]
        numbers = np.asarray(chosen, np.int64)
        rest = self.multiplicities - numbers
        return replace(self, multiplicities=numbers), replace(self, multiplicities=rest)

    def supports(self, items: Items = ALL_ITEMS) -> BoolArray:
        """Return whether each row supports each item, (rows, items)."""
        return self.oracle.supports(self.reports, items)

    def sizes(self) -> Int64Array:
        """Return how many items each row supports."""
        return self.oracle.support_sizes(self.reports)

    def bincount(self, values: Int64Array, minlength: int) -> Int64Array:
        """Return how many reports have each value; `values` has one for each row."""
        if self.multiplicities is None:
            return np.bincount(values, minlength=minlength)
        # Floats add integers exactly below 2^53.
        sums = np.bincount(values, self.multiplicities, minlength)
        return np.asarray(np.rint(sums), np.int64)

    def size_counts(self) -> Int64Array:
        """Return how many reports support k items, k = 0..d."""
        return self.bincount(self.sizes(), self.oracle.domain_size + 1)

    def lines(self, bits: BoolArray) -> Lines:
        """Return bits of the rows, (m, rows), for `joint` and `count`; `&` combines lines."""
        return counting.packed_lines(bits) if self.multiplicities is None else bits

    def joint(self, first: Lines, second: Lines) -> Int64Array:
        """Return how many reports have both bits, for each pair of a line of either kind."""
        if self.multiplicities is None:
            return counting.joint_counts(first, second)
        counts = np.zeros((len(first), len(second)))
        for tile in tiles((len(self), max(counts.shape)), _TILE):
            weighted = first[:, tile] * self.multiplicities[tile].astype(np.float64)
            counts += weighted @ second[:, tile].T.astype(np.float64)
        return counts.astype(np.int64)

    def count(self, lines: Lines) -> Int64Array:
        """Return how many reports have the bit of each line."""
        if self.multiplicities is None:
            return np.bitwise_count(lines).sum(axis=1, dtype=np.int64)
        return lines @ self.multiplicities

    def pair_counts(self, items: Int64Array) -> Int64Array:
        """Return how many reports support both of two items, as (m + 1, m + 1).

        Row and column i stand for items[i]; the last ones stand for no condition.
        """
        counts = np.empty((items.size + 1, items.size + 1), np.int64)
        lines = self.lines(self.supports(items).T)
        counts[:-1, :-1] = self.joint(lines, lines)
        counts[:-1, -1] = counts[-1, :-1] = counts[:-1, :-1].diagonal()
        counts[-1, -1] = self.n
        return counts

    def subset_counts(self, subsets: BoolArray) -> Int64Array:
        """Return the support counts of s subsets of the rows, (s, d).

        Row i of `subsets`, (s, rows), selects the rows of subset i. Subsets may overlap; where
        counting hashes, each report is hashed once.
        """
        oracle, d = self.oracle, self.oracle.domain_size
        counts = np.zeros((len(subsets), d), np.int64)
        if not oracle.hash_tests:
            counts[:] = [self[chosen].tally().counts(oracle) for chosen in subsets]
            return counts
        for part in tiles((len(self), d), _TESTS):
            sample = self[part]
            supports = sample.lines(sample.supports().T)
            counts += sample.joint(sample.lines(subsets[:, part]), supports)
        return counts

    def support_sums(self, weights: FloatArray) -> tuple[FloatArray, float]:
        """Return the sum of the weights of the reports that support each item, and of all.

        Row i stands for reports of weight `weights[i]`.
        """
        if self.multiplicities is not None:
            weights = weights * self.multiplicities
        sums = self.oracle.laws.report_sums
        if sums is None:
            of_items = weights @ self.supports().astype(np.float64)
        else:
            of_items = sums.counts(np.bincount(self.reports, weights, sums.number).astype(float))
        return of_items, float(weights.sum())


def combinations(bits: BoolArray) -> Int64Array:
    """Return each row of up to 24 bits as one number: bit i is column i."""
    # numpy multiplies matrices of integers slowly; single precision is exact below 2^24.
    powers = np.exp2(np.arange(bits.shape[1], dtype=np.float32))
    return (bits.astype(np.float32) @ powers).astype(np.int64)
