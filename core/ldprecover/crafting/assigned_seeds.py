"""Crafting reports under assigned seeds: a malicious user chooses a bucket alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldprecover.crafting.cell_crafter import average_over_sets
from ldprecover.crafting.crafter import DEFAULT_SEARCH, Aim, CoinCrafter, Crafter, Search
from ldprecover.distributions import binomial_law
from ldprecover.errors import ParameterError
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

_BLOCK = 1 << 16  # (report, item) or (report, bucket) pairs of a block
_NEGLIGIBLE = 1e-12  # sizes less likely than this are left out of an expectation

Scores = Callable[[Int64Array, Int64Array, slice], Int64Array]
"""Scores of each bucket from its hits, (n, g), the seeds of these n rows, and which rows."""


@dataclass(frozen=True)
class AssignedSeedCrafter(Crafter):
    """A report is a seed r, assigned to its user, and a bucket y of g as the integer r g + y.

    Nothing is searched, and of equally good buckets one is drawn. `draw_seeds(m, rng)` returns the
    seeds of m users, uniform over all S. `buckets(seeds, items)` hashes items. `hits(items)` counts
    the items that each of the S g reports supports. `support_sums(weights)` sums the weights of the
    reports that support each item. `size_law()` is the law of the sizes of honest reports of users
    whose items are uniform.
    """

    hash_range: int
    draw_seeds: Callable[[int, np.random.Generator], Int64Array]
    buckets: Callable[[Int64Array, Int64Array], Int64Array]
    hits: Callable[[Int64Array], Int64Array]
    support_sums: Callable[[FloatArray], FloatArray]
    size_law: Callable[[], FloatArray]

    model = "solved"

    @property
    def encoded_others(self) -> float:
        return (self.domain_size - 1) * self.q

    @property
    def coins(self) -> CoinCrafter:
        return _AssignedSeedCoins(self)

    def craft(
        self,
        chosen_items: Int64Array,
        rng: np.random.Generator,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
    ) -> Reports:
        """Return the best bucket of each user's seed.

        - "most" and "projected": the bucket with most chosen items;
        - "balanced": the greatest (chosen items in it) - |floor(d/g) - (items in it)|;
        - "honest": the size nearest to one drawn from `size_law`; of these, most chosen items.
        """
        m, r = chosen_items.shape
        law = self.size_law() if aim == "honest" else None
        size_of_user = None if law is None else rng.choice(np.arange(law.size), size=m, p=law)
        sizes = self._cells(np.arange(self.domain_size))

        def scores(hits: Int64Array, seeds: Int64Array, rows: slice) -> Int64Array:
            size = None if size_of_user is None else size_of_user[rows, None]
            return self._scores(hits, sizes[seeds], r, aim, size)

        return self.choose(chosen_items, rng, scores)

    def expected_hits(
        self, r: int, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH, m: int = 1
    ) -> tuple[float, float] | None:
        """Return both for one chosen item; None for several: see `crafted_support`."""
        return (1.0, self.encoded_others) if r == 1 and aim in ("most", "projected") else None

    def crafted_support(
        self,
        included: FloatArray,
        r: int,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
        m: int = 1,
    ) -> FloatArray:
        """Return pi exactly, by summing over all seeds.

        Raises ParameterError for more than 16,384 possible sets of chosen items.
        """
        if self.expected_hits(r, aim=aim) is not None:
            return self.encoded_support(included)
        sizes = self._cells(np.arange(self.domain_size))
        law = np.ones(1)
        if aim == "honest":
            law = self.size_law()
            law = np.where(law > _NEGLIGIBLE, law, 0.0)

        def shares_of(chosen_items: Int64Array) -> FloatArray:
            hits, total = self._cells(chosen_items), np.zeros(sizes.size)
            for size in np.flatnonzero(law).tolist():
                best = self._scores(hits, sizes, r, aim, size)
                total += law[size] / law.sum() * self.shares_of(best)
            return total

        return self.support_sums(average_over_sets(self.protocol, included, r, shares_of))

    def log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        """Return -log S: each seed has one report that supports the target."""
        return np.full(len(reports), -math.log(self._cells(np.array([target])).shape[0]))

    def uniform_reports(self, m: int, rng: np.random.Generator) -> Reports:
        return self._reports(self.draw_seeds(m, rng), rng.integers(self.hash_range, size=m))

    @property
    def uniform_support(self) -> float:
        return self.q

    def report_of_size(
        self, size: float, rng: np.random.Generator, *, search: int = DEFAULT_SEARCH
    ) -> Reports:
        """Raise ParameterError: users with different seeds cannot send one report."""
        raise ParameterError(
            f"{self.protocol} with assigned seeds lacks a report that all can send"
        )

    def choose(self, chosen_items: Int64Array, rng: np.random.Generator, scores: Scores) -> Reports:
        """Return the bucket of the greatest score under the seed of each user."""
        m, r = chosen_items.shape
        seeds, buckets = self.draw_seeds(m, rng), np.empty(m, np.int64)
        g, step = self.hash_range, max(1, _BLOCK // max(r, self.hash_range))
        for start in range(0, m, step):
            rows = slice(start, start + step)
            hashed = self.buckets(seeds[rows, None], chosen_items[rows])
            hashed = hashed + np.arange(len(hashed))[:, None] * g
            hits = np.bincount(hashed.ravel(), minlength=len(hashed) * g).reshape(-1, g)
            best = _greatest(scores(hits, seeds[rows], rows))
            buckets[rows] = np.where(best, rng.random(best.shape), -1.0).argmax(axis=1)
        return self._reports(seeds, buckets)

    def shares_of(self, scores: Int64Array) -> FloatArray:
        """Return the share of each report where users take their greatest score, (S, g)."""
        best = _greatest(scores)
        shares: FloatArray = best / (len(best) * best.sum(axis=1, keepdims=True))
        return shares.reshape(-1)

    def _reports(self, seeds: Int64Array, buckets: Int64Array) -> Reports:
        reports: Reports = (seeds * self.hash_range + buckets).astype("<u4")
        return reports

    def _cells(self, items: Int64Array) -> Int64Array:
        """Return how many of the items each bucket of each seed holds, (S, g)."""
        return self.hits(items).reshape(-1, self.hash_range)

    def _scores(
        self, hits: Int64Array, sizes: Int64Array, r: int, aim: Aim, size: Int64Array | int | None
    ) -> Int64Array:
        if aim == "balanced":
            hits = hits - np.abs(sizes - self.domain_size // self.hash_range)
        if aim == "honest":
            hits = hits - (r + 1) * np.abs(sizes - np.asarray(size))
        return hits


@dataclass(frozen=True)
class _AssignedSeedCoins(CoinCrafter):
    """Users take the bucket whose number of targets is nearest to one from Binomial(r, rate).

    Of two numbers as near it is the greater.
    """

    crafter: AssignedSeedCrafter

    @property
    def capacity(self) -> float:
        return math.inf

    def craft(
        self,
        targets: Int64Array,
        rate: float,
        m: int,
        rng: np.random.Generator,
        *,
        search: int = DEFAULT_SEARCH,
    ) -> Reports:
        aims = rng.binomial(targets.size, rate, size=(m, 1))
        return self.crafter.choose(
            np.broadcast_to(targets, (m, targets.size)),
            rng,
            lambda hits, seeds, rows: _nearness(hits, aims[rows]),
        )

    def support(
        self, targets: Int64Array, rate: float, *, search: int = DEFAULT_SEARCH
    ) -> FloatArray:
        hits = self.crafter._cells(targets)
        law = binomial_law(targets.size, rate)
        total = np.zeros(hits.size)
        for aim, probability in enumerate(law.tolist()):
            total += probability * self.crafter.shares_of(_nearness(hits, np.int64(aim)))
        return self.crafter.support_sums(total)


def _greatest(scores: Int64Array) -> BoolArray:
    best: BoolArray = scores == scores.max(axis=1, keepdims=True)
    return best


def _nearness(hits: Int64Array, aims: Int64Array | np.int64) -> Int64Array:
    nearness: Int64Array = 2 * -np.abs(hits - aims) + (hits > aims)
    return nearness
