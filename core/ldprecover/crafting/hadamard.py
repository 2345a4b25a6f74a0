"""Crafting columns of a Hadamard matrix: linear equations over GF(2) instead of a search."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ldprecover.crafting.crafter import DEFAULT_SEARCH, Aim, Crafter, Search
from ldprecover.errors import ParameterError
from ldprecover.types import FloatArray, Int64Array, Reports, UInt32Array

_SUBSETS = 1 << 14  # sets of wanted items whose columns are enumerated, at most
_SPREAD = 8  # 1 / the share of the columns that evens out what else they support


@dataclass(frozen=True)
class ColumnCrafter(Crafter):
    """A report is a column of 2^bits; it supports item v where its entry in row v + 1 is +1.

    `hits(items)` counts the items that each column supports; `support_counts(columns)` counts the
    columns that support each item.
    """

    bits: int
    hits: Callable[[Int64Array], Int64Array]
    support_counts: Callable[[Reports], Int64Array]

    model = "solved"

    @property
    def encoded_others(self) -> float:
        return (self.domain_size - 1) / 2

    @property
    def displacements(self) -> None:
        """None: reports of few columns support about half of the items and hardly the others."""
        return

    def craft(
        self,
        wanted_items: Int64Array,
        rng: np.random.Generator,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
    ) -> Reports:
        """Return the `best_columns` for each user's wanted items, drawn evenly.

        Of the aims only "projected" changes them: honest reports are columns, of their sizes.
        """
        columns = np.empty(len(wanted_items), "<u4")
        if not columns.size:
            return columns
        rows, row_of_user = np.unique(wanted_items, axis=0, return_inverse=True)
        order = np.argsort(row_of_user.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(row_of_user.reshape(-1), minlength=len(rows)))
        for row, users in zip(rows, np.split(order, ends[:-1]), strict=True):
            columns[users] = rng.choice(self.best_columns(row, aim), size=users.size)
        return columns

    def expected_hits(
        self, r: int, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH, m: int = 1
    ) -> tuple[float, float] | None:
        """Return both for one wanted item; None for several: see `crafted_support`."""
        if r > 1:
            return None
        others = self._shares(self.best_columns(np.zeros(1, np.int64), aim))[1]
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
        """Return pi exactly.

        Raises ParameterError for more than 16,384 possible sets of wanted items.
        """
        items = np.flatnonzero(included)
        if math.comb(items.size, r) > _SUBSETS:
            raise ParameterError(
                f"{self.protocol} lacks a law of reports crafted for {r} of {items.size} items, of "
                "which there are too many"
            )
        support = np.zeros(self.domain_size)
        sets = list(combinations(items.tolist(), r))
        for wanted_items in sets:
            weight = float(included[wanted_items[0]]) if r == 1 else 1 / len(sets)
            support += weight * self._shares(self.best_columns(np.array(wanted_items), aim))
        return support

    def log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        """Return log P(z) of the columns that support the target, but 0, drawn evenly."""
        return np.where(reports != 0, -math.log((1 << self.bits) // 2 - 1), -np.inf)

    def uniform_reports(self, m: int, rng: np.random.Generator) -> Reports:
        return rng.integers(1 << self.bits, size=m, dtype=np.uint32)

    @property
    def uniform_support(self) -> float:
        return 0.5

    def report_of_size(
        self, size: float, rng: np.random.Generator, *, search: int = DEFAULT_SEARCH
    ) -> Reports:
        """Return a random one of the columns whose number of items is nearest to the size."""
        miss = np.abs(self.hits(np.arange(self.domain_size)) - size)
        return rng.choice(np.flatnonzero(miss == miss.min()), size=1).astype("<u4")

    def best_columns(self, wanted_items: Int64Array, aim: Aim = "most") -> UInt32Array:
        """Return the columns other than 0 that support most of the wanted items.

        Those that support all are the solutions y of popcount((v+1) & y) = 0 modulo 2 for the
        wanted items v. If they are less than an eighth of all columns, what else they support rises
        too, and a projection takes much of the gain. For the aim "projected" they are then the
        eighth with the largest difference of the shares of wanted and of other items supported.
        """
        columns = xor_sums(null_space(wanted_items + 1, self.bits))
        least = max((1 << self.bits) // _SPREAD, 1)
        spread = aim == "projected" and columns.size < least - 1
        if columns.size and not spread:
            return columns
        score = self.hits(wanted_items)[1:]
        if spread:
            sizes = self.hits(np.arange(self.domain_size))[1:]
            score = self.domain_size * score - wanted_items.size * sizes
        worst = np.sort(score)[-least if spread else -1]
        return (np.flatnonzero(score >= worst) + 1).astype(np.uint32)

    def _shares(self, columns: UInt32Array) -> FloatArray:
        """Return for each item the share of the columns that supports it."""
        shares: FloatArray = self.support_counts(columns) / columns.size
        return shares


def null_space(rows: Int64Array, bits: int) -> list[int]:
    """Return a basis of the numbers y below 2^bits with popcount(row & y) even for every row."""
    pivots = {row.bit_length() - 1: row for row in xor_basis(rows)}
    free = (bit for bit in range(bits) if bit not in pivots)
    return [
        (1 << bit) | sum(1 << lead for lead, row in pivots.items() if row >> bit & 1)
        for bit in free
    ]


def xor_basis(rows: Int64Array) -> list[int]:
    """Return a reduced basis of all xor sums of the rows.

    The highest bit of each basis number is zero in all others.
    """
    basis: list[int] = []
    remaining = rows
    for bit in reversed(range(int(rows.max()).bit_length())):
        has_bit = (remaining >> bit & 1).astype(np.bool_)
        if has_bit.any():
            lead = int(remaining[np.argmax(has_bit)])
            remaining = np.where(has_bit, remaining ^ lead, remaining)
            basis = [each ^ lead if each >> bit & 1 else each for each in basis] + [lead]
    return basis


def xor_sums(basis: Sequence[int]) -> UInt32Array:
    """Return all xor sums of independent numbers, except 0."""
    sums = np.zeros(1, np.uint32)
    for number in basis:
        sums = np.concatenate([sums, sums ^ np.uint32(number)])
    return sums[1:]
