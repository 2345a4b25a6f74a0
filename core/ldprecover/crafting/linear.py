"""Crafting reports of linear local hashing: the seeds that put targets into one bucket, solved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldprecover.crafting.cell_crafter import CellCrafter
from ldprecover.protocols.llh import LLH
from ldprecover.types import Int64Array, UInt32Array


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
