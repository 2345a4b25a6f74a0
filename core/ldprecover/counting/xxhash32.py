"""xxHash32 of a four-byte little-endian integer, elementwise over numpy arrays.

Specification: Collet, "XXH32 algorithm", github.com/Cyan4973/xxHash. For inputs of four bytes its
loop over stripes never runs; one round and the final avalanche remain.
"""

from collections.abc import Iterator

import numpy as np

from ldprecover.types import UInt16Array, UInt32Array

PRIME2, PRIME3, PRIME4, PRIME5 = 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
BASE = PRIME5 + 4
"""Added to the seed first: PRIME5 plus the length of the input."""


def hash_items(seeds: UInt32Array, items: UInt32Array) -> UInt32Array:
    """Return xxHash32(item, seed) of 32-bit seeds and items; the two arrays broadcast."""
    with np.errstate(over="ignore"):  # numpy warns where scalars wrap around
        h: UInt32Array = seeds + np.uint32(BASE) + items * np.uint32(PRIME3)
        h = ((h << np.uint32(17)) | (h >> np.uint32(15))) * np.uint32(PRIME4)
        h = (h ^ (h >> np.uint32(15))) * np.uint32(PRIME2)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(PRIME3)
        return h ^ (h >> np.uint32(16))


def bucket_of(hashes: UInt32Array, g: int) -> UInt32Array:
    """Return (hash * g) >> 32, the bucket of each hash among g."""
    return ((hashes.astype(np.uint64) * np.uint64(g)) >> np.uint64(32)).astype(np.uint32)


def bucket_ranges(buckets: UInt16Array, g: int) -> tuple[UInt32Array, UInt32Array]:
    """Return (lo, width) with bucket_of(h, g) == b exactly where (h - lo) mod 2^32 < width.

    The hashes of bucket b are those from lo = ceil(b 2^32 / g) up to the lo of b + 1, so one
    subtraction and one comparison of 32 bits replace a multiplication of 64.
    """
    # b 2^32 / g = b (2^32 // g) + b (2^32 % g) / g, in which no number reaches 2^32.
    whole, rest = divmod(1 << 32, g)
    b = buckets.astype(np.uint32)
    part = b * np.uint32(rest) + np.uint32(g - 1)
    end = part + np.uint32(rest)
    part //= np.uint32(g)
    end //= np.uint32(g)
    return b * np.uint32(whole) + part, end - part + np.uint32(whole)


def report_blocks(
    seeds: UInt32Array, buckets: UInt16Array, g: int, size: int
) -> Iterator[tuple[slice, UInt32Array, UInt32Array, UInt32Array]]:
    """Yield blocks of reports: their slice, seeds plus BASE, and `bucket_ranges`."""
    for start in range(0, len(seeds), size):
        block = slice(start, start + size)
        yield block, seeds[block] + np.uint32(BASE), *bucket_ranges(buckets[block], g)
