"""Hadamard response: a report is a column of a Hadamard matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.protocols.description import Traits, integer_forms
from ldprecover.protocols.gf2 import xor_basis, xor_sums
from ldprecover.protocols.integer_reports import IntegerReports
from ldprecover.protocols.laws import HitLaw, Laws, ReportSums
from ldprecover.protocols.oracle import ALL_ITEMS, Items
from ldprecover.protocols.sampling import keep_threshold, words_from
from ldprecover.protocols.wire import IntegerForm
from ldprecover.types import (
    BoolArray,
    FloatArray,
    Int64Array,
    Reports,
    Rng,
    UInt32Array,
    UInt64Array,
)

_FORMS = integer_forms(
    json="one column y a report; it supports item v where popcount((v + 1) & y) is even.",
    packed="u4 a column.",
    example=[5, 0, 12],
)


@dataclass(frozen=True)
class HR(IntegerReports):
    """Hadamard response for epsilon up to about 1 (Acharya, Sun and Zhang, AISTATS 2019).

    The Hadamard matrix has K = 2^ceil(log2(d+1)) columns and the entry (-1)^popcount(i & y) in row
    i and column y. A report is a column: with probability p = e^eps/(1+e^eps) one of the K/2 that
    have +1 in row v + 1 of the user's item v, else one of the K/2 others, uniformly. It supports
    the items whose rows have +1 in it. Two rows agree in half of the columns, so q = 1/2.

    The summary is the histogram of the columns. One fast Walsh-Hadamard transform of it gives the
    counts: C(v) = (n + sum_y h(y) (-1)^popcount((v+1) & y))/2.

    Column 0 is +1 in every row, so it supports every item. An honest report is column 0 with
    probability 2p/K.

    It is never proposed: LLH with g = 2 has its p and q, hence its variance and its largest gain,
    and by default less variance; un-mixing reads LLH and not HR.

        HR(epsilon=1.0, domain_size=4).perturb([0, 3, 3])
    """

    protocol = "hr"
    title = "Hadamard response"
    traits = Traits(extremal=True, histogram=True)
    is_proposed = False

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

    @cached_property
    def wire(self) -> IntegerForm:
        return IntegerForm(_FORMS, self.summary_size, "column", self.everything)

    @property
    def bits(self) -> int:
        """b = ceil(log2(d+1)); a column is a number of b bits."""
        return self.domain_size.bit_length()

    @cached_property
    def summary_size(self) -> int:
        """K = 2^b, the number of columns."""
        return 1 << self.bits

    def perturb(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        user_items = self.item_indices(items)
        words = words_from(rng)
        odd = words(user_items.size) >= np.uint64(self.thresholds["keep_below"])
        return self._columns_of(user_items, odd, words(user_items.size))

    def encode(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        """Return a random column that supports the item."""
        user_items = self.item_indices(items)
        return self._columns_of(
            user_items, np.zeros(user_items.size, np.bool_), words_from(rng)(user_items.size)
        )

    def _columns_of(self, items: Int64Array, odd: BoolArray, words: UInt64Array) -> UInt32Array:
        """Return uniformly random columns with -1 in the item's row where `odd` is set, else +1.

        A random column of the wrong kind gets the row's lowest bit flipped: this pairs the two
        kinds.
        """
        rows = (items + 1).astype(np.uint32)
        columns = (words & np.uint64(self.summary_size - 1)).astype("<u4")
        wrong = _is_odd(rows & columns) != odd
        columns[wrong] ^= rows[wrong] & (~rows[wrong] + np.uint32(1))
        return columns

    def counts_from(self, summary: Int64Array) -> Int64Array:
        signs = counting.walsh_hadamard(summary)
        return (signs[0] + signs[1 : self.domain_size + 1]) // 2

    def supports(self, reports: Reports, items: Items = ALL_ITEMS) -> BoolArray:
        rows = np.arange(1, self.domain_size + 1, dtype=np.uint32)[items]
        return ~_is_odd(self.wire.rows(reports)[:, None] & rows)

    def hits(self, items: Int64Array) -> Int64Array:
        """Return the number of the items that each of the K columns supports, in O(K log K)."""
        rows = np.zeros(self.summary_size, np.int64)
        rows[items + 1] = 1
        return (len(items) + counting.walsh_hadamard(rows)) // 2

    @property
    def everything(self) -> float:
        """2p/K, the probability that an honest report is column 0."""
        return 2 * self.p / self.summary_size

    @property
    def laws(self) -> Laws:
        return replace(
            super().laws,
            hits=_HadamardHits(self.p, self.q, self.domain_size, self.hits),
            all_supporting=self.everything,
            report_sums=ReportSums(self.summary_size, self._masses, self._weights),
            log_likelihood=self._log_likelihood,
        )

    def _masses(self, values: FloatArray) -> FloatArray:
        """Return the sum of the values of the items that each of the K columns supports."""
        rows = np.zeros(self.summary_size)
        rows[1 : self.domain_size + 1] = values
        return (values.sum() + counting.walsh_hadamard(rows)) / 2

    def _weights(self, weights: FloatArray) -> FloatArray:
        """Return the sum of the weights of the columns that support each item."""
        sums = counting.walsh_hadamard(weights)
        return (sums[0] + sums[1 : self.domain_size + 1]) / 2

    def _log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        mass = self.supported_mass(reports, frequencies)
        return np.log((self.p * mass + (1 - self.p) * (1 - mass)) * (2 / self.summary_size))


@dataclass(frozen=True)
class _HadamardHits(HitLaw):
    """The columns are as good as uniform for users of other items.

    That holds where no other item's row is a sum modulo 2 of the rows of the given items: then the
    entry in the user's row tells nothing of theirs. `hits` counts the items of each column.
    """

    domain_size: int
    hits: Callable[[Int64Array], Int64Array]

    def nonholder_law(self, items: Int64Array) -> FloatArray | None:
        span = xor_sums(xor_basis(items + 1))
        if not np.isin(span[span <= self.domain_size], items + 1).all():
            return None
        hits = self.hits(items)
        return np.bincount(hits, minlength=len(items) + 1) / hits.size


def _is_odd(numbers: Reports) -> BoolArray:
    """Return for each number whether an odd number of its bits is one."""
    return (np.bitwise_count(numbers) & np.uint8(1)).view(np.bool_)
