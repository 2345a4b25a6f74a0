"""Crafting reports of linear local hashing: the seeds that put targets into one bucket, solved."""

from dataclasses import dataclass

import numpy as np

from ldprecover.counting.linear_hashing import buckets_of
from ldprecover.crafting.cell_crafter import CellCrafter
from ldprecover.types import Int64Array, UInt32Array


@dataclass(frozen=True)
class LinearCrafter(CellCrafter):
    """A report is a seed r of g^k and a bucket y as the integer r g + y; seed 0 is never sent.

    Report 0 supports every item: several of them stand out, and a projection takes their gain.
    """

    hash_range: int
    digits: int

    @property
    def never_sent(self) -> int:
        return self.hash_range

    def supporting(self, chosen_items: Int64Array) -> UInt32Array:
        """Return the reports that support all chosen items: seeds that give them one bucket."""
        seeds = np.arange(1, self.cells // self.hash_range)
        first, *others = (np.array(item) for item in chosen_items.tolist())
        buckets = self._buckets(seeds, first)
        for item in others:
            shared = self._buckets(seeds, item) == buckets
            seeds, buckets = seeds[shared], buckets[shared]
        return (seeds * self.hash_range + buckets).astype(np.uint32)

    def _buckets(self, seeds: Int64Array, item: Int64Array) -> Int64Array:
        return buckets_of(seeds, item, self.hash_range, self.digits)
