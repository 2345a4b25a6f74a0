"""Crafting reports under assigned seeds: a malicious user chooses a bucket alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldprecover.crafting.cell_crafter import average_over_sets
from ldprecover.crafting.crafter import DEFAULT_SEARCH, Aim, CraftedReports, Crafter, Search
from ldprecover.distributions import binomial_law
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, Rng

if TYPE_CHECKING:
    from ldprecover.protocols.llh import LLH

_BLOCK = 1 << 16  # (report, item) or (report, bucket) pairs of a block
_NEGLIGIBLE = 1e-12  # sizes less likely than this are left out of an expectation

Scores = Callable[[Int64Array, Int64Array, slice], Int64Array]
"""Scores of each bucket from its hits, (n, g), the seeds of these n rows, and which rows."""


@dataclass(frozen=True)
class AssignedSeedCrafter(Crafter):
    """A report is a seed r, assigned to its user, and a bucket y of g as the integer r g + y.

    Nothing is searched, and of equally good buckets one is drawn.
    """

    oracle: LLH

    model = "solved"

    @property
    def encoded_others(self) -> float:
        return (self.oracle.domain_size - 1) * self.oracle.q

    def craft(
        self,
        chosen_items: Int64Array,
        rng: Rng,
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
        law = self.oracle.size_law() if aim == "honest" else None
        size_of_user = None if law is None else rng.choice(np.arange(law.size), size=m, p=law)
        sizes = self._cells(np.arange(self.oracle.domain_size))

        def scores(hits: Int64Array, seeds: Int64Array, rows: slice) -> Int64Array:
            size = None if size_of_user is None else size_of_user[rows, None]
            return self._scores(hits, sizes[seeds], r, aim, size)

        return self._choose(chosen_items, rng, scores)

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
        if r == 1 and aim in ("most", "projected"):
            return self.encoded_support(included)
        sizes = self._cells(np.arange(self.oracle.domain_size))
        law = np.ones(1)
        if aim == "honest":
            law = self.oracle.size_law()
            law = np.where(law > _NEGLIGIBLE, law, 0.0)

        def shares_of(chosen_items: Int64Array) -> FloatArray:
            hits, total = self._cells(chosen_items), np.zeros(sizes.size)
            for size in np.flatnonzero(law).tolist():
                best = self._scores(hits, sizes, r, aim, size)
                total += law[size] / law.sum() * _shares_of(best)
            return total

        return self.oracle.support_sums(
            average_over_sets(self.oracle.protocol, included, r, shares_of)
        )

    def coin_reports(
        self, targets: Int64Array, rate: float, search: int = DEFAULT_SEARCH
    ) -> CraftedReports:
        """Return the buckets whose number of r targets is nearest to one from Binomial(r, rate).

        Of two numbers as near it is the greater.
        """
        r = targets.size

        def craft(m: int, rng: Rng) -> Reports:
            aims = rng.binomial(r, rate, size=(m, 1))
            return self._choose(
                np.broadcast_to(targets, (m, r)),
                rng,
                lambda hits, seeds, rows: _nearness(hits, aims[rows]),
            )

        def support(m: int) -> FloatArray:
            hits = self._cells(targets)
            total = np.zeros(hits.size)
            for aim, probability in enumerate(binomial_law(r, rate).tolist()):
                total += probability * _shares_of(_nearness(hits, np.int64(aim)))
            return self.oracle.support_sums(total)

        return craft, support

    def log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        """Return -log S: each seed has one report that supports the target."""
        return np.full(len(reports), -math.log(self._cells(np.array([target])).shape[0]))

    def uniform_reports(self, m: int, rng: Rng) -> Reports:
        return self.oracle.reports(
            self.oracle.draw_seeds(m, rng), rng.integers(self.oracle.hash_range, size=m)
        )

    @property
    def uniform_support(self) -> float:
        return self.oracle.q

    def _choose(self, chosen_items: Int64Array, rng: Rng, scores: Scores) -> Reports:
        """Return the bucket of the greatest score under the seed of each user."""
        m, r = chosen_items.shape
        seeds, buckets = self.oracle.draw_seeds(m, rng), np.empty(m, np.int64)
        g, step = self.oracle.hash_range, max(1, _BLOCK // max(r, self.oracle.hash_range))
        for start in range(0, m, step):
            rows = slice(start, start + step)
            hashed = self.oracle.buckets(seeds[rows, None], chosen_items[rows])
            hashed = hashed + np.arange(len(hashed))[:, None] * g
            hits = np.bincount(hashed.ravel(), minlength=len(hashed) * g).reshape(-1, g)
            best = _greatest(scores(hits, seeds[rows], rows))
            buckets[rows] = np.where(best, rng.random(best.shape), -1.0).argmax(axis=1)
        return self.oracle.reports(seeds, buckets)

    def _cells(self, items: Int64Array) -> Int64Array:
        """Return how many of the items each bucket of each seed holds, (S, g)."""
        return self.oracle.hits(items).reshape(-1, self.oracle.hash_range)

    def _scores(
        self, hits: Int64Array, sizes: Int64Array, r: int, aim: Aim, size: Int64Array | int | None
    ) -> Int64Array:
        if aim == "balanced":
            hits = hits - np.abs(sizes - self.oracle.domain_size // self.oracle.hash_range)
        if aim == "honest":
            hits = hits - (r + 1) * np.abs(sizes - np.asarray(size))
        return hits


def _greatest(scores: Int64Array) -> BoolArray:
    return scores == scores.max(axis=1, keepdims=True)


def _nearness(hits: Int64Array, aims: Int64Array | np.int64) -> Int64Array:
    return 2 * -np.abs(hits - aims) + (hits > aims)


def _shares_of(scores: Int64Array) -> FloatArray:
    """Return the share of each report where users take their greatest score, (S, g)."""
    best = _greatest(scores)
    return (best / (len(best) * best.sum(axis=1, keepdims=True))).reshape(-1)
