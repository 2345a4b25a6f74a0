"""Hadamard response: a report is a column of a Hadamard matrix."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.counting.tally import Tally
from ldprecover.laws import AllSupporting, HitLaw, Laws
from ldprecover.laws.distributions import binomial_threshold
from ldprecover.protocols.crafting import DEFAULT_SEARCH, Aim, Search
from ldprecover.protocols.description import Column, ReportForms, Traits
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.protocols.sampling import keep_threshold, words_from
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, UInt32Array, UInt64Array

_CHUNK = 1 << 20  # reports drawn at once
_SUBSETS = 1 << 14  # of wanted items, whose columns are looked at one by one
_IMPROBABLE = 1e-9


@dataclass(frozen=True)
class HR(FrequencyOracle):
    """Hadamard response, in its form for epsilon up to about 1 (Acharya, Sun and Zhang, AISTATS
    2019).

    The Hadamard matrix has K = 2^ceil(log2(d+1)) columns and the entry (-1)^popcount(i & y) in row
    i and column y. A report is a column: with probability p = e^eps/(1+e^eps) one of the K/2 that
    have +1 in row v + 1 of the user's item v, else one of the K/2 others, uniformly. It supports
    the items in whose rows it has +1. Two rows agree in half of the columns, so q = 1/2.

    The summary is the histogram of the columns. One fast Walsh-Hadamard transform of it gives the
    counts: C(v) = (n + sum_y h(y) (-1)^popcount((v+1) & y))/2.

    Column 0 is +1 in every row: it supports every item. An honest report is that one with
    probability 2p/K.
    """

    protocol = "hr"
    title = "Hadamard response"
    traits = Traits(extremal=True)
    forms = ReportForms(
        json="one column y a report; it supports item v where popcount((v + 1) & y) is even.",
        packed="u4 a column.",
        values={"reports": {"type": "integer", "minimum": 0}},
        example={"reports": [5, 0, 12]},
    )
    crafted_model = "solved"

    @property
    def p(self) -> float:
        e = math.exp(self.epsilon)
        return e / (1 + e)

    @property
    def q(self) -> float:
        return 0.5

    @property
    def thresholds(self) -> dict[str, int]:
        return {"keep_below": keep_threshold(self.epsilon, 2)}

    @property
    def report_dtype(self) -> np.dtype:
        return np.dtype("<u4")

    @property
    def bits(self) -> int:
        """b = ceil(log2(d+1)): a column is a number of b bits."""
        return self.domain_size.bit_length()

    @property
    def summary_size(self) -> int:
        """K = 2^b, the number of columns."""
        return 1 << self.bits

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        held = self._items(items)
        words = words_from(rng)
        odd = words(held.size) >= np.uint64(self.thresholds["keep_below"])
        return self._columns_of(held, odd, words(held.size))

    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        """Return a random column of those that support the item."""
        held = self._items(items)
        return self._columns_of(held, np.zeros(held.size, np.bool_), words_from(rng)(held.size))

    def _columns_of(self, held: Int64Array, odd: BoolArray, words: UInt64Array) -> UInt32Array:
        """Return uniformly random columns with -1 in the item's row where `odd`, else +1.

        A random column of the other kind has its bit changed that is the row's lowest: that pairs
        the two kinds.
        """
        rows = (held + 1).astype(np.uint32)
        columns = (words & np.uint64(self.summary_size - 1)).astype("<u4")
        wrong = _is_odd(rows & columns) != odd
        columns[wrong] ^= rows[wrong] & (~rows[wrong] + np.uint32(1))
        return columns

    def check(self, reports: Reports) -> None:
        self._raise_first(
            reports >= self.summary_size, f"the column must be from 0 to {self.summary_size - 1}"
        )

    def check_submission(self, reports: Reports) -> None:
        """Raise ReportError if column 0 comes so often as in less than one in 10^9 honest
        submissions.
        """
        everything = reports == 0
        found = int(np.count_nonzero(everything))
        if found and found >= binomial_threshold(len(reports), self.everything, _IMPROBABLE):
            often = f"{found} of {len(reports)} reports are column 0, which supports every item"
            self._raise_first(everything, f"{often}: honest users hardly ever send so many")

    def summarise(self, reports: Reports) -> Int64Array:
        return counting.grr_counts(reports, self.summary_size)

    def counts_from(self, summary: Int64Array) -> Int64Array:
        signs = counting.walsh_hadamard(summary)
        counts: Int64Array = (signs[0] + signs[1 : self.domain_size + 1]) // 2
        return counts

    def supports(self, reports: Reports) -> BoolArray:
        return self.supported(reports, np.arange(self.domain_size))

    def supported(self, reports: Reports, items: Int64Array) -> BoolArray:
        return ~_is_odd(reports[:, None] & (items + 1).astype(np.uint32))

    def support_sizes(self, reports: Reports) -> Int64Array:
        return self._sizes[reports]

    @cached_property
    def _sizes(self) -> Int64Array:
        """How many items each column supports."""
        return self._hits(np.arange(self.domain_size))

    def _hits(self, items: Int64Array) -> Int64Array:
        """Return how many of the items each of the K columns supports: in O(K log K), however many
        items.
        """
        rows = np.zeros(self.summary_size, np.int64)
        rows[items + 1] = 1
        hits: Int64Array = (len(items) + counting.walsh_hadamard(rows)) // 2
        return hits

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (Column("reports", int, self.summary_size, "column"),)

    def to_columns(self, reports: Reports) -> tuple[list[Any], ...]:
        return (reports.tolist(),)

    def from_columns(self, values: Sequence[list[Any]]) -> Reports:
        return np.array(values[0], dtype="<u4")

    @property
    def everything(self) -> float:
        """2p/K, the probability that an honest report is column 0."""
        return 2 * self.p / self.summary_size

    @property
    def laws(self) -> Laws:
        return replace(
            super().laws,
            hits=_HadamardHits(self.p, self.q, self.domain_size, self._hits),
            all_supporting=AllSupporting(0, self.everything),
            log_likelihood=self._log_likelihood,
        )

    def _log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        held = (
            self.supports(reports).astype(np.float64) @ frequencies
        )  # the mass of the items it supports
        log: FloatArray = np.log(
            (self.p * held + (1 - self.p) * (1 - held)) * (2 / self.summary_size)
        )
        return log

    def crafted_log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        """Return log P(z) of the columns that support the target, but 0, drawn evenly."""
        return np.where(reports != 0, -math.log(self.summary_size // 2 - 1), -np.inf)

    def honest_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        """Return a tally of honest reports: the reports themselves are drawn, in O(n + K)."""
        return self._drawn(self.perturb, self._true_counts(true_counts), rng)

    def population_tally(self, weights: FloatArray, n: int, rng: np.random.Generator) -> Tally:
        """Return a tally of n honest reports, drawn from its exact law in O(K log K), however many
        they are.

        Of an item drawn from the weights a report is column y with probability (2/K)(1 - p + (2p-1)
        F(y)), where F(y) is the weight of the items that the column supports.
        """
        rows = np.zeros(self.summary_size)
        rows[1 : self.domain_size + 1] = weights
        mass = (weights.sum() + counting.walsh_hadamard_floats(rows)) / 2
        law = 1 - self.p + (2 * self.p - 1) * mass
        return Tally(rng.multinomial(n, law / law.sum()), n)

    def encoded_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        """Return a tally of reports of `encode`: the reports themselves are drawn, in O(n + K)."""
        return self._drawn(self.encode, self._true_counts(true_counts), rng)

    def _drawn(self, report: Any, held: Int64Array, rng: np.random.Generator) -> Tally:
        items = np.repeat(np.arange(self.domain_size), held)
        parts = (
            report(items[start : start + _CHUNK], rng) for start in range(0, items.size, _CHUNK)
        )
        summary = np.zeros(self.summary_size, np.int64)
        for reports in parts:
            summary += self.summarise(reports)
        return Tally(summary, items.size)

    def encoded_others(self) -> float:
        return (self.domain_size - 1) / 2

    def displacements(self) -> tuple[float, ...]:
        """Refuse: reports of few columns support some half of the items and hardly the others,
        which shifts neither.
        """
        raise self._lacks(
            "a law of what malicious reports support beside their targets that is the same for "
            "all items"
        )

    def craft(
        self,
        wanted: Int64Array,
        rng: np.random.Generator,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
    ) -> Reports:
        """Return columns, but 0, that support most of the wanted items, drawn evenly: all of them
        where one does.

        They are the solutions y of popcount((v+1) & y) = 0 modulo 2 for the wanted items v, linear
        equations over GF(2): nothing is searched. Where 0 is the only one, the best of the other
        columns. Whatever the aim: they are columns as honest ones are, and of such sizes.
        """
        found = np.empty(len(wanted), "<u4")
        if not found.size:
            return found
        rows, of = np.unique(wanted, axis=0, return_inverse=True)
        order = np.argsort(of.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(of.reshape(-1), minlength=len(rows)))
        for row, users in zip(rows, np.split(order, ends[:-1]), strict=True):
            found[users] = rng.choice(self._best_columns(row), size=users.size)
        return found

    def expected_hits(
        self, r: int, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH, m: int = 1
    ) -> tuple[float, float]:
        """Return both for one wanted item; of several it hangs on which they are: see
        `crafted_support`.
        """
        if r > 1:
            raise self._lacks("a law of crafted reports that is the same for all items")
        others = self._shares(self._best_columns(np.zeros(1, np.int64)))[1]
        return 1.0, float(others * (self.domain_size - 1))

    def crafted_support(
        self,
        included: FloatArray,
        r: int,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
        m: int = 1,
    ) -> FloatArray:
        """As the contract has it, exactly, for at most 16,384 sets of wanted items that a report
        may be of.
        """
        items = np.flatnonzero(included)
        if math.comb(items.size, r) > _SUBSETS:
            raise self._lacks(
                f"a law of reports crafted for {r} of {items.size} items, of which there are too "
                "many"
            )
        support = np.zeros(self.domain_size)
        sets = list(combinations(items.tolist(), r))
        for wanted in sets:
            weight = float(included[wanted[0]]) if r == 1 else 1 / len(sets)
            support += weight * self._shares(self._best_columns(np.array(wanted)))
        return support

    def uniform_reports(self, m: int, rng: np.random.Generator) -> Reports:
        return rng.integers(self.summary_size, size=m, dtype=np.uint32)

    def uniform_support(self) -> float:
        return 0.5

    def report_of_size(
        self, size: float, rng: np.random.Generator, *, search: int = DEFAULT_SEARCH
    ) -> Reports:
        """Return a random one of the columns whose number of items is nearest to the size."""
        miss = np.abs(self._sizes - size)
        return rng.choice(np.flatnonzero(miss == miss.min()), size=1).astype("<u4")

    def _best_columns(self, wanted: Int64Array) -> UInt32Array:
        """Return the columns, but 0, that support most of the wanted items."""
        found = _sums(_null_space(wanted + 1, self.bits))
        if found.size:
            return found
        hits = self._hits(wanted)[1:]
        return (np.flatnonzero(hits == hits.max()) + 1).astype(np.uint32)

    def _shares(self, columns: UInt32Array) -> FloatArray:
        """Return for each item the share of the columns that supports it."""
        shares: FloatArray = self.support_counts(columns) / columns.size
        return shares


@dataclass(frozen=True)
class _HadamardHits(HitLaw):
    """The columns are as good as uniform for users of other items.

    That holds where no other item's row is a sum modulo 2 of the rows of the given items: then the
    entry in the user's row tells nothing of theirs. `hits` counts the items of each column.
    """

    domain_size: int
    hits: Callable[[Int64Array], Int64Array]

    def of_others(self, items: Int64Array) -> FloatArray | None:
        span = _sums(_basis(items + 1))
        if not np.isin(span[span <= self.domain_size], items + 1).all():
            return None
        hits = self.hits(items)
        law: FloatArray = np.bincount(hits, minlength=len(items) + 1) / hits.size
        return law


def _is_odd(numbers: Reports) -> BoolArray:
    """Tell of which numbers an odd number of bits is one."""
    return (np.bitwise_count(numbers) & np.uint8(1)).view(np.bool_)


def _null_space(rows: Int64Array, bits: int) -> list[int]:
    """Return a basis of the numbers y of so many bits with popcount(row & y) even for every row."""
    pivots = {row.bit_length() - 1: row for row in _basis(rows)}
    free = (bit for bit in range(bits) if bit not in pivots)
    return [
        (1 << bit) | sum(1 << lead for lead, row in pivots.items() if row >> bit & 1)
        for bit in free
    ]


def _basis(rows: Int64Array) -> list[int]:
    """Return a basis of all sums of the rows modulo 2: the highest bit of each is zero in all
    others.
    """
    basis: list[int] = []
    left = rows
    for bit in reversed(range(int(rows.max()).bit_length())):
        has = (left >> bit & 1).astype(np.bool_)
        if has.any():
            lead = int(left[np.argmax(has)])
            left = np.where(has, left ^ lead, left)
            basis = [each ^ lead if each >> bit & 1 else each for each in basis] + [lead]
    return basis


def _sums(basis: Sequence[int]) -> UInt32Array:
    """Return all sums modulo 2 of independent numbers, but 0."""
    sums = np.zeros(1, np.uint32)
    for number in basis:
        sums = np.concatenate([sums, sums ^ np.uint32(number)])
    return sums[1:]
