"""Crafting reports that are bit vectors: chosen items, padded with random others to a wished number
of ones.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldprecover.laws import IndependentSizes
from ldprecover.laws.distributions import binomial_law
from ldprecover.protocols.crafting import DEFAULT_SEARCH, Aim, Search
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.types import FloatArray, Int64Array, Reports, UInt8Array

_CELLS = 1 << 20  # random keys held at once while padding
_LIKELY = 1e-18  # numbers of ones less likely than this are left out of an expectation


@dataclass(frozen=True)
class PaddedReports(FrequencyOracle):
    """A protocol whose packed reports are bit vectors, any of them or all of `fixed_size` ones.

    Its own are bits that are independent given the user's item, or `fixed_size` of them. What
    malicious users make of such reports is the same for every one of these protocols.
    """

    crafted_model = "padded"

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """Bytes of one packed report, ceil(d/8)."""

    @property
    def coin_room(self) -> float:
        return self.expected_size

    def encoded_others(self) -> float:
        return 0.0 if self.fixed_size is None else self.fixed_size - 1.0

    def craft(
        self,
        wanted: Int64Array,
        rng: np.random.Generator,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
    ) -> Reports:
        """Return the wanted items and a uniformly random set of others, drawn afresh for each
        report.

        Up to L = floor(p + (d-1)q) ones, or the honest number where that is the aim or the protocol
        fixes it. Where the ones are fewer than the wanted items they are a random subset of those;
        with L, never.
        """
        m, r = wanted.shape
        sizes = self._honest_sizes(m, rng) if aim == "honest" else np.full(m, self._ones(r))
        return padded_rows(wanted, sizes, self.domain_size, rng)

    def expected_hits(
        self, r: int, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH, m: int = 1
    ) -> tuple[float, float]:
        if aim != "honest":
            ones = self._ones(r)
            return float(min(ones, r)), float(max(ones - r, 0))
        law = self.laws.size_law().probabilities()
        sizes = np.arange(law.size)
        return float(law @ np.minimum(sizes, r)), float(law @ np.maximum(sizes - r, 0))

    def craft_by_coins(
        self,
        targets: Int64Array,
        rate: float,
        m: int,
        rng: np.random.Generator,
        *,
        search: int = DEFAULT_SEARCH,
    ) -> Reports:
        """Return reports of honest sizes k with h of the r targets, h from Binomial(r, rate), and k
        - h others.

        h is the number nearest to that which k ones and d - r others allow.
        """
        r = targets.size
        sizes = self._honest_sizes(m, rng)
        hits = _possible(rng.binomial(r, rate, size=m), sizes, r, self.domain_size)

        def tossed_first(keys: FloatArray, users: Int64Array) -> None:
            own = keys[:, targets]
            rank = own.argsort(axis=1).argsort(axis=1)
            keys[:, targets] = np.where(rank < hits[users, None], own - 1.0, own + 1.0)

        return _lowest_keys(sizes, self.domain_size, rng, tossed_first)

    def coin_support(
        self, targets: Int64Array, rate: float, *, search: int = DEFAULT_SEARCH
    ) -> FloatArray:
        r = targets.size
        sizes_law = self.laws.size_law()
        law, coins = sizes_law.probabilities(), binomial_law(r, rate)
        sizes, wishes = np.flatnonzero(law > _LIKELY), np.flatnonzero(coins > _LIKELY)
        hits = _possible(wishes[:, None], sizes, r, self.domain_size)
        mean = float(coins[wishes] @ hits @ law[sizes])
        return self._support_of(targets, mean, float(law @ np.arange(law.size)) - mean)

    def uniform_reports(self, m: int, rng: np.random.Generator) -> Reports:
        d = self.domain_size
        if self.fixed_size is not None:
            return _lowest_keys(self._honest_sizes(m, rng), d, rng)
        rows = rng.integers(0, 256, size=(m, self.row_bytes), dtype=np.uint8)
        rows[:, -1] &= 0xFF >> (self.row_bytes * 8 - d)  # the padding bits are zero
        return rows

    def uniform_support(self) -> float:
        return 0.5 if self.fixed_size is None else self.fixed_size / self.domain_size

    def report_of_size(
        self, size: float, rng: np.random.Generator, *, search: int = DEFAULT_SEARCH
    ) -> Reports:
        """Return a report of floor(size) ones, or of as many as the protocol fixes."""
        bits = np.zeros((1, self.domain_size), dtype=np.uint8)
        ones = int(size) if self.fixed_size is None else self.fixed_size
        bits[0, rng.permutation(self.domain_size)[:ones]] = 1
        return np.packbits(bits, axis=1, bitorder="little")

    def _ones(self, r: int) -> int:
        """Return how many ones a report has that is to support r items and to look honest."""
        return max(self.expected_size, r) if self.fixed_size is None else self.fixed_size

    def _honest_sizes(self, m: int, rng: np.random.Generator) -> Int64Array:
        if self.fixed_size is not None:
            return np.full(m, self.fixed_size)
        return IndependentSizes(self.domain_size, self.p, self.q).draw(m, rng)


def padded_rows(
    wanted: Int64Array, sizes: Int64Array, d: int, rng: np.random.Generator
) -> UInt8Array:
    """Return packed rows of d bits, `sizes` (m,) of them one: the wanted items (m, r) first, then
    random others.

    Where a size is below r, the ones are a random subset of the wanted items.
    """

    def wanted_first(keys: FloatArray, users: Int64Array) -> None:
        rows = wanted[users]
        np.put_along_axis(keys, rows, np.take_along_axis(keys, rows, axis=1) - 1.0, axis=1)

    return _lowest_keys(sizes, d, rng, wanted_first)


def _lowest_keys(
    sizes: Int64Array,
    d: int,
    rng: np.random.Generator,
    change: Callable[[FloatArray, Int64Array], None] = lambda keys, users: None,
) -> UInt8Array:
    """Return packed rows whose ones are the places of the `sizes[i]` lowest of d keys.

    Keys are random from [0, 1), so that their lowest are a uniformly random set; `change(keys,
    users)` may move some of those users' keys, in place, so that they come first or last.
    """
    rows = np.empty((len(sizes), -(-d // 8)), dtype=np.uint8)
    step = max(1, _CELLS // d)
    order = np.argsort(sizes, kind="stable")
    ends = np.flatnonzero(np.diff(sizes[order])) + 1
    for alike in np.split(order, ends):
        for start in range(0, len(alike), step):
            users = alike[start : start + step]
            ones = int(sizes[users[0]])
            keys = rng.random((len(users), d))
            change(keys, users)
            bits = np.zeros((len(users), d), dtype=np.uint8)
            if ones:
                np.put_along_axis(
                    bits, np.argpartition(keys, ones - 1, axis=1)[:, :ones], 1, axis=1
                )
            rows[users] = np.packbits(bits, axis=1, bitorder="little")
    return rows


def _possible(hits: Int64Array, sizes: Int64Array, r: int, d: int) -> Int64Array:
    """Return the hits nearest to these that a report of this size can have of r targets."""
    return np.clip(hits, np.maximum(sizes - (d - r), 0), np.minimum(sizes, r))
