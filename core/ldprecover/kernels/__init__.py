"""Support counting and bit drawing, where time goes: numpy always, numba where it is installed.

Both give the same counts and the same bits, to the bit.
"""

from ldprecover.kernels.numpy_ import grr_counts, olh_counts, oue_counts, unary_rows
from ldprecover.kernels.xxhash32 import bucket_of, hash_items
from ldprecover._types import UInt32Array

__all__ = ["grr_counts", "olh_buckets", "olh_counts", "oue_counts", "unary_rows"]


def olh_buckets(seeds: UInt32Array, items: UInt32Array, g: int) -> UInt32Array:
    """Return the bucket that each seed hashes its item to; the two arrays broadcast."""
    return bucket_of(hash_items(seeds, items), g)
