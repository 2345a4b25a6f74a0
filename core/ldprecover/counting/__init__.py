"""Support counting and drawing of bits: numpy always, numba where it is installed.

Both backends give the same counts to the bit; only numpy draws. The environment variable
LDPRECOVER_KERNELS is read once. It chooses `numpy` or `numba`; unset, numba counts if it can be
imported. numba is imported at the first count, or by `warm_up`. With `late`, numpy counts until
`hasten` is called: for processes that may never count much.

Counting takes reports that passed their oracle's `check`. Their arrays may be strided, unaligned or
read-only. It uses one thread, holds no state between calls, and may run in several threads.
"""

import os
from functools import cache
from threading import Event
from typing import Protocol

import numpy as np

from ldprecover.counting import numpy_kernels
from ldprecover.counting.bernoulli import unary_rows
from ldprecover.counting.xxhash32 import bucket_of, hash_items
from ldprecover.errors import ParameterError
from ldprecover.types import (
    BoolArray,
    FloatArray,
    Int64Array,
    UInt8Array,
    UInt16Array,
    UInt32Array,
    UInt64Array,
)

__all__ = [
    "backend",
    "grr_counts",
    "hasten",
    "joint_counts",
    "olh_buckets",
    "olh_counts",
    "olh_counts_and_sizes",
    "olh_supported",
    "oue_counts",
    "packed_lines",
    "unary_rows",
    "unary_sizes",
    "unary_supported",
    "walsh_hadamard",
    "walsh_hadamard_floats",
    "warm_up",
]

VARIABLE = "LDPRECOVER_KERNELS"


def grr_counts(items: UInt32Array, d: int) -> Int64Array:
    """Return how often each item 0..d-1 occurs among n items: C(v) of GRR, in O(n + d).

    Raises IndexError for an item outside this range.
    """
    return _counting().grr_counts(items, d)


def oue_counts(rows: UInt8Array, d: int) -> Int64Array:
    """Return, for each of d items, the number of n packed rows with its bit set: C(v) of OUE.

    `rows` is (n, ceil(d/8)); item i is bit i%8 of byte i//8. Takes O(nd).
    """
    return _counting().oue_counts(rows, d)


def olh_counts(seeds: UInt32Array, buckets: UInt16Array, d: int, g: int) -> Int64Array:
    """Return, for each of d items, the number of n seeds that hash it to their bucket: C(v) of OLH.

    `seeds` and `buckets` are (n,); buckets are below g, which is from 2 to 65536. Takes O(nd).
    """
    return _counting().olh_counts(seeds, buckets, d, g)


def olh_counts_and_sizes(
    seeds: UInt32Array, buckets: UInt16Array, d: int, g: int
) -> tuple[Int64Array, Int64Array]:
    """Return the counts of `olh_counts`, and for each report the number of items it supports."""
    return _counting().olh_counts_and_sizes(seeds, buckets, d, g)


def olh_supported(
    seeds: UInt32Array, buckets: UInt16Array, items: UInt32Array, g: int
) -> BoolArray:
    """Return 1[the seed hashes the item to its bucket], an (items, n) array for n reports."""
    return _counting().olh_supported(seeds, buckets, items, g)


def unary_sizes(rows: UInt8Array) -> Int64Array:
    """Return the number of bits that are one in each packed row."""
    return _counting().unary_sizes(rows)


def unary_supported(rows: UInt8Array, items: UInt32Array) -> BoolArray:
    """Return 1[the item's bit is set in the row], an (items, n) array for n packed rows."""
    return _counting().unary_supported(rows, items)


def packed_lines(bits: BoolArray) -> UInt64Array:
    """Return each row of a boolean matrix packed into 64-bit words; spare bits are zero.

    The order of the bits is the same in every row, and not specified.
    """
    packed = np.packbits(bits, axis=1)
    lines = np.zeros((len(bits), -(-packed.shape[1] // 8) * 8), np.uint8)
    lines[:, : packed.shape[1]] = packed
    return lines.view(np.uint64)


def joint_counts(lines: UInt64Array, others: UInt64Array) -> Int64Array:
    """Return for each pair of packed lines the number of places where both have a one.

    The result is (lines, others). If both arguments are the same array, it takes half the time.
    """
    return _counting().joint_counts(lines, others)


def olh_buckets(seeds: UInt32Array, items: UInt32Array, g: int) -> UInt32Array:
    """Return the bucket that each seed hashes its item to; the two arrays broadcast."""
    return bucket_of(hash_items(seeds, items), g)


def walsh_hadamard(values: Int64Array) -> Int64Array:
    """Return t(u) = sum_y (-1)^popcount(u & y) values(y) for u from 0 to K - 1, in O(K b).

    `values` has K = 2^b integers. The result is exact for values of at least 0 whose sum is below
    2^63. Raises ValueError unless K is a power of two.
    """
    _check_size(values)
    return _counting().walsh_hadamard(values)


def walsh_hadamard_floats(values: FloatArray) -> FloatArray:
    """Return the transform of `walsh_hadamard` for 2^b floats, computed by numpy.

    Raises ValueError unless the number of values is a power of two.
    """
    _check_size(values)
    return numpy_kernels.transform_floats(values)


def _check_size(values: Int64Array | FloatArray) -> None:
    if values.ndim != 1 or values.size.bit_count() != 1:
        raise ValueError(f"values must be a vector of 2^b numbers, not of shape {values.shape}")


def backend() -> str:
    """Return the backend that counts: "numpy" or "numba".

    Raises ParameterError if LDPRECOVER_KERNELS names another one, or numba and it cannot be
    imported.
    """
    return "numpy" if _counting() is numpy_kernels else "numba"


def warm_up() -> None:
    """Import the backend, and compile it unless compiled code is cached, so that no request waits.

    Raises ParameterError as `backend` does.
    """
    _counting()


def hasten() -> bool:
    """Switch to numba if LDPRECOVER_KERNELS is `late`; return whether that changed the backend.

    Without numba, numpy keeps counting.
    """
    if _hastened.is_set() or os.environ.get(VARIABLE) != "late":
        return False
    _hastened.set()
    _counting.cache_clear()
    return _counting() is not numpy_kernels


_hastened = Event()


class _Counting(Protocol):
    """The functions of both modules, numpy_kernels and numba_kernels."""

    def grr_counts(self, items: UInt32Array, d: int) -> Int64Array: ...
    def oue_counts(self, rows: UInt8Array, d: int) -> Int64Array: ...
    def olh_counts(
        self, seeds: UInt32Array, buckets: UInt16Array, d: int, g: int
    ) -> Int64Array: ...
    def olh_counts_and_sizes(
        self, seeds: UInt32Array, buckets: UInt16Array, d: int, g: int
    ) -> tuple[Int64Array, Int64Array]: ...
    def olh_supported(
        self, seeds: UInt32Array, buckets: UInt16Array, items: UInt32Array, g: int
    ) -> BoolArray: ...
    def unary_sizes(self, rows: UInt8Array) -> Int64Array: ...
    def unary_supported(self, rows: UInt8Array, items: UInt32Array) -> BoolArray: ...
    def joint_counts(self, lines: UInt64Array, others: UInt64Array) -> Int64Array: ...
    def walsh_hadamard(self, values: Int64Array) -> Int64Array: ...


@cache
def _counting() -> _Counting:
    choice = os.environ.get(VARIABLE, "")
    if choice not in ("", "late", "numpy", "numba"):
        raise ParameterError(f"{VARIABLE} must be numpy or numba, not {choice!r}")
    if choice == "numpy" or (choice == "late" and not _hastened.is_set()):
        return numpy_kernels
    try:
        from ldprecover.counting import numba_kernels
    except ImportError as error:
        if choice != "numba":
            return numpy_kernels
        raise ParameterError(
            f"{VARIABLE} is numba, which cannot be imported ({error}): install ldprecover[fast]"
        ) from error
    return numba_kernels
