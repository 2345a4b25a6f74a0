"""xxHash32 of a four-byte little-endian integer, elementwise over numpy arrays."""

import numpy as np

from ldprecover._types import UInt32Array

__all__ = ["PRIME2", "PRIME3", "PRIME4", "PRIME5", "bucket_of", "hash_items"]

PRIME2, PRIME3, PRIME4, PRIME5 = 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1


def hash_items(seeds: UInt32Array, items: UInt32Array) -> UInt32Array:
    """Return xxHash32(item, seed) of 32-bit seeds and items; the two arrays broadcast."""
    h = seeds + np.uint32(PRIME5 + 4) + items * np.uint32(PRIME3)
    h = ((h << np.uint32(17)) | (h >> np.uint32(15))) * np.uint32(PRIME4)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(PRIME2)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(PRIME3)
    return h ^ (h >> np.uint32(16))


def bucket_of(hashes: UInt32Array, g: int) -> UInt32Array:
    """Return (hash * g) >> 32, the bucket of each hash among g."""
    return ((hashes.astype(np.uint64) * np.uint64(g)) >> np.uint64(32)).astype(np.uint32)
