"""Unary encoding: a report is a bit vector over the items."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover._checks import integers, plain_array
from ldprecover.counting.tiles import tiles
from ldprecover.errors import ReportError
from ldprecover.protocols.description import Column, ReportForms
from ldprecover.protocols.laws import Laws
from ldprecover.protocols.oracle import ALL_ITEMS, FrequencyOracle, Items
from ldprecover.protocols.wire import WireForm, raise_first
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, Rng, UInt8Array

_CELLS = 1 << 20  # random keys in memory, 8 MiB

UNARY_FORMS = ReportForms(
    json="d characters a report, position i is item i.",
    packed="ceil(d/8) bytes a report, item i is bit i%8 of byte i//8 (bit 0 the least "
    "significant), padding bits zero.",
    values={"reports": {"type": "string", "pattern": "^[01]+$"}},
    example={"reports": ["0100"]},
)
FIXED_SIZE_FORMS = replace(
    UNARY_FORMS,
    json=UNARY_FORMS.json + " Exactly k of them are 1.",
    packed=UNARY_FORMS.packed + " Exactly k bits are one.",
)


@dataclass(frozen=True)
class UnaryEncoding(FrequencyOracle):
    """A protocol whose report is d bits; it supports the items whose bits are one.

    Packed, item i is bit i%8 of byte i//8 (bit 0 the least significant); padding bits are zero.
    Bits are independent given the user's item, or `fixed_size` of them are one.
    """

    @property
    def row_bytes(self) -> int:
        """Bytes of one packed report, ceil(d/8)."""
        return -(-self.domain_size // 8)

    @cached_property
    def wire(self) -> BitsForm:
        return BitsForm(self.domain_size, self.fixed_size)

    def encode(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        """Return each item's bit as one, and as many random others as a fixed size needs."""
        user_items = self.item_indices(items)
        if self.fixed_size is not None:
            sizes = np.full(user_items.size, self.fixed_size)
            return padded_rows(
                user_items[:, None], sizes, self.domain_size, rng or np.random.default_rng()
            )
        rows = np.zeros((user_items.size, self.row_bytes), dtype=np.uint8)
        set_bits(rows, user_items, np.ones(user_items.size, dtype=np.uint8))
        return rows

    def summarise(self, reports: Reports) -> Int64Array:
        return counting.oue_counts(reports, self.domain_size)

    def supports(self, reports: Reports, items: Items = ALL_ITEMS) -> BoolArray:
        rows = self.wire.rows(reports)
        if isinstance(items, slice):
            return _bits(rows, self.domain_size)[:, items].view(np.bool_)
        return counting.unary_supported(rows, items.astype(np.uint32)).T

    def support_sizes(self, reports: Reports) -> Int64Array:
        return counting.unary_sizes(self.wire.rows(reports))

    @property
    def laws(self) -> Laws:
        laws = super().laws
        if not self.traits.independent_bits:
            return laws
        return replace(laws, log_likelihood=self._log_likelihood)

    def _log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        p, q, d = self.p, self.q, self.domain_size
        mass = self.supported_mass(reports, frequencies)
        sizes = self.support_sizes(reports)
        log = sizes * math.log(q) + (d - sizes) * math.log1p(-q)
        log += np.log(p / q * mass + (1 - p) / (1 - q) * (1 - mass))
        return log


class BitsForm(WireForm):
    """A report is d bits, of which `ones` are one if that is given."""

    def __init__(self, domain_size: int, ones: int | None) -> None:
        forms = UNARY_FORMS if ones is None else FIXED_SIZE_FORMS
        dtype = np.dtype(("u1", (-(-domain_size // 8),)))
        super().__init__(forms, dtype, Column("reports", str, domain_size, "report", ones))
        self.domain_size, self.ones = domain_size, ones

    def rows(self, reports: object) -> Reports:
        """Return reports as packed rows; a 0/1 matrix of d columns is packed."""
        array = plain_array(reports, "reports")
        if array.ndim != 2 or array.shape[1] != self.domain_size:
            return super().rows(array)
        if array.dtype != np.bool_:
            array = integers(array, "bits of reports", 1).astype(np.bool_)
        return np.packbits(array, axis=1, bitorder="little")

    def check(self, reports: Reports) -> None:
        used, padded = self.domain_size % 8, np.zeros(len(reports), np.bool_)
        if used and padded.size and reports[:, -1].max() >> used:
            padded = reports[:, -1] >> used != 0
        if self.ones is not None:
            off = counting.unary_sizes(reports) != self.ones
            first = padded.size if not padded.any() else int(np.argmax(padded))
            raise_first(off[:first], f"exactly {self.ones} bits of the report must be one")
        raise_first(padded, "the padding bits after the last item must be zero")

    def split(self, reports: Reports) -> tuple[list[Any], ...]:
        digits = _bits(reports, self.domain_size) + np.uint8(ord("0"))
        return ([row.tobytes().decode("ascii") for row in digits],)

    def join(self, values: Sequence[list[Any]]) -> Reports:
        (rows,), (column,), d = values, self.columns, self.domain_size
        text = "".join(rows)
        if set(map(len, rows)) != {d} or not text.isascii():
            matches = (re.match(column.pattern, row) for row in rows)
            raise ReportError(column.reason, position=list(map(bool, matches)).index(False))
        digits = np.frombuffer(text.encode("ascii"), dtype=np.uint8).reshape(len(rows), d) - ord(
            "0"
        )
        # The maximum of all digits takes a fraction of the time that one for each row takes.
        if column.ones is not None or digits.max() > 1:
            bad = np.asarray((digits > 1).any(axis=1))
            if column.ones is not None:
                bad = bad | (np.count_nonzero(digits, axis=1) != column.ones)
            raise_first(bad, column.reason)
        return np.packbits(digits, axis=1, bitorder="little")


def _bits(rows: UInt8Array, d: int) -> UInt8Array:
    """Return the (n, d) bits of packed rows."""
    return np.unpackbits(rows, axis=1, count=d, bitorder="little")


def set_bits(rows: UInt8Array, positions: Int64Array, ones: UInt8Array) -> None:
    """Set in each row the bit at its position to one or zero."""
    flat = rows.reshape(-1)
    at = np.arange(len(rows)) * rows.shape[1] + positions // 8
    bit = (positions % 8).astype(np.uint8)
    cleared = flat[at] & ~np.left_shift(np.uint8(1), bit)
    flat[at] = cleared | np.left_shift(ones, bit)


def padded_rows(chosen_items: Int64Array, sizes: Int64Array, d: int, rng: Rng) -> UInt8Array:
    """Return packed rows of d bits: the chosen items (m, r) first, then random others.

    Row i has sizes[i] ones. If that is below r, the ones are a random subset of the chosen items.
    """

    def chosen_first(keys: FloatArray, users: Int64Array) -> None:
        rows = chosen_items[users]
        np.put_along_axis(keys, rows, np.take_along_axis(keys, rows, axis=1) - 1.0, axis=1)

    return rows_of_lowest_keys(sizes, d, rng, chosen_first)


def rows_of_lowest_keys(
    sizes: Int64Array,
    d: int,
    rng: Rng,
    change: Callable[[FloatArray, Int64Array], None] = lambda keys, users: None,
) -> UInt8Array:
    """Return packed rows whose ones are at the sizes[i] lowest of d keys.

    Keys are random from [0, 1), so the lowest are a uniformly random set. `change(keys, users)` may
    move keys of these users, in place, so that they come first or last.
    """
    rows = np.empty((len(sizes), -(-d // 8)), dtype=np.uint8)
    order = np.argsort(sizes, kind="stable")
    ends = np.flatnonzero(np.diff(sizes[order])) + 1
    for alike in np.split(order, ends):
        for block in tiles((len(alike), d), _CELLS):
            users = alike[block]
            ones = int(sizes[users[0]])
            keys = rng.random((len(users), d))
            change(keys, users)
            bits = np.zeros((len(users), d), dtype=np.uint8)
            if ones:
                np.put_along_axis(
                    bits, np.argpartition(keys, ones - 1, axis=1)[:, :ones], 1, axis=1
                )
            rows[users] = np.packbits(bits, axis=1, bitorder="little")
    return rows
