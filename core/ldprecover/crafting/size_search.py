"""Search for hash seeds with a bucket that contains many chosen items and has a given size."""

import numpy as np
from numpy.typing import NDArray

from ldprecover import counting
from ldprecover.counting.tiles import tiles
from ldprecover.counting.xxhash32 import bucket_ranges, hash_items
from ldprecover.crafting.seed_search import tried_seeds
from ldprecover.protocols.olh import SEEDS
from ldprecover.types import Int64Array, Rng, UInt32Array

_CELLS = 1 << 15  # (seed, item) pairs of a block, if one bucket of each seed is measured
_ALL_CELLS = 1 << 18  # (seed, item) and (seed, bucket) pairs of a block, if all buckets are


def worth(
    hits: Int64Array | int, sizes: Int64Array, aim: Int64Array | int, *, exact: bool
) -> Int64Array:
    """Return an integer that orders buckets, different for different (hits, size).

    - exact: the size nearest to the aim, then the smaller size, then most hits.
    - else: the greatest hits - |aim - size|, then most hits, then the smaller size.
    """
    scale = 1 << 20  # above any number of items
    miss, over = np.abs(sizes - aim), sizes > aim
    return hits - (2 * miss + over) * scale if exact else 2 * ((hits - miss) * scale + hits) - over


def sized_seeds(
    chosen_items: UInt32Array,
    aims: Int64Array,
    d: int,
    g: int,
    budget: int,
    rng: Rng,
    *,
    exact: bool,
) -> tuple[UInt32Array, UInt32Array]:
    """Return for each user the best of `budget` random seeds, and the best bucket of it.

    `chosen_items` is (m, r); `aims` (m,) are the target bucket sizes, over all d items. A bucket
    contains at least one chosen item. Buckets are measured from the most hits down. A user is done
    when no bucket of fewer hits could be better. That takes some dozen buckets, so the d items are
    hashed under few seeds.
    """
    m = len(chosen_items)
    seeds, buckets = np.empty(m, dtype=np.uint32), np.empty(m, dtype=np.uint32)
    for users, tried in tried_seeds(m, budget, rng):
        seeds[users], buckets[users] = _best_of(
            tried, chosen_items[users], aims[users], d, g, exact=exact
        )
    return seeds, buckets


def sized_bucket(size: float, d: int, g: int, budget: int, rng: Rng) -> tuple[int, int]:
    """Return the first of `budget` random seeds with a bucket of size nearest to `size`, and it."""
    seeds = rng.integers(0, SEEDS, size=budget, dtype=np.uint32)
    candidates: list[tuple[float, int, int]] = []
    for rows in tiles((budget, max(d, g)), _ALL_CELLS):
        block = seeds[rows]
        miss = np.abs(_all_sizes(block, d, g) - size)
        row, bucket = np.unravel_index(miss.argmin(), miss.shape)
        candidates.append((float(miss[row, bucket]), int(block[row]), int(bucket)))
    _, seed, bucket = min(candidates, key=lambda best: best[0])
    return seed, bucket


def bucket_sizes(seeds: UInt32Array, buckets: UInt32Array, d: int, g: int) -> Int64Array:
    """Return the number of the d items that each seed hashes to its bucket."""
    sizes = np.empty(len(seeds), dtype=np.int64)
    items = np.arange(d, dtype=np.uint32)
    for block in tiles((len(seeds), d), _CELLS):
        lo, width = bucket_ranges(buckets[block].astype(np.uint16), g)
        hit = hash_items(seeds[block, None], items) - lo[:, None] < width[:, None]
        sizes[block] = np.count_nonzero(hit, axis=1)
    return sizes


def _best_of(
    tried: UInt32Array, chosen_items: UInt32Array, aims: Int64Array, d: int, g: int, *, exact: bool
) -> tuple[UInt32Array, UInt32Array]:
    """Return the best of the seeds (m, s) for chosen items (m, r), and its bucket."""
    r = chosen_items.shape[1]
    small = np.min_scalar_type(g - 1)
    places = np.stack(
        [counting.olh_buckets(tried, chosen_items[:, j : j + 1], g).astype(small) for j in range(r)]
    )
    hits = _hits(places)
    best = np.full(len(tried), np.iinfo(np.int64).min)
    seeds, buckets = np.empty(len(tried), dtype=np.uint32), np.empty(len(tried), dtype=np.uint32)
    for level in range(r, 0, -1):
        unsettled = best < worth(level, aims, aims, exact=exact)
        if not unsettled.any():
            break
        j, user, s = np.nonzero((hits == level) & unsettled[None, :, None])
        candidates, bucket = tried[user, s], places[j, user, s].astype(np.uint32)
        value = worth(level, bucket_sizes(candidates, bucket, d, g), aims[user], exact=exact)
        np.maximum.at(best, user, value)
        taken = value == best[user]
        seeds[user[taken]], buckets[user[taken]] = candidates[taken], bucket[taken]
    return seeds, buckets


def _hits(places: NDArray[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """Return for each item the number of items in its bucket; 0 if an earlier item is in it."""
    hits = np.zeros(places.shape, dtype=np.min_scalar_type(len(places)))
    for j, place in enumerate(places):
        together = places == place
        hits[j] = together.sum(axis=0)
        hits[j][together[:j].any(axis=0)] = 0
    return hits


def _all_sizes(seeds: UInt32Array, d: int, g: int) -> Int64Array:
    """Return the number of the d items that each seed hashes to each bucket, (seeds, g)."""
    cells = (
        counting.olh_buckets(seeds[:, None], np.arange(d, dtype=np.uint32), g)
        + np.arange(len(seeds))[:, None] * g
    )
    return np.bincount(cells.ravel(), minlength=len(seeds) * g).reshape(len(seeds), g)
