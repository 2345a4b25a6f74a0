"""Crafting reports of a hash seed and a bucket: malicious users search for their seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldprecover import counting
from ldprecover.crafting.crafter import (
    DEFAULT_STRATEGY,
    CraftedReports,
    HashCrafter,
    Search,
    Strategy,
    support_of_targets,
)
from ldprecover.crafting.search_laws import exhaustive_hits, law_near, most_hits, sized_means
from ldprecover.crafting.seed_search import (
    exhaustive_seeds,
    fullest_buckets,
    sampled_seeds,
    scanned_seeds,
    seeds_near,
)
from ldprecover.crafting.size_search import sized_bucket, sized_seeds
from ldprecover.errors import ParameterError
from ldprecover.protocols.olh import OLH, SEEDS
from ldprecover.types import FloatArray, Int64Array, Reports, Rng, UInt32Array

_LEAST_SEEDS = 1 << 19  # all seeds of the hash that put a set into one bucket, at least
_TRIES = 1_000  # random seeds that a user tries for one without targets


@dataclass(frozen=True)
class SeedCrafter(HashCrafter):
    """A report is a hash seed and a bucket. Laws hold under an ideal hash, those of reports of a
    given size to 1 %.
    """

    oracle: OLH

    model = "searched"

    def craft(
        self, chosen_items: Int64Array, rng: Rng, strategy: Strategy = DEFAULT_STRATEGY
    ) -> Reports:
        """Return a seed found by `search`, and its best bucket.

        - "most", "projected": the seed that hashes most chosen items to one bucket. For one chosen
          item every seed is perfect, so it is a random one.
        - "balanced": the greatest (chosen items in the bucket) - |L' - (items in it)|, L' =
          floor(d/g).
        - "honest": the size nearest to the one drawn; among these, the most chosen items.
        """
        (m, r), d, g = chosen_items.shape, self.oracle.domain_size, self.oracle.hash_range
        items = chosen_items.astype(np.uint32)
        aim, search = strategy.aim, strategy.search
        if aim in ("balanced", "honest"):
            exact, tries = aim == "honest", self._tries(search)
            aims = self.oracle.laws.size_law().draw(m, rng) if exact else np.full(m, d // g)
            return self.oracle.reports(*sized_seeds(items, aims, d, g, tries, rng, exact=exact))
        if r == 1:
            return self.oracle.encode(chosen_items[np.arange(m), rng.integers(r, size=m)], rng)
        seeds = (
            scanned_seeds(items, g, rng)
            if search == "exhaustive"
            else sampled_seeds(items, g, search, rng)
        )
        return self.oracle.reports(seeds, fullest_buckets(seeds, items, g, rng))

    def expected_hits(
        self, r: int, strategy: Strategy = DEFAULT_STRATEGY, m: int = 1
    ) -> tuple[float, float]:
        d, g = self.oracle.domain_size, self.oracle.hash_range
        aim, search = strategy.aim, strategy.search
        if aim in ("balanced", "honest"):
            sizes = self.oracle.laws.size_law() if aim == "honest" else d // g
            return sized_means(r, d, g, self._tries(search), sizes)
        rest = (d - r) * self.oracle.q
        if r == 1:
            return 1.0, rest
        if search == "exhaustive":
            return exhaustive_hits(r, g, m), rest
        return most_hits(r, g, int(search)), rest

    def hit_laws(self, targets: Int64Array, search: int) -> FloatArray:
        r, g = targets.size, self.oracle.hash_range
        return np.stack([law_near(r, g, search, goal) for goal in range(r + 1)])

    def hit_reports(self, targets: Int64Array, law: FloatArray, search: int) -> CraftedReports:
        """Return random buckets, and seeds that hash h targets there.

        It is the seed with the number nearest to h among `search` random ones; of two as near, the
        one with fewer hits.
        """
        d, g = self.oracle.domain_size, self.oracle.hash_range

        def craft(m: int, rng: Rng) -> Reports:
            hit_goals = rng.choice(law.size, m, p=law)
            buckets: UInt32Array = rng.integers(g, size=m, dtype=np.uint32)
            seeds = seeds_near(hit_goals, buckets, targets.astype(np.uint32), g, search, rng)
            return self.oracle.reports(seeds, buckets)

        def support(m: int) -> FloatArray:
            mean = float(law @ self.hit_laws(targets, search) @ np.arange(law.size))
            return support_of_targets(d, targets, mean, (d - targets.size) * (1 / g))

        return craft, support

    def joint_reports(
        self, targets: Int64Array, rate: float, fixed_item: int | None
    ) -> CraftedReports:
        """Return scanned seeds with all targets in one bucket, or random ones and a bucket of none.

        Raises ParameterError where the hash has fewer than 524,288 seeds with all in one bucket.
        """
        g, r = self.oracle.hash_range, targets.size
        items = (targets if fixed_item is None else np.append(targets, fixed_item)).astype(
            np.uint32
        )
        if g ** (items.size - 1) * _LEAST_SEEDS > SEEDS:
            raise ParameterError(
                f"too few {self.oracle.protocol} seeds put {items.size} items into one of {g} "
                "buckets: name fewer targets"
            )
        missed = (1 - 1 / g) ** r
        support = np.full(self.oracle.domain_size, self.oracle.q)
        # Users whose tries all had a target send the last one.
        support[targets] = rate + (1 - rate) * (1 - missed) ** (_TRIES - 1) * self.oracle.q
        if fixed_item is not None:
            support[fixed_item] = 1.0

        def craft(m: int, rng: Rng) -> Reports:
            is_full = rng.random(m) < rate
            seeds = np.empty(m, np.uint32)
            seeds[is_full] = exhaustive_seeds(items, g, int(is_full.sum()), rng)
            buckets = rng.integers(g, size=m, dtype=np.uint32)
            rest = np.flatnonzero(~is_full)
            for _ in range(_TRIES):
                seeds[rest] = rng.integers(SEEDS, size=rest.size, dtype=np.uint32)
                hits = counting.olh_buckets(seeds[rest, None], items, g)
                if fixed_item is not None:
                    buckets[rest] = hits[:, -1]
                rest = rest[(hits[:, :r] == buckets[rest, None]).any(axis=1)]
                if not rest.size:
                    break
            buckets[is_full] = counting.olh_buckets(seeds[is_full], items[:1], g)
            return self.oracle.reports(seeds, buckets)

        return craft, lambda m: support

    def log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        # A random seed, as an honest one, and the bucket of the target under it.
        return np.zeros(len(reports))

    def uniform_reports(self, m: int, rng: Rng) -> Reports:
        seeds = rng.integers(0, SEEDS, size=m, dtype=np.uint32)
        return self.oracle.reports(seeds, rng.integers(self.oracle.hash_range, size=m))

    def report_of_size(self, size: float, rng: Rng, search: int) -> Reports:
        """Return the first bucket of `search` random seeds whose size is nearest to `size`."""
        seed, bucket = sized_bucket(
            size, self.oracle.domain_size, self.oracle.hash_range, search, rng
        )
        return self.oracle.reports(np.array([seed]), np.array([bucket]))

    def _tries(self, search: Search) -> int:
        if search == "exhaustive":
            raise ParameterError(
                f"an exhaustive search of {self.oracle.protocol} seeds finds most items, not a "
                "target size"
            )
        return search
