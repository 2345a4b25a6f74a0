"""Linear algebra over GF(2): vectors are the bits of integers, their sum is xor."""

from collections.abc import Sequence

import numpy as np

from ldprecover.types import Int64Array, UInt32Array


def null_space(rows: Int64Array, bits: int) -> list[int]:
    """Return a basis of the numbers y below 2^bits with popcount(row & y) even for every row."""
    pivots = {row.bit_length() - 1: row for row in xor_basis(rows)}
    free = (bit for bit in range(bits) if bit not in pivots)
    return [
        (1 << bit) | sum(1 << lead for lead, row in pivots.items() if row >> bit & 1)
        for bit in free
    ]


def xor_basis(rows: Int64Array) -> list[int]:
    """Return a reduced basis of all xor sums of the rows.

    The highest bit of each basis number is zero in all others.
    """
    basis: list[int] = []
    remaining = rows
    for bit in reversed(range(int(rows.max()).bit_length())):
        has_bit = (remaining >> bit & 1).astype(np.bool_)
        if has_bit.any():
            lead = int(remaining[np.argmax(has_bit)])
            remaining = np.where(has_bit, remaining ^ lead, remaining)
            basis = [each ^ lead if each >> bit & 1 else each for each in basis] + [lead]
    return basis


def xor_sums(basis: Sequence[int]) -> UInt32Array:
    """Return all xor sums of independent numbers, except 0."""
    sums = np.zeros(1, np.uint32)
    for number in basis:
        sums = np.concatenate([sums, sums ^ np.uint32(number)])
    return sums[1:]
