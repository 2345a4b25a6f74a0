"""Least squares on the histogram of a round's reports, without the cells that are too full.

A cell is one of the M different reports. An honest round's histogram is linear in the frequencies,
so whatever users hold, it has M - d - 1 directions of noise alone. A cell that is far fuller than
the others say was filled on purpose: it is dropped, and the others give estimates without bias.
"""

import math
from dataclasses import dataclass

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.protocols.laws import ReportSums, required
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import FloatArray, Int64Array

_LEAST = 1e-9  # reports expected in a cell
_ROUNDS = 100  # in which full cells are found: each may drop some cells, and readmit others


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of an oracle, and those of them that are dropped.

    With e_v(c) = [cell c supports item v] - q, the columns e_v of all items are orthogonal, and so
    are they and a constant. Each has the squared norm M q (1 - q).
    """

    oracle: FrequencyOracle
    sums: ReportSums
    dropped: Int64Array
    inflation: FloatArray
    """By how much the dropped cells raise the variance of each of the d estimates."""
    _inverse: FloatArray
    """(I - P)^-1 of the dropped cells; P projects a histogram on what honest rounds expect."""

    @classmethod
    def of(cls, oracle: FrequencyOracle, dropped: Int64Array) -> "Cells":
        """Return the cells without some dropped ones.

        Raises ParameterError if the others hardly determine a combination of the dropped cells.
        """
        sums = required(oracle.laws.report_sums, oracle.protocol, "a list of all its reports")
        rows = oracle.supports(dropped.astype(oracle.wire.dtype)).astype(np.float64) - oracle.q
        norm = sums.number * oracle.q * (1 - oracle.q)
        matrix = np.eye(dropped.size) - 1 / sums.number - rows @ rows.T / norm
        if dropped.size and np.linalg.eigvalsh(matrix)[0] < THRESHOLDS.least_known:
            raise ParameterError("the other cells do not determine the dropped ones")
        inverse = np.linalg.inv(matrix)
        inflation = 1 + (rows * (inverse @ rows)).sum(axis=0) / norm
        return cls(oracle, sums, dropped, inflation, np.asarray(inverse))

    def fit(self, histogram: FloatArray | Int64Array) -> tuple[FloatArray, FloatArray]:
        """Return a histogram with what the other cells say in place of the dropped ones, and the
        least-squares expectation of all cells by it.
        """
        filled = histogram.astype(np.float64)
        if self.dropped.size:  # a transform of 10^6 cells takes 0.4 s
            filled[self.dropped] = 0.0
            filled[self.dropped] = self._inverse @ self._projected(filled)[self.dropped]
        return filled, self._projected(filled)

    def residual(self, histogram: FloatArray | Int64Array) -> FloatArray:
        """Return the histogram minus its expectation; 0 in the cells that are dropped."""
        filled, expected = self.fit(histogram)
        return filled - expected

    def estimates(self, filled: FloatArray) -> FloatArray:
        """Return the d estimates from a histogram, times its sum."""
        oracle = self.oracle
        return (self.sums.counts(filled) - oracle.q * filled.sum()) / (oracle.p - oracle.q)

    def _projected(self, histogram: FloatArray) -> FloatArray:
        q, number, total = self.oracle.q, self.sums.number, histogram.sum()
        weights = (self.sums.counts(histogram) - q * total) / (number * q * (1 - q))
        return total / number + self.sums.masses(weights) - q * weights.sum()

    def surprise(self, histogram: Int64Array) -> FloatArray:
        """Return minus the logarithm of Chernoff's bound on contents as large, 0 for smaller ones.

        Expectations are clipped to what honest users may send, whatever they hold.
        """
        p, q = self.oracle.p, self.oracle.q
        _, expected = self.fit(histogram)
        even = max(float(expected.mean()), _LEAST)
        expected = np.clip(expected, even * (1 - p) / (1 - q), even * p / q)
        counts = np.maximum(histogram, expected)
        surprise = counts * np.log(counts / expected) - (counts - expected)
        surprise[self.dropped] /= np.diag(self._inverse)  # their variance from the others
        return surprise


def without_full_cells(oracle: FrequencyOracle, histogram: Int64Array) -> tuple[Cells, float]:
    """Return the cells of a round without those that are far too full, and ln p of the fullest.

    An honest round loses a cell with a probability of `THRESHOLDS.full_cell`, by Chernoff's bound.
    The fullest cells are dropped first, and come back where the others explain them.
    """
    cells = Cells.of(oracle, np.empty(0, np.int64))
    surprise = cells.surprise(histogram)
    log_p = min(0.0, math.log(histogram.size) - float(surprise.max()))
    limit = math.log(histogram.size / THRESHOLDS.full_cell)
    most_cells = min(THRESHOLDS.most_cells, histogram.size // 4)
    for step in range(_ROUNDS):
        is_full = surprise > limit
        remaining = cells.dropped[is_full[cells.dropped] | (step >= _ROUNDS // 2)]
        full = np.setdiff1d(np.flatnonzero(is_full), cells.dropped)
        number = min(max(1, full.size // 2), most_cells - remaining.size)
        fullest = full[np.argsort(-surprise[full])][:number]
        changed = _identifiable(oracle, remaining, fullest)
        if changed is None or np.array_equal(changed.dropped, cells.dropped):
            break
        cells, surprise = changed, changed.surprise(histogram)
    return cells, log_p


def _identifiable(
    oracle: FrequencyOracle, dropped: Int64Array, fullest: Int64Array
) -> Cells | None:
    """Return cells without dropped ones and the first others that the rest determine."""
    while True:
        try:
            return Cells.of(oracle, np.union1d(dropped, fullest))
        except ParameterError:
            if not fullest.size:
                return None
            fullest = fullest[: fullest.size // 2]
