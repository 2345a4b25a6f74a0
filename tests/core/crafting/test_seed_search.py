"""The search for hash seeds, against brute force and against the exact law of the best of many
seeds.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.randomness import rng

from ldprecover import OLH
from ldprecover.crafting.seed_search import (
    exhaustive_seeds,
    fullest_buckets,
    most_hits,
    sampled_seeds,
)

TARGETS = np.arange(3, 103, 10, dtype=np.uint32)


def bucket_sizes(seed: int, items: list[int], g: int) -> Counter[int]:
    return Counter(OLH(1.0, 100_000, g).buckets([seed] * len(items), items).tolist())


def scan_order(seed: int, limit: int) -> np.ndarray:
    """Return the hash seeds that an exhaustive search with this generator visits, in order."""
    start = int(rng(seed).integers(1 << 32))
    return np.array([(start + i * 0x9E3779B1) % (1 << 32) for i in range(limit)], dtype=np.uint32)


seeds_32 = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=6)
item_sets = st.lists(st.integers(0, 99_999), min_size=1, max_size=12, unique=True)
hash_ranges = st.one_of(
    st.integers(2, 8), st.integers(2, 65_536), st.sampled_from([255, 256, 257, 65_535, 65_536])
)


@given(seeds_32, item_sets, hash_ranges)
def test_hits_are_the_items_of_the_fullest_bucket(
    seeds: list[int], items: list[int], g: int
) -> None:
    hits = most_hits(np.array([seeds], np.uint32), np.array([items], np.uint32), g)
    assert hits.tolist() == [[max(bucket_sizes(seed, items, g).values()) for seed in seeds]]


@given(seeds_32, item_sets, hash_ranges)
def test_the_bucket_chosen_is_a_fullest_one(seeds: list[int], items: list[int], g: int) -> None:
    chosen_items = np.broadcast_to(np.array(items, np.uint32), (len(seeds), len(items)))
    for seed, bucket in zip(
        seeds, fullest_buckets(np.array(seeds, np.uint32), chosen_items, g, rng()), strict=True
    ):
        sizes = bucket_sizes(seed, items, g)
        assert sizes[int(bucket)] == max(sizes.values())


def test_tied_buckets_are_chosen_equally_often() -> None:
    """Two items in two buckets tie: each is taken in half of 20,000 choices, to 6 sd (2e-9)."""
    chosen_items = np.array([[0, 1]], np.uint32)
    seeds = np.arange(100, dtype=np.uint32)
    split = seeds[most_hits(seeds[None, :], chosen_items, 2)[0] == 1][0]
    n = 20_000
    chosen = fullest_buckets(np.full(n, split), np.broadcast_to(chosen_items, (n, 2)), 2, rng())
    assert abs(int(chosen.sum()) - n / 2) <= 6 * (n / 4) ** 0.5


def test_more_hits_than_a_byte_holds_are_counted() -> None:
    items = np.arange(700, dtype=np.uint32)[None, :]
    seeds = np.arange(5, dtype=np.uint32)[None, :]
    expected = [max(bucket_sizes(seed, list(range(700)), 2).values()) for seed in range(5)]
    assert most_hits(seeds, items, 2).tolist() == [expected]
    assert max(expected) > 255


def test_each_user_has_the_best_of_its_own_seeds() -> None:
    """The seeds tried are the generator's, a block of users at a time, so they can be drawn
    again.
    """
    chosen_items = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], np.uint32)
    tried = rng(5).integers(0, 1 << 32, size=(3, 40), dtype=np.uint32)
    expected = [
        max(row.tolist(), key=lambda seed: max(bucket_sizes(seed, items, 3).values()))
        for row, items in zip(tried, chosen_items.tolist(), strict=True)
    ]
    assert sampled_seeds(chosen_items, 3, 40, rng(5)).tolist() == expected


@pytest.mark.parametrize(
    ("r", "g", "m"), [(4, 2, 3_000), (5, 3, 1_000), (2, 1_000, 50), (10, 3, 20)]
)
def test_exhaustive_search_finds_distinct_perfect_seeds(r: int, g: int, m: int) -> None:
    seeds = exhaustive_seeds(TARGETS[:r], g, m, rng())
    assert np.unique(seeds).size == m
    assert (most_hits(seeds[None, :], TARGETS[None, :r], g) == r).all()


def test_exhaustive_search_covers_the_range_of_seeds() -> None:
    """4,000 seeds in eighths of the range: each eighth has its share to 6 sd of a multinomial (2e-8
    in all).
    """
    seeds = exhaustive_seeds(TARGETS[:5], 3, 4_000, rng())
    eighths = np.bincount(seeds >> np.uint32(29), minlength=8)
    assert (abs(eighths - 500) <= 6 * (4_000 * 7 / 64) ** 0.5).all()


@pytest.mark.parametrize(("r", "g", "m"), [(10, 3, 150), (10, 3, 20), (6, 50, 40), (8, 2, 3_000)])
def test_best_seeds_replace_missing_perfect_ones(r: int, g: int, m: int) -> None:
    """Against sorting every seed of the scan by its hits."""
    limit = 100_000
    scanned = scan_order(2, limit)
    everyone = most_hits(scanned[None, :], TARGETS[None, :r], g)[0]
    seeds = exhaustive_seeds(TARGETS[:r], g, m, rng(), limit=limit)
    assert np.unique(seeds).size == m
    assert np.isin(seeds, scanned).all()
    assert (
        most_hits(seeds[None, :], TARGETS[None, :r], g)[0].tolist()
        == sorted(everyone, reverse=True)[:m]
    )


def test_seeds_are_shared_where_there_are_fewer_than_users() -> None:
    seeds = exhaustive_seeds(TARGETS[:2], 60_000, 20, rng(), limit=10)
    assert sorted(Counter(seeds.tolist()).values()) == [2] * 10


def test_unreachable_aim_is_lowered() -> None:
    """As many seeds as hold one perfect seed on average hold none here; the user gets the best of
    them.
    """
    limit = 3**9
    scanned = scan_order(5, limit)
    best = most_hits(scanned[None, :], TARGETS[None, :], 3)[0].max()
    seeds = exhaustive_seeds(TARGETS, 3, 1, rng(5), limit=limit)
    assert best == 9
    assert most_hits(seeds[None, :], TARGETS[None, :], 3).tolist() == [[best]]


def test_no_user_needs_no_seed() -> None:
    assert exhaustive_seeds(TARGETS, 3, 0, rng()).size == 0
