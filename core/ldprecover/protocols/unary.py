"""Unary encoding: a report is a bit vector over the items."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.counting.tally import Tally
from ldprecover.crafting.bit_vectors import BitCrafter, padded_rows
from ldprecover.errors import ReportError
from ldprecover.laws import FixedSize, IndependentSizes, Laws
from ldprecover.protocols.description import Column, ReportForms
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, UInt8Array

UNARY_FORMS = ReportForms(
    json="d characters a report, position i is item i.",
    packed="ceil(d/8) bytes a report, item i is bit i%8 of byte i//8 (bit 0 the least "
    "significant), padding bits zero.",
    values={"reports": {"type": "string", "pattern": "^[01]+$"}},
    example={"reports": ["0100"]},
)


@dataclass(frozen=True)
class UnaryEncoding(FrequencyOracle):
    """A protocol whose report is d bits; it supports the items whose bits are one.

    Packed, item i is bit i%8 of byte i//8 (bit 0 the least significant); padding bits are zero.
    Bits are independent given the user's item, or `fixed_size` of them are one.
    """

    forms = UNARY_FORMS

    @property
    def row_bytes(self) -> int:
        """Bytes of one packed report, ceil(d/8)."""
        return -(-self.domain_size // 8)

    @property
    def report_dtype(self) -> np.dtype:
        return np.dtype(("u1", (self.row_bytes,)))

    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        """Return each item's bit as one, and as many random others as a fixed size needs."""
        user_items = self._items(items)
        if self.fixed_size is not None:
            sizes = np.full(user_items.size, self.fixed_size)
            return padded_rows(
                user_items[:, None], sizes, self.domain_size, rng or np.random.default_rng()
            )
        rows = np.zeros((user_items.size, self.row_bytes), dtype=np.uint8)
        set_bits(rows, user_items, np.ones(user_items.size, dtype=np.uint8))
        return rows

    def check(self, reports: Reports) -> None:
        spare = self.row_bytes * 8 - self.domain_size
        padding = np.uint8(0xFF & ~((1 << (8 - spare)) - 1))
        padded = reports[:, -1] & padding != 0 if spare else np.zeros(len(reports), np.bool_)
        if self.fixed_size is not None:
            off = self.support_sizes(reports) != self.fixed_size
            first = padded.size if not padded.any() else int(np.argmax(padded))
            self._raise_first(
                off[:first], f"exactly {self.fixed_size} bits of the report must be one"
            )
        self._raise_first(padded, "the padding bits after the last item must be zero")

    def summarise(self, reports: Reports) -> Int64Array:
        return counting.oue_counts(reports, self.domain_size)

    def supports(self, reports: Reports) -> BoolArray:
        return np.unpackbits(reports, axis=1, count=self.domain_size, bitorder="little").view(
            np.bool_
        )

    def supported(self, reports: Reports, items: Int64Array) -> BoolArray:
        return counting.unary_supported(reports, np.asarray(items).astype(np.uint32)).T

    def support_sizes(self, reports: Reports) -> Int64Array:
        return counting.unary_sizes(reports)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (Column("reports", str, self.domain_size, "report", self.fixed_size),)

    def to_columns(self, reports: Reports) -> tuple[list[Any], ...]:
        digits = (self.supports(reports).view(np.uint8) + ord("0")).astype(np.uint8)
        return ([row.tobytes().decode("ascii") for row in digits],)

    def from_columns(self, values: Sequence[list[Any]]) -> Reports:
        (rows,), (column,), d = values, self.columns, self.domain_size
        text = (
            "".join(rows) if set(map(type, rows)) == {str} and set(map(len, rows)) == {d} else None
        )
        if text is None or not text.isascii():
            position = next(i for i, row in enumerate(rows) if not column.takes(row))
            raise ReportError(column.reason, position=position)
        digits = np.frombuffer(text.encode("ascii"), dtype=np.uint8).reshape(len(rows), d) - ord(
            "0"
        )
        # The maximum of all digits takes a fraction of the time that one for each row takes.
        if column.ones is not None or digits.max() > 1:
            bad = np.asarray((digits > 1).any(axis=1))
            if column.ones is not None:
                bad = bad | (np.count_nonzero(digits, axis=1) != column.ones)
            self._raise_first(bad, column.reason)
        return np.packbits(digits, axis=1, bitorder="little")

    @property
    def crafter(self) -> BitCrafter | None:
        d, p, q, k = self.domain_size, self.p, self.q, self.fixed_size
        expected_size = math.floor(self.laws.mean_size) if k is None else k
        sizes = IndependentSizes(d, p, q) if k is None else FixedSize(d, k)
        return BitCrafter(self.protocol, d, q, expected_size, sizes)

    @property
    def laws(self) -> Laws:
        laws = super().laws
        if not self.traits.independent_bits:
            return laws
        return replace(laws, log_likelihood=self._log_likelihood)

    def _log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        p, q, d = self.p, self.q, self.domain_size
        mass = self._supported_mass(reports, frequencies)
        sizes = self.support_sizes(reports)
        log = sizes * math.log(q) + (d - sizes) * math.log1p(-q)
        log += np.log(p / q * mass + (1 - p) / (1 - q) * (1 - mass))
        return log

    def honest_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        """Return a tally of honest reports, drawn from its exact law.

        With independent bits in O(d): C(v) = Bin(n_v, p) + Bin(n - n_v, q), independent over the
        items.
        """
        if not self.traits.independent_bits:
            return super().honest_tally(true_counts, rng)
        users = self._true_counts(true_counts)
        n = int(users.sum())
        return Tally(rng.binomial(users, self.p) + rng.binomial(n - users, self.q), n)

    def encoded_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        if self.fixed_size is not None:
            return super().encoded_tally(true_counts, rng)
        users = self._true_counts(true_counts)
        return Tally(users, int(users.sum()))


def set_bits(rows: UInt8Array, positions: Int64Array, ones: UInt8Array) -> None:
    """Set in each row the bit at its position to one or zero."""
    flat = rows.reshape(-1)
    at = np.arange(len(rows)) * rows.shape[1] + positions // 8
    bit = (positions % 8).astype(np.uint8)
    cleared = flat[at] & ~np.left_shift(np.uint8(1), bit)
    flat[at] = cleared | np.left_shift(ones, bit)
