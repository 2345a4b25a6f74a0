"""Packed bits that are one with exactly a given probability."""

import numpy as np

from ldprecover.types import UInt8Array, UInt64Array, Words

# Leading threshold bits that are decided for all numbers; one in 2^8 is undecided after them.
_PREFIX = 8
_BLOCK = 1 << 18  # bytes of a block of rows, which stays in the second-level cache


def unary_rows(n: int, d: int, threshold: int, words: Words) -> UInt8Array:
    """Return n rows of d packed bits, each one with probability threshold/2^64; padding is zero.

    `threshold` is from 0 to 2^64 - 1. Item i is bit i%8 of byte i//8 of its row.
    """
    row_bytes = -(-d // 8)
    lanes = np.empty(-(-n * row_bytes // 8), dtype=np.uint64)
    rows = lanes.view(np.uint8)[: n * row_bytes].reshape(n, row_bytes)
    # A multiple of eight rows fills whole words.
    step = max(8, _BLOCK // row_bytes // 8 * 8)
    for start in range(0, n, step):
        stop = min(n, start + step)
        _draw(lanes[start * row_bytes // 8 : -(-stop * row_bytes // 8)], threshold, words)
        if d % 8:
            rows[start:stop, -1] &= np.uint8((1 << d % 8) - 1)
    return rows


def _draw(ones: UInt64Array, threshold: int, words: Words) -> None:
    """Set each bit of `ones` to 1[a uniform 64-bit number < threshold], for 64 numbers a word.

    The numbers are drawn from their highest bit down. A number is open while its bits equal those
    of the threshold. At the first difference it is below if the threshold's bit is one. Few numbers
    are open after the prefix; the other 56 bits of each are drawn together, as the top bits of one
    word.
    """
    planes = words(_PREFIX * len(ones)).reshape(_PREFIX, len(ones))
    ones[...] = 0
    still_open = np.full_like(ones, ~np.uint64(0))
    below = np.empty_like(ones)
    for place, bits in enumerate(planes):
        # A drawn one stands for a number's zero: bits are fair, and this saves an inversion.
        if threshold >> (63 - place) & 1:
            np.bitwise_and(still_open, bits, out=below)
            np.bitwise_or(ones, below, out=ones)
            np.bitwise_xor(still_open, below, out=still_open)
        else:
            np.bitwise_and(still_open, bits, out=still_open)
    rest = np.uint64((threshold << _PREFIX) & ((1 << 64) - 1))
    at = np.flatnonzero(still_open != 0)
    lanes = still_open[at]
    while at.size:
        lowest = lanes & (~lanes + np.uint64(1))
        ones[at] |= np.where(words(at.size) < rest, lowest, np.uint64(0))
        lanes ^= lowest
        keep = lanes != 0
        at, lanes = at[keep], lanes[keep]
