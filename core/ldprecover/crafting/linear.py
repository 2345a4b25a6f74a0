"""Crafting reports of linear local hashing: the seeds that put targets into one bucket, solved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldprecover.crafting.cell_crafter import CellCrafter
from ldprecover.crafting.crafter import CraftedReports
from ldprecover.protocols.llh import LLH
from ldprecover.types import FloatArray, Int64Array, Reports, Rng, UInt32Array


@dataclass(frozen=True)
class LinearCrafter(CellCrafter):
    """A report is a seed r of g^k and a bucket y as the integer r g + y; seed 0 is never sent.

    Report 0 supports every item: several of them stand out, and a projection takes their gain.
    """

    oracle: LLH

    @property
    def never_sent(self) -> int:
        return self.oracle.hash_range

    def supporting(self, chosen_items: Int64Array) -> UInt32Array:
        """Return the reports that support all chosen items: seeds that give them one bucket."""
        oracle = self.oracle
        seeds = np.arange(1, oracle.seed_count)
        first, *others = chosen_items.tolist()
        buckets = oracle.buckets(seeds, first)
        for item in others:
            shared = oracle.buckets(seeds, item) == buckets
            seeds, buckets = seeds[shared], buckets[shared]
        return oracle.reports(seeds, buckets)

    def hit_laws(self, targets: Int64Array, search: int) -> FloatArray:
        hits, r = self.oracle.hits(targets), targets.size
        near = self._near(targets)
        return np.stack([np.bincount(hits[each], minlength=r + 1) / each.size for each in near])

    def hit_reports(self, targets: Int64Array, law: FloatArray, search: int) -> CraftedReports:
        """Return random ones of the reports that support the numbers nearest to the goal."""
        near = self._near(targets)

        def craft(m: int, rng: Rng) -> Reports:
            goals = rng.choice(law.size, m, p=law)
            return np.stack([rng.choice(each, size=m) for each in near])[goals, np.arange(m)]

        def support(m: int) -> FloatArray:
            return law @ [self.oracle.support_counts(each) / each.size for each in near]

        return craft, support

    def _near(self, targets: Int64Array) -> list[Reports]:
        """Return for each goal, 0 to r, the reports that support the numbers nearest to it."""
        hits = self.oracle.hits(targets)[self.never_sent :]
        miss = np.abs(hits - np.arange(targets.size + 1)[:, None])
        return [
            (np.flatnonzero(each == each.min()) + self.never_sent).astype("<u4") for each in miss
        ]
