"""Searching hash seeds: those that put many chosen items into one bucket (Cao et al., USENIX
Security 2021).
"""

import math
from collections.abc import Iterator

import numpy as np

from ldprecover import counting
from ldprecover.types import Int64Array, UInt32Array

SEEDS = 1 << 32
"""Number of seeds of the hash."""

_BLOCK = 1 << 15  # seeds hashed at once while sampling: a block's columns stay in the cache
_SCAN_BLOCK = 1 << 16
_STRIDE = (
    0x9E3779B1  # odd, so that its multiples visit every seed once, spread evenly from the start
)


def most_hits(seeds: UInt32Array, wanted: UInt32Array, g: int) -> UInt32Array:
    """Return how many of its row's items each seed has in its fullest bucket.

    `seeds` is (m, s), `wanted` (m, r) or (1, r); the result is (m, s), in the smallest unsigned
    type. Costs s·m·r hashes and s·m·r·min(g, r) byte comparisons.
    """
    r = wanted.shape[1]
    small = np.min_scalar_type(g - 1)
    buckets = [counting.olh_buckets(seeds, wanted[:, j : j + 1], g).astype(small) for j in range(r)]
    best = np.zeros(seeds.shape, dtype=np.min_scalar_type(r))
    for candidate in range(g) if g <= r else buckets:
        hits = np.zeros_like(best)
        for bucket in buckets:
            hits += bucket == candidate
        np.maximum(best, hits, out=best)
    return best


def fullest_buckets(
    seeds: UInt32Array, wanted: UInt32Array, g: int, rng: np.random.Generator
) -> UInt32Array:
    """Return, for each of m seeds, the bucket that holds most of its row's r items; ties at
    random.
    """
    buckets = counting.olh_buckets(seeds[:, None], wanted, g)
    hits = np.stack(
        [(buckets == buckets[:, j : j + 1]).sum(axis=1) for j in range(wanted.shape[1])], axis=1
    )
    # Tied buckets hold equally many items, so a random one of their items is a random one of them.
    keys = np.where(hits == hits.max(axis=1, keepdims=True), rng.random(hits.shape), -1.0)
    return np.take_along_axis(buckets, keys.argmax(axis=1)[:, None], axis=1)[:, 0]


def sampled_seeds(
    wanted: UInt32Array, g: int, budget: int, rng: np.random.Generator
) -> UInt32Array:
    """Return for each of the m rows the best of `budget` random seeds drawn for it alone; ties to
    the first.

    A perfect seed, one bucket for all r items, has probability g^(1-r) a draw.
    """
    found = np.empty(len(wanted), dtype=np.uint32)
    for users, seeds in tried_seeds(len(wanted), budget, rng):
        best = most_hits(seeds, wanted[users], g).argmax(axis=1)
        found[users] = seeds[np.arange(len(seeds)), best]
    return found


def seeds_near(
    wishes: Int64Array,
    buckets: UInt32Array,
    items: UInt32Array,
    g: int,
    budget: int,
    rng: np.random.Generator,
) -> UInt32Array:
    """Return for each of m users, of `budget` random seeds of its own, the one nearest to its wish.

    The wish is how many of the r items the seed hashes to the user's bucket; the smaller of two as
    near.
    """
    found = np.empty(len(wishes), dtype=np.uint32)
    for users, seeds in tried_seeds(len(wishes), budget, rng):
        wish, bucket = wishes[users, None], buckets[users, None]
        hits = np.zeros(seeds.shape, dtype=np.int64)
        for item in items:
            hits += counting.olh_buckets(seeds, item, g) == bucket
        best = (2 * np.abs(hits - wish) + (hits > wish)).argmin(axis=1)
        found[users] = seeds[np.arange(len(wish)), best]
    return found


def tried_seeds(
    m: int, budget: int, rng: np.random.Generator
) -> Iterator[tuple[slice, UInt32Array]]:
    """Yield, some users at a time, which of the m they are and the `budget` random seeds that each
    of them tries.
    """
    step = max(1, _BLOCK // budget)
    for start in range(0, m, step):
        users = slice(start, min(start + step, m))
        yield users, rng.integers(0, SEEDS, size=(users.stop - start, budget), dtype=np.uint32)


def scanned_seeds(wanted: UInt32Array, g: int, rng: np.random.Generator) -> UInt32Array:
    """Return for each of the m rows a seed by `exhaustive_seeds`, scanning once for each distinct
    row.
    """
    found = np.empty(len(wanted), dtype=np.uint32)
    rows, group = np.unique(wanted, axis=0, return_inverse=True)
    for i, items in enumerate(rows):
        members = np.flatnonzero(group == i)
        found[members] = exhaustive_seeds(items, g, members.size, rng)
    return found


def exhaustive_seeds(
    items: UInt32Array, g: int, m: int, rng: np.random.Generator, *, limit: int = SEEDS
) -> UInt32Array:
    """Return the m seeds, all distinct, that hash most of the r items to one bucket.

    As a rule they are perfect: one seed in g^(r-1) is, so scanning ends after about m g^(r-1) seeds
    (20,520 users, 10 targets, g = 3: 4·10^8 seeds, seconds). Where `limit` seeds are expected to
    hold fewer than m perfect ones, all of them are scanned (2^32: minutes) and the best m are
    taken. The scan begins at a random seed and jumps evenly over the whole range. Seeds are shared
    only where fewer than m were as good as expected.
    """
    if m == 0:
        return np.empty(0, dtype=np.uint32)
    start = int(rng.integers(SEEDS))
    aim = _aim(len(items), g, m, limit)
    while not (found := _scan(items, g, aim, m, start, limit)).size:
        aim -= 1
    return np.resize(found, m)


def _scan(items: UInt32Array, g: int, aim: int, m: int, start: int, limit: int) -> UInt32Array:
    """Return at most m seeds with `aim` or more items in one bucket: the best of `limit`, best
    first.
    """
    r = len(items)
    steps = np.arange(_SCAN_BLOCK, dtype=np.uint32) * np.uint32(_STRIDE)
    kept: dict[int, list[UInt32Array]] = {hits: [] for hits in range(r, aim - 1, -1)}
    missing = dict.fromkeys(kept, m)
    for block in range(0, limit, _SCAN_BLOCK):
        seeds = steps[: limit - block] + np.uint32((start + block * _STRIDE) % SEEDS)
        if aim == r:
            found = {r: _perfect(seeds, items, g)}
        else:
            hits = most_hits(seeds[None, :], items[None, :], g)[0]
            found = {level: seeds[hits == level] for level in kept}
        for level, good in found.items():
            kept[level].append(good[: missing[level]])
            missing[level] -= kept[level][-1].size
        if missing[r] == 0:
            break
    return np.concatenate([seeds for level in kept.values() for seeds in level])[:m]


def _perfect(seeds: UInt32Array, items: UInt32Array, g: int) -> UInt32Array:
    """Return the seeds that hash all items to one bucket, hashing an item only under the seeds
    still in play.
    """
    first = counting.olh_buckets(seeds, items[:1], g)
    for j in range(1, len(items)):
        together = counting.olh_buckets(seeds, items[j : j + 1], g) == first
        seeds, first = seeds[together], first[together]
    return seeds


def _aim(r: int, g: int, m: int, limit: int) -> int:
    """Return the largest k such that `limit` seeds are expected to hold m with k of r items in one
    bucket.

    The share of such seeds is g P(Bin(r, 1/g) >= k): exact for k > r/2, where two buckets cannot
    both hold k, and above the share otherwise.
    """
    share = 0.0
    for k in range(r, 1, -1):
        log_ways = math.lgamma(r + 1) - math.lgamma(k + 1) - math.lgamma(r - k + 1)
        share += g * math.exp(log_ways - k * math.log(g) + (r - k) * math.log1p(-1 / g))
        if share * limit >= m:
            return k
    return 1  # every seed has one item in some bucket
