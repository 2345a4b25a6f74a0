"""Support counting and drawing of bits: numpy always, numba where it is installed.

Both backends give the same counts to the bit; only numpy draws and transforms. The environment
variable LDPRECOVER_KERNELS is read once. It chooses `numpy` or `numba`; unset, numba counts if it
can be imported. numba is imported at the first count, or by `warm_up`. With `late`, numpy counts
until `load_fast_kernels` is called: for processes that may never count much.

Counting takes reports that passed their oracle's `check`. Their arrays may be strided, unaligned or
read-only. It uses one thread, holds no state between calls, and may run in several threads.
"""

import os
from collections.abc import Callable
from functools import cache, wraps
from threading import Event
from types import ModuleType
from typing import ParamSpec, TypeVar

import numpy as np

from ldprecover.counting import numpy_kernels
from ldprecover.counting.bernoulli import unary_rows
from ldprecover.counting.numpy_kernels import walsh_hadamard
from ldprecover.counting.xxhash32 import bucket_of, hash_items
from ldprecover.errors import ParameterError
from ldprecover.types import BoolArray, UInt32Array, UInt64Array

__all__ = [
    "backend",
    "grr_counts",
    "joint_counts",
    "load_fast_kernels",
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
    "warm_up",
]

VARIABLE = "LDPRECOVER_KERNELS"

P = ParamSpec("P")
T = TypeVar("T")


def _of_backend(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function that calls the backend's function of the same name."""

    @wraps(function)
    def counted(*arguments: P.args, **keywords: P.kwargs) -> T:
        return getattr(_counting(), function.__name__)(*arguments, **keywords)

    return counted


grr_counts = _of_backend(numpy_kernels.grr_counts)
oue_counts = _of_backend(numpy_kernels.oue_counts)
olh_counts = _of_backend(numpy_kernels.olh_counts)
olh_counts_and_sizes = _of_backend(numpy_kernels.olh_counts_and_sizes)
olh_supported = _of_backend(numpy_kernels.olh_supported)
unary_sizes = _of_backend(numpy_kernels.unary_sizes)
unary_supported = _of_backend(numpy_kernels.unary_supported)
joint_counts = _of_backend(numpy_kernels.joint_counts)


def packed_lines(bits: BoolArray) -> UInt64Array:
    """Return each row of a boolean matrix packed into 64-bit words; spare bits are zero.

    The order of the bits is the same in every row, and not specified.
    """
    packed = np.packbits(bits, axis=1)
    lines = np.zeros((len(bits), -(-packed.shape[1] // 8) * 8), np.uint8)
    lines[:, : packed.shape[1]] = packed
    return lines.view(np.uint64)


def olh_buckets(seeds: UInt32Array, items: UInt32Array, g: int) -> UInt32Array:
    """Return the bucket that each seed hashes its item to; the two arrays broadcast."""
    return bucket_of(hash_items(seeds, items), g)


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


def load_fast_kernels() -> bool:
    """Switch to numba if LDPRECOVER_KERNELS is `late`; return whether that changed the backend.

    Without numba, numpy keeps counting.
    """
    if _is_load_requested.is_set() or os.environ.get(VARIABLE) != "late":
        return False
    _is_load_requested.set()
    _counting.cache_clear()
    return _counting() is not numpy_kernels


_is_load_requested = Event()


@cache
def _counting() -> ModuleType:
    choice = os.environ.get(VARIABLE, "")
    if choice not in ("", "late", "numpy", "numba"):
        raise ParameterError(f"{VARIABLE} must be numpy or numba, not {choice!r}")
    if choice == "numpy" or (choice == "late" and not _is_load_requested.is_set()):
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
