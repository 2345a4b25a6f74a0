"""The order of reports and rows, drawn afresh each time from the operating system's randomness."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["permutation", "shuffled"]

_FEW = 512
_ITEM = np.dtype("<u4")


def permutation(n: int) -> NDArray[np.int64]:
    """Return the numbers 0 to n-1 in random order.

    Each has random bits of its own to be sorted by: 64 where they are few, and where they are many
    what 64 leave above the number itself, for such words are sorted faster than their order is
    found. Of a million numbers two agree in theirs, and keep their order, in 3 % of draws. Nothing
    is kept from one draw to the next, so that no order tells of another: the bits of a few are the
    operating system's, those of many a generator's under a fresh key of 128 bits. For 16 it takes 2
    µs, for 10,000 0.1 ms.
    """
    if n <= _FEW:
        return np.argsort(np.frombuffer(os.urandom(8 * n), dtype="<u8"))
    below = np.uint64((1 << n.bit_length()) - 1)
    words = _generator().random_raw(n)
    words &= ~below
    words |= np.arange(n, dtype=np.uint64)
    words.sort()
    words &= below
    return words.view(np.int64)


def shuffled(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of an array in random order, as `permutation` draws it.

    Many numbers of four bytes are sorted themselves, below 32 random bits each. Where these agree
    the numbers stand in their own order, which tells nothing of the one in which they came.
    """
    n = len(rows)
    if n <= 1:
        return rows
    if n <= _FEW or rows.dtype != _ITEM or rows.ndim != 1:
        return rows.take(permutation(n), axis=0)  # of rows of several bytes six times as fast as rows[...]
    words = np.empty(n, dtype="<u8")
    halves = words.view(_ITEM)
    halves[::2] = rows
    halves[1::2] = _generator().random_raw((n + 1) // 2).view("=u4")[:n]
    words.sort()
    return halves[::2]


def _generator() -> np.random.Philox:
    return np.random.Philox(key=int.from_bytes(os.urandom(16)))
