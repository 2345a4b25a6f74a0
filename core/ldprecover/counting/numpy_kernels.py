"""Support counting in numpy alone: each count as it is defined, in blocks that fit in a cache.

So memory is bounded for any number of reports and items.
"""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from ldprecover.counting.tiles import tiles
from ldprecover.counting.xxhash32 import bucket_ranges, hash_items
from ldprecover.types import (
    BoolArray,
    FloatArray,
    Int64Array,
    UInt8Array,
    UInt16Array,
    UInt32Array,
    UInt64Array,
)

_Numbers = TypeVar("_Numbers", Int64Array, FloatArray)
_CHUNK = 1 << 16  # items of a block that GRR widens to numpy's index type
_CELLS = 1 << 16  # (report, item) tests of an OLH block
_BITS = 1 << 20  # unpacked bits of a block of OUE
_BYTE = 255  # ones that sum without a carry in a byte


def grr_counts(items: UInt32Array, d: int) -> Int64Array:
    """Return how often each item 0..d-1 occurs among n items: C(v) of GRR, in O(n + d).

    Raises IndexError for an item outside this range.
    """
    counts = np.zeros(d, dtype=np.int64)
    for rows in tiles((len(items), 1), _CHUNK):
        block = items[rows]
        if block.max() >= d:
            raise IndexError(f"an item is {block.max()}, and there are {d}")
        counts += np.bincount(block, minlength=d)
    return counts


def olh_counts(seeds: UInt32Array, buckets: UInt16Array, d: int, g: int) -> Int64Array:
    """Return, for each of d items, the number of n seeds that hash it to their bucket: C(v) of OLH.

    `seeds` and `buckets` are (n,); buckets are below g, which is from 2 to 65536. Takes O(nd).
    """
    return olh_counts_and_sizes(seeds, buckets, d, g)[0]


def olh_counts_and_sizes(
    seeds: UInt32Array, buckets: UInt16Array, d: int, g: int
) -> tuple[Int64Array, Int64Array]:
    """Return the counts of `olh_counts`, and for each report the number of items it supports."""
    counts, sizes = np.zeros(d, np.int64), np.zeros(len(seeds), np.int64)
    all_items = np.arange(d, dtype=np.uint32)
    for reports, items, hits in _olh_hits(seeds, buckets, all_items, g):
        counts[items] += hits.sum(axis=1)
        sizes[reports] += hits.sum(axis=0)
    return counts, sizes


def olh_supported(
    seeds: UInt32Array, buckets: UInt16Array, items: UInt32Array, g: int
) -> BoolArray:
    """Return 1[the seed hashes the item to its bucket], an (items, n) array for n reports."""
    supported = np.empty((len(items), len(seeds)), np.bool_)
    for reports, rows, hits in _olh_hits(seeds, buckets, items, g):
        supported[rows, reports] = hits
    return supported


def _olh_hits(
    seeds: UInt32Array, buckets: UInt16Array, items: UInt32Array, g: int
) -> Iterator[tuple[slice, slice, BoolArray]]:
    """Yield blocks of reports and of items, and which items of a block each report supports.

    The matrix is (items, reports).
    """
    n_reports = min(len(seeds), _CELLS)
    for reports in tiles((len(seeds), 1), _CELLS):
        lo, width = bucket_ranges(buckets[reports], g)
        for rows in tiles((len(items), n_reports), _CELLS):
            hashes = hash_items(seeds[reports], items[rows, None])
            yield reports, rows, hashes - lo < width


def oue_counts(rows: UInt8Array, d: int) -> Int64Array:
    """Return, for each of d items, the number of n packed rows with its bit set: C(v) of OUE.

    `rows` is (n, ceil(d/8)); item i is bit i%8 of byte i//8. Takes O(nd).
    """
    counts = np.zeros(8 * rows.shape[1], dtype=np.int64)
    step = min(_BYTE, max(1, _BITS // counts.size))
    for start in range(0, len(rows), step):
        bits = np.unpackbits(rows[start : start + step], axis=1, bitorder="little")
        counts += bits.sum(axis=0, dtype=np.uint8)
    return counts[:d]


def unary_sizes(rows: UInt8Array) -> Int64Array:
    """Return the number of bits that are one in each packed row."""
    return np.bitwise_count(rows).sum(axis=1, dtype=np.int64)


def unary_supported(rows: UInt8Array, items: UInt32Array) -> BoolArray:
    """Return 1[the item's bit is set in the row], an (items, n) array for n packed rows."""
    supported = np.empty((len(items), len(rows)), np.bool_)
    for item, line in zip(items.tolist(), supported, strict=True):
        line[:] = rows[:, item // 8] >> item % 8 & 1
    return supported


def joint_counts(lines: UInt64Array, others: UInt64Array) -> Int64Array:
    """Return for each pair of packed lines the number of places where both have a one.

    The result is (lines, others).
    """
    counts = np.empty((len(lines), len(others)), np.int64)
    for i, line in enumerate(lines):
        counts[i] = np.bitwise_count(others & line).sum(axis=1, dtype=np.int64)
    return counts


def walsh_hadamard(values: _Numbers) -> _Numbers:
    """Return t(u) = sum_y (-1)^popcount(u & y) values(y) for u from 0 to K - 1, in O(K b).

    `values` has K = 2^b numbers. The result is exact for integers of at least 0 whose sum is below
    2^63. Each of b passes takes sums and differences of halves of growing blocks.
    """
    transformed, half = values.copy(), 1
    while half < values.size:
        blocks = transformed.reshape(-1, 2, half)
        first, second = blocks[:, 0].copy(), blocks[:, 1]
        blocks[:, 0] += second
        np.subtract(first, second, out=blocks[:, 1])
        half *= 2
    return transformed
