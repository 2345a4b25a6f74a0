"""Crafting reports of a hash seed and a bucket: malicious users search for their seeds."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.crafting.crafter import (
    DEFAULT_SEARCH,
    Aim,
    CoinCrafter,
    Crafter,
    JointReports,
    Search,
    support_of_targets,
)
from ldprecover.crafting.search_laws import exhaustive_hits, hits_near, most_hits, sized_means
from ldprecover.crafting.seed_search import (
    SEEDS,
    exhaustive_seeds,
    fullest_buckets,
    sampled_seeds,
    scanned_seeds,
    seeds_near,
)
from ldprecover.crafting.size_search import sized_bucket, sized_seeds
from ldprecover.distributions import binomial_law
from ldprecover.errors import ParameterError
from ldprecover.laws import SizeLaw
from ldprecover.types import FloatArray, Int64Array, Reports, UInt32Array

_LEAST_SEEDS = 1 << 19  # all seeds of the hash that put a set into one bucket, at least
_TRIES = 1_000  # random seeds that a user tries for one without targets

Join = Callable[[ArrayLike, ArrayLike], Reports]
"""Joins seeds and buckets into packed reports."""


@dataclass(frozen=True)
class SeedCrafter(Crafter):
    """A report is a hash seed and one of `hash_range` buckets. Laws hold under an ideal hash, those
    of reports of a given size to 1 %.

    `encode(items, rng)` and `join(seeds, buckets)` make packed reports; `sizes` is the law of
    honest sizes.
    """

    hash_range: int
    sizes: SizeLaw
    encode: Callable[[Int64Array, np.random.Generator], Reports]
    join: Join

    model = "searched"

    @property
    def coins(self) -> CoinCrafter:
        return _SeedCoins(self.domain_size, self.hash_range, self.join)

    @property
    def encoded_others(self) -> float:
        return (self.domain_size - 1) * self.q

    def craft(
        self,
        chosen_items: Int64Array,
        rng: np.random.Generator,
        *,
        aim: Aim = "most",
        search: Search = DEFAULT_SEARCH,
    ) -> Reports:
        """Return a seed found by `search`, and its best bucket.

        - "most", "projected": the seed that hashes most chosen items to one bucket. For one chosen
          item every seed is perfect, so it is a random one.
        - "balanced": the greatest (chosen items in the bucket) - |L' - (items in it)|, L' =
          floor(d/g).
        - "honest": the size nearest to the one drawn; among these, the most chosen items.
        """
        (m, r), d, g = chosen_items.shape, self.domain_size, self.hash_range
        items = chosen_items.astype(np.uint32)
        if aim in ("balanced", "honest"):
            exact, tries = aim == "honest", self._tries(search)
            aims = self.sizes.draw(m, rng) if exact else np.full(m, d // g)
            return self.join(*sized_seeds(items, aims, d, g, tries, rng, exact=exact))
        if r == 1:
            return self.encode(chosen_items[np.arange(m), rng.integers(r, size=m)], rng)
        seeds = (
            scanned_seeds(items, g, rng)
            if search == "exhaustive"
            else sampled_seeds(items, g, search, rng)
        )
        return self.join(seeds, fullest_buckets(seeds, items, g, rng))

    def expected_hits(
        self, r: int, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH, m: int = 1
    ) -> tuple[float, float]:
        d, g = self.domain_size, self.hash_range
        if aim in ("balanced", "honest"):
            sizes = self.sizes if aim == "honest" else d // g
            return sized_means(r, d, g, self._tries(search), sizes)
        rest = (d - r) * self.q
        if r == 1:
            return 1.0, rest
        if search == "exhaustive":
            return exhaustive_hits(r, g, m), rest
        return most_hits(r, g, int(search)), rest

    def joint_reports(
        self, targets: Int64Array, rate: float, fixed_item: int | None
    ) -> JointReports:
        """Return scanned seeds with all targets in one bucket, or random ones and a bucket of none.

        Raises ParameterError where the hash has fewer than 524,288 seeds with all in one bucket.
        """
        g, r = self.hash_range, targets.size
        items = (targets if fixed_item is None else np.append(targets, fixed_item)).astype(
            np.uint32
        )
        if g ** (items.size - 1) * _LEAST_SEEDS > SEEDS:
            raise ParameterError(
                f"too few {self.protocol} seeds put {items.size} items into one of {g} buckets: "
                "name fewer targets"
            )
        missed = (1 - 1 / g) ** r
        support = np.full(self.domain_size, self.q)
        # Users whose tries all had a target send the last one.
        support[targets] = rate + (1 - rate) * (1 - missed) ** (_TRIES - 1) * self.q
        if fixed_item is not None:
            support[fixed_item] = 1.0

        def craft(m: int, rng: np.random.Generator) -> Reports:
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
            return self.join(seeds, buckets)

        return craft, support

    def log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        # A random seed, as an honest one, and the bucket of the target under it.
        return np.zeros(len(reports))

    def uniform_reports(self, m: int, rng: np.random.Generator) -> Reports:
        seeds = rng.integers(0, SEEDS, size=m, dtype=np.uint32)
        return self.join(seeds, rng.integers(self.hash_range, size=m))

    @property
    def uniform_support(self) -> float:
        return self.q

    def report_of_size(
        self, size: float, rng: np.random.Generator, *, search: int = DEFAULT_SEARCH
    ) -> Reports:
        """Return the first bucket of `search` random seeds whose size is nearest to `size`."""
        seed, bucket = sized_bucket(size, self.domain_size, self.hash_range, search, rng)
        return self.join(np.array([seed]), np.array([bucket]))

    def _tries(self, search: Search) -> int:
        if search == "exhaustive":
            raise ParameterError(
                f"an exhaustive search of {self.protocol} seeds finds most items, not a target size"
            )
        return search


@dataclass(frozen=True)
class _SeedCoins(CoinCrafter):
    """A random bucket, and a seed that hashes h of the r targets there, h from Binomial(r, rate).

    It is the seed with the number nearest to h among `search` random ones; of two as near, the
    smaller number.
    """

    domain_size: int
    hash_range: int
    join: Join

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
        hit_goals = rng.binomial(targets.size, rate, size=m)
        buckets: UInt32Array = rng.integers(self.hash_range, size=m, dtype=np.uint32)
        seeds = seeds_near(
            hit_goals, buckets, targets.astype(np.uint32), self.hash_range, search, rng
        )
        return self.join(seeds, buckets)

    def support(
        self, targets: Int64Array, rate: float, *, search: int = DEFAULT_SEARCH
    ) -> FloatArray:
        r, d, g = targets.size, self.domain_size, self.hash_range
        near = [hits_near(r, g, search, goal) for goal in range(r + 1)]
        hits = float(binomial_law(r, rate) @ near)
        return support_of_targets(d, targets, hits, (d - r) * (1 / g))
