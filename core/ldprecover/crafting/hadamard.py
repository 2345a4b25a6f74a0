"""Crafting columns of a Hadamard matrix: linear equations over GF(2) instead of a search."""

from __future__ import annotations

from dataclasses import dataclass

from ldprecover.crafting.cell_crafter import CellCrafter
from ldprecover.protocols.gf2 import null_space, xor_sums
from ldprecover.protocols.hr import HR
from ldprecover.types import Int64Array, UInt32Array


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
