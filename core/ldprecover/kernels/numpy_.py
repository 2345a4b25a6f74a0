"""Support counting and bit drawing in numpy alone."""

import numpy as np

from ldprecover._types import Int64Array, UInt8Array, UInt16Array, UInt32Array
from ldprecover.kernels.xxhash32 import bucket_of, hash_items
from ldprecover.sampling import Words

__all__ = ["grr_counts", "olh_counts", "oue_counts", "unary_rows"]


def grr_counts(items: UInt32Array, d: int) -> Int64Array:
    return np.bincount(items, minlength=d).astype(np.int64, copy=False)


def oue_counts(rows: UInt8Array, d: int) -> Int64Array:
    counts = np.zeros(d, dtype=np.int64)
    for start in range(0, len(rows), 4096):
        bits = np.unpackbits(rows[start : start + 4096], axis=1, count=d, bitorder="little")
        counts += bits.sum(axis=0, dtype=np.int64)
    return counts


def olh_counts(seeds: UInt32Array, buckets: UInt16Array, d: int, g: int) -> Int64Array:
    counts = np.zeros(d, dtype=np.int64)
    items = np.arange(d, dtype=np.uint32)
    for start in range(0, len(seeds), 128):
        block = slice(start, start + 128)
        hit = bucket_of(hash_items(seeds[block, None], items), g) == buckets[block, None]
        counts += hit.sum(axis=0, dtype=np.int64)
    return counts


def unary_rows(n: int, d: int, threshold: int, words: Words) -> UInt8Array:
    rows = np.empty((n, -(-d // 8)), dtype=np.uint8)
    for start in range(0, n, 1024):
        stop = min(n, start + 1024)
        bits = words((stop - start) * d).reshape(stop - start, d) < np.uint64(threshold)
        rows[start:stop] = np.packbits(bits, axis=1, bitorder="little")
    return rows
