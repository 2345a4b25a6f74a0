"""Optimised local hashing: a report is a hash seed and a bucket."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import kernels
from ldprecover.errors import ParameterError
from ldprecover.protocols.base import FrequencyOracle
from ldprecover.sampling import below, keep_threshold, words_from
from ldprecover.types import BoolArray, Int64Array, Reports, UInt32Array

__all__ = ["MAX_HASH_RANGE", "OLH", "default_hash_range"]

MAX_HASH_RANGE = 65_536

_REPORT = np.dtype([("seed", "<u4"), ("bucket", "<u2")])


def default_hash_range(epsilon: float) -> int:
    """Return g = ceil(e^eps + 1), the paper's choice (III-B)."""
    return math.ceil(math.exp(epsilon) + 1)


@dataclass(frozen=True)
class OLH(FrequencyOracle):
    """Optimised local hashing (paper, III-B; Wang et al., USENIX Security 2017).

    The report is a pair (seed, bucket): the user's item is hashed with a fresh random seed into
    one of g buckets, and the bucket is kept with probability p = e^eps/(e^eps+g-1), else replaced
    by one of the others. It supports every item that its seed hashes to its bucket, so q = 1/g.

    The hash is xxHash32 of the item index as four little-endian bytes; bucket = (hash * g) >> 32.
    """

    hash_range: int

    protocol = "olh"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.hash_range, bool) or not isinstance(self.hash_range, int):
            raise ParameterError("hash_range must be an integer")
        if not 2 <= self.hash_range <= MAX_HASH_RANGE:
            raise ParameterError(f"hash_range must be from 2 to {MAX_HASH_RANGE}, not {self.hash_range}")

    @property
    def p(self) -> float:
        e = math.exp(self.epsilon)
        return e / (e + self.hash_range - 1)

    @property
    def q(self) -> float:
        return 1 / self.hash_range

    @property
    def report_dtype(self) -> np.dtype:
        return _REPORT

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        reports = self.encode(items, rng)
        words = words_from(rng)
        g, n = self.hash_range, len(reports)
        keep = words(n) < np.uint64(keep_threshold(self.epsilon, g))
        own = reports["bucket"].astype(np.uint64)
        other = (own + np.uint64(1) + below(g - 1, n, words)) % np.uint64(g)
        reports["bucket"] = np.where(keep, own, other)
        return reports

    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        held = self._items(items)
        seeds = (words_from(rng)(held.size) >> np.uint64(32)).astype(np.uint32)
        return self.reports(seeds, self.buckets(seeds, held))

    def buckets(self, seeds: ArrayLike, items: ArrayLike) -> UInt32Array:
        """Return the bucket that each seed hashes its item to; the two arrays broadcast."""
        return kernels.olh_buckets(np.asarray(seeds, np.uint32), np.asarray(items, np.uint32), self.hash_range)

    def reports(self, seeds: ArrayLike, buckets: ArrayLike) -> Reports:
        """Return the columns joined into packed rows."""
        seeds = np.asarray(seeds)
        rows = np.empty(seeds.shape, dtype=self.report_dtype)
        rows["seed"], rows["bucket"] = seeds, buckets
        return rows

    def check(self, reports: Reports) -> None:
        self._refuse_first(reports["bucket"] >= self.hash_range, f"the bucket must be from 0 to {self.hash_range - 1}")

    def support_counts(self, reports: Reports) -> Int64Array:
        return kernels.olh_counts(reports["seed"], reports["bucket"], self.domain_size, self.hash_range)

    def supports(self, reports: Reports) -> BoolArray:
        items = np.arange(self.domain_size, dtype=np.uint32)
        hit: BoolArray = self.buckets(reports["seed"][:, None], items) == reports["bucket"][:, None]
        return hit
