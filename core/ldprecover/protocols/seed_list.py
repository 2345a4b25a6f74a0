"""The public list of hash seeds that tickets pick from, and what sharing it does to estimates.

The list of M seeds begins every longer one: seed i is xxHash32 of i, as four little-endian bytes,
with the seed 0. That is a bijection of 32 bits, so the seeds differ, and nobody can have chosen
them to favour an item.

Two items that share a bucket under many seeds of the list are supported together more often than
chance has it. Over M seeds the share of those under which v and w do, coll(v, w), is known, so the
estimate takes it into account: K f = (C/n - q)/(p - q) with K(v, w) = (g coll(v, w) - 1)/(g - 1),
whose diagonal is 1, and whose other entries tend to 0 with 1/sqrt(M(g-1)).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ldprecover import counting
from ldprecover.counting.xxhash32 import hash_items
from ldprecover.types import FloatArray, UInt16Array, UInt32Array

_CELLS = 1 << 22  # of a block of indicators


@lru_cache(maxsize=16)
def seed_list(m: int) -> UInt32Array:
    """Return the first m seeds of the list."""
    seeds = hash_items(np.zeros(1, np.uint32), np.arange(m, dtype=np.uint32))
    seeds.flags.writeable = False  # every caller gets this one
    return seeds


@lru_cache(maxsize=4)
def bucket_table(m: int, g: int, d: int) -> UInt16Array:
    """Return the bucket of each of d items under each of m seeds, an (m, d) array."""
    buckets = counting.olh_buckets(seed_list(m)[:, None], np.arange(d, dtype=np.uint32), g).astype(
        np.uint16
    )
    buckets.flags.writeable = False
    return buckets


@dataclass(frozen=True, eq=False)
class Collisions:
    """What estimates and their variances need to know of a list.

    With B_s the (g, d) indicators of an item's bucket under seed s and L_s = K^-1 B_s^T:

    - `gram` is K and `inverse` K^-1, (d, d);
    - `cells` is sum_{s,a} L_s(v, a)^2/M, of every bucket alike, (d,);
    - `own` is sum_s L_s(v, H_s(u))^2/M, of the buckets of item u, in row v and column u, (d, d);
    - `sums` holds both of these for the sum of all estimates: a number, and one for each item u.
    """

    gram: FloatArray
    inverse: FloatArray
    cells: FloatArray
    own: FloatArray
    sums: tuple[float, FloatArray]

    @property
    def inflation(self) -> FloatArray:
        """The diagonal of K^-1: by how much the list raises each item's variance, near f = 0."""
        return np.diag(self.inverse)


@lru_cache(maxsize=4)
def collisions(m: int, g: int, d: int) -> Collisions:
    """Return what a list of m seeds does to d items in g buckets; O(d^2 m g), once for each
    process.
    """
    together = np.zeros((d, d), np.float32)  # exact: counts of at most 4,096 seeds
    for indicators in _indicators(m, g, d):
        together += indicators.T @ indicators
    gram: FloatArray = (g * together.astype(np.float64) / m - 1) / (g - 1)
    inverse: FloatArray = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    cells, own = np.zeros(d), np.zeros((d, d))
    all_cells, all_own = 0.0, np.zeros(d)
    narrow = inverse.astype(np.float32)
    for indicators in _indicators(m, g, d):
        weights = narrow @ indicators.T
        total = weights.sum(axis=0) ** 2
        all_cells += float(total.sum())
        all_own += total @ indicators
        np.square(weights, out=weights)
        cells += weights.sum(axis=1)
        own += weights @ indicators
    return Collisions(gram, inverse, cells / m, own / m, (all_cells / m, all_own / m))


def _indicators(m: int, g: int, d: int) -> Iterator[np.ndarray]:
    """Yield blocks of the (m g, d) matrix whose row (s, a) says which items seed s hashes to bucket
    a.
    """
    table = bucket_table(m, g, d)
    step = max(1, _CELLS // (g * d))
    for start in range(0, m, step):
        part = table[start : start + step]
        rows = np.arange(len(part))[:, None] * g + part
        indicators = np.zeros((len(part) * g, d), np.float32)
        indicators[rows, np.arange(d)] = 1.0
        yield indicators
