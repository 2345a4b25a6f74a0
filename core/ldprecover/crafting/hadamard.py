"""Crafting columns of a Hadamard matrix: linear equations over GF(2) instead of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldprecover.crafting.cell_crafter import CellCrafter
from ldprecover.types import Int64Array, UInt32Array

if TYPE_CHECKING:
    from ldprecover.protocols.hr import HR


@dataclass(frozen=True)
class ColumnCrafter(CellCrafter):
    """A report is a column of 2^bits; it supports item v where its entry in row v + 1 is +1.

    Column 0 supports every item. The columns that support several items are the solutions y of
    popcount((v+1) & y) = 0 modulo 2.
    """

    oracle: HR

    never_sent = 1

    @property
    def displacements(self) -> None:
        """None: reports of few columns support about half of the items and hardly the others."""
        return

    def supporting(self, chosen_items: Int64Array) -> UInt32Array:
        return xor_sums(null_space(chosen_items + 1, self.oracle.bits))


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
