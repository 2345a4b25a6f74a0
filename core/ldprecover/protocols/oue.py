"""Optimised unary encoding: a report is a bit vector over the items."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import kernels
from ldprecover.protocols.padding import PaddedReports
from ldprecover.sampling import flip_threshold, words_from
from ldprecover.types import BoolArray, Int64Array, Reports, UInt8Array

__all__ = ["OUE"]


@dataclass(frozen=True)
class OUE(PaddedReports):
    """Optimised unary encoding (paper, III-B; Wang et al., USENIX Security 2017).

    The report is d independent bits: the bit of the user's item is one with probability p = 1/2,
    every other bit with probability q = 1/(e^eps + 1). It supports the items whose bits are one.

    Packed, item i is bit i%8 of byte i//8 (bit 0 the least significant); padding bits are zero.
    """

    protocol = "oue"

    @property
    def p(self) -> float:
        return 0.5

    @property
    def q(self) -> float:
        return 1 / (math.exp(self.epsilon) + 1)

    @property
    def row_bytes(self) -> int:
        return -(-self.domain_size // 8)

    @property
    def report_dtype(self) -> np.dtype:
        return np.dtype(("u1", (self.row_bytes,)))

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        held = self._items(items)
        words = words_from(rng)
        rows = kernels.unary_rows(held.size, self.domain_size, flip_threshold(self.epsilon), words)
        coins = words(-(-held.size // 64)).view(np.uint8)
        ones = np.unpackbits(coins, count=held.size, bitorder="little")
        self._set_bits(rows, held, ones)
        return rows

    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        held = self._items(items)
        rows = np.zeros((held.size, self.row_bytes), dtype=np.uint8)
        self._set_bits(rows, held, np.ones(held.size, dtype=np.uint8))
        return rows

    def check(self, reports: Reports) -> None:
        spare = self.row_bytes * 8 - self.domain_size
        if spare:
            padding = np.uint8(0xFF & ~((1 << (8 - spare)) - 1))
            self._refuse_first(reports[:, -1] & padding != 0, "the padding bits after the last item must be zero")

    def support_counts(self, reports: Reports) -> Int64Array:
        return kernels.oue_counts(reports, self.domain_size)

    def supports(self, reports: Reports) -> BoolArray:
        return np.unpackbits(reports, axis=1, count=self.domain_size, bitorder="little").view(np.bool_)

    @staticmethod
    def _set_bits(rows: UInt8Array, positions: Int64Array, ones: UInt8Array) -> None:
        flat = rows.reshape(-1)
        at = np.arange(len(rows)) * rows.shape[1] + positions // 8
        bit = (positions % 8).astype(np.uint8)
        cleared = flat[at] & ~np.left_shift(np.uint8(1), bit)
        flat[at] = cleared | np.left_shift(ones, bit)
