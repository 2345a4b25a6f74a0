"""Search for hash seeds that put many chosen items into one bucket.

Source: Cao, Jia and Gong, USENIX Security 2021.
"""

import math
from collections.abc import Iterator

import numpy as np

from ldprecover import counting
from ldprecover.counting.tiles import tiles
from ldprecover.distributions import log_choose
from ldprecover.protocols.olh import SEEDS
from ldprecover.types import Int64Array, Rng, UInt32Array

_BLOCK = 1 << 15  # seeds of a block while sampling: its columns stay in the cache
_SCAN_BLOCK = 1 << 16  # seeds of a block while scanning
# Odd, so its multiples visit every seed once; about 2^32 over the golden ratio spreads them evenly.
_STRIDE = 0x9E3779B1


def most_hits(seeds: UInt32Array, chosen_items: UInt32Array, g: int) -> UInt32Array:
    """Return how many of its row's items each seed has in its fullest bucket.

    `seeds` is (m, s), `chosen_items` (m, r) or (1, r). The result is (m, s), in the smallest
    unsigned type. Costs s·m·r hashes and s·m·r·min(g, r) byte comparisons.
    """
    r = chosen_items.shape[1]
    small = np.min_scalar_type(g - 1)
    buckets = [
        counting.olh_buckets(seeds, chosen_items[:, j : j + 1], g).astype(small) for j in range(r)
    ]
    best = np.zeros(seeds.shape, dtype=np.min_scalar_type(r))
    for candidate in range(g) if g <= r else buckets:
        hits = np.zeros_like(best)
        for bucket in buckets:
            hits += bucket == candidate
        np.maximum(best, hits, out=best)
    return best


def fullest_buckets(seeds: UInt32Array, chosen_items: UInt32Array, g: int, rng: Rng) -> UInt32Array:
    """Return for each of m seeds a random one of the buckets with most of its row's r items."""
    buckets = counting.olh_buckets(seeds[:, None], chosen_items, g)
    hits = np.stack(
        [(buckets == buckets[:, j : j + 1]).sum(axis=1) for j in range(chosen_items.shape[1])],
        axis=1,
    )
    # Tied buckets contain equally many items, so a random item of theirs picks a random bucket.
    keys = np.where(hits == hits.max(axis=1, keepdims=True), rng.random(hits.shape), -1.0)
    return np.take_along_axis(buckets, keys.argmax(axis=1)[:, None], axis=1)[:, 0]


def sampled_seeds(chosen_items: UInt32Array, g: int, budget: int, rng: Rng) -> UInt32Array:
    """Return for each of m rows the first best of `budget` random seeds drawn for this row.

    A perfect seed, which puts all r items into one bucket, has probability g^(1-r) in each draw.
    """
    best_seeds = np.empty(len(chosen_items), dtype=np.uint32)
    for users, seeds in tried_seeds(len(chosen_items), budget, rng):
        best = most_hits(seeds, chosen_items[users], g).argmax(axis=1)
        best_seeds[users] = seeds[np.arange(len(seeds)), best]
    return best_seeds


def seeds_near(
    goals: Int64Array,
    buckets: UInt32Array,
    items: UInt32Array,
    g: int,
    budget: int,
    rng: Rng,
) -> UInt32Array:
    """Return for each of m users the nearest to its goal of `budget` random seeds.

    The goal is the number of the r items that the seed hashes to the user's bucket. Of two seeds as
    near, the one with fewer hits is taken.
    """
    best_seeds = np.empty(len(goals), dtype=np.uint32)
    for users, seeds in tried_seeds(len(goals), budget, rng):
        goal, bucket = goals[users, None], buckets[users, None]
        hits = np.zeros(seeds.shape, dtype=np.int64)
        for item in items:
            hits += counting.olh_buckets(seeds, item, g) == bucket
        best = (2 * np.abs(hits - goal) + (hits > goal)).argmin(axis=1)
        best_seeds[users] = seeds[np.arange(len(goal)), best]
    return best_seeds


def tried_seeds(m: int, budget: int, rng: Rng) -> Iterator[tuple[slice, UInt32Array]]:
    """Yield blocks of the m users, each with the `budget` random seeds that its users try."""
    for users in tiles((m, budget), _BLOCK):
        size = (users.stop - users.start, budget)
        yield users, rng.integers(0, SEEDS, size=size, dtype=np.uint32)


def scanned_seeds(chosen_items: UInt32Array, g: int, rng: Rng) -> UInt32Array:
    """Return for each of m rows a seed by `exhaustive_seeds`, one scan for each distinct row."""
    best_seeds = np.empty(len(chosen_items), dtype=np.uint32)
    rows, group = np.unique(chosen_items, axis=0, return_inverse=True)
    for i, items in enumerate(rows):
        members = np.flatnonzero(group == i)
        best_seeds[members] = exhaustive_seeds(items, g, members.size, rng)
    return best_seeds


def exhaustive_seeds(
    items: UInt32Array, g: int, m: int, rng: Rng, *, limit: int = SEEDS
) -> UInt32Array:
    """Return m seeds that hash most of the r items to one bucket, distinct while they suffice.

    Usually they are perfect: one seed in g^(r-1) is, so the scan ends after about m g^(r-1) seeds.
    For 20,520 users, 10 targets and g = 3 these are 4·10^8 seeds, which take seconds. If `limit`
    seeds are expected to contain fewer than m perfect ones, all are scanned (2^32: minutes) and the
    best m are taken. The scan begins at a random seed and jumps evenly over the whole range. Users
    share seeds only if fewer than m were as good as expected.
    """
    if m == 0:
        return np.empty(0, dtype=np.uint32)
    start = int(rng.integers(SEEDS))
    aim = _aim(len(items), g, m, limit)
    while not (matches := _scan(items, g, aim, m, start, limit)).size:
        aim -= 1
    return np.resize(matches, m)


def _scan(items: UInt32Array, g: int, aim: int, m: int, start: int, limit: int) -> UInt32Array:
    """Return at most m of `limit` seeds with `aim` or more items in one bucket, best first."""
    r = len(items)
    steps = np.arange(_SCAN_BLOCK, dtype=np.uint32) * np.uint32(_STRIDE)
    seeds_of_hits: dict[int, list[UInt32Array]] = {hits: [] for hits in range(r, aim - 1, -1)}
    missing = dict.fromkeys(seeds_of_hits, m)
    for block in range(0, limit, _SCAN_BLOCK):
        seeds = steps[: limit - block] + np.uint32((start + block * _STRIDE) % SEEDS)
        if aim == r:
            matches = {r: _perfect(seeds, items, g)}
        else:
            hits = most_hits(seeds[None, :], items[None, :], g)[0]
            matches = {level: seeds[hits == level] for level in seeds_of_hits}
        for level, good in matches.items():
            seeds_of_hits[level].append(good[: missing[level]])
            missing[level] -= seeds_of_hits[level][-1].size
        if missing[r] == 0:
            break
    return np.concatenate([seeds for level in seeds_of_hits.values() for seeds in level])[:m]


def _perfect(seeds: UInt32Array, items: UInt32Array, g: int) -> UInt32Array:
    """Return the seeds that hash all items to one bucket.

    Each item is hashed only under the seeds that are perfect for the items before it.
    """
    first = counting.olh_buckets(seeds, items[:1], g)
    for j in range(1, len(items)):
        together = counting.olh_buckets(seeds, items[j : j + 1], g) == first
        seeds, first = seeds[together], first[together]
    return seeds


def _aim(r: int, g: int, m: int, limit: int) -> int:
    """Return the largest k for which `limit` seeds are expected to contain m with k items together.

    The share of seeds with k of r items in one bucket is g P(Bin(r, 1/g) >= k). This is exact for k
    > r/2, where two buckets cannot both contain k, and too high otherwise.
    """
    share = 0.0
    for k in range(r, 1, -1):
        share += g * math.exp(log_choose(r, k) - k * math.log(g) + (r - k) * math.log1p(-1 / g))
        if share * limit >= m:
            return k
    return 1  # every seed has one item in some bucket
