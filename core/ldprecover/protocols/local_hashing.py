"""Local hashing: a report is a hash function and the perturbed bucket of the user's item."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.protocols.sampling import keep_threshold


@dataclass(frozen=True)
class LocalHashing(FrequencyOracle):
    """A protocol whose hash functions have `hash_range` buckets.

    A report has the bucket of the user's item with probability p, else one of the others. It
    supports the items that its hash function has in its bucket.
    """

    hash_range: int

    @property
    def p(self) -> float:
        e = math.exp(self.epsilon)
        return e / (e + self.hash_range - 1)

    @property
    def q(self) -> float:
        return 1 / self.hash_range

    @property
    def thresholds(self) -> dict[str, int]:
        return {"keep_below": keep_threshold(self.epsilon, self.hash_range)}
