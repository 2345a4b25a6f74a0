"""Support counting compiled by numba, which must be installed to import this module.

The compiled functions hold no state and release the GIL, so threads may count in parallel. They are
compiled for the types below when the module is imported, and cached on disk if numba finds a
writable folder.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import numba
import numpy as np
from numba import int64, types, uint8, uint32, uint64, uintp

from ldprecover.counting import numpy_kernels
from ldprecover.counting.xxhash32 import PRIME2, PRIME3, PRIME4, report_blocks
from ldprecover.types import (
    BoolArray,
    Int64Array,
    UInt8Array,
    UInt16Array,
    UInt32Array,
    UInt64Array,
)

_BLOCK = 1 << 15  # OLH reports of a block that is prepared
_INNER = 1 << 10  # OLH reports that stay in the first-level cache over all items
_TABLES = 4  # interleaved GRR tables: equal items in a row then do not wait for each other's store
_NARROW = 1 << 12  # items up to which several tables stay in the first-level cache
_COLUMNS = 256  # words of a line that OUE adds in one pass
_LINE = 128  # words that a line should have, for long inner loops
_ROWS = 1 << 8  # rows of a block whose bits are picked
_JOINED = 1 << 9  # words of a block of each line that is compared
_HASHED = (uint32[::1],) * 4  # types of the columns of prepared OLH reports, and of the items


def grr_counts(items: UInt32Array, d: int) -> Int64Array:
    """Return how often each item 0..d-1 occurs. Raises IndexError for an item outside."""
    number = _TABLES if d <= _NARROW else 1
    tables = np.zeros(number * d, dtype=np.int64)
    if _grr(items, d, tables, number - 1):
        raise IndexError(f"an item is not from 0 to {d - 1}")
    return tables.reshape(number, d).sum(axis=0)


def olh_counts(seeds: UInt32Array, buckets: UInt16Array, d: int, g: int) -> Int64Array:
    """Return for each item 0..d-1 the number of reports whose seed hashes it to their bucket."""
    return _olh_counts(seeds, buckets, d, g, None)


def olh_counts_and_sizes(
    seeds: UInt32Array, buckets: UInt16Array, d: int, g: int
) -> tuple[Int64Array, Int64Array]:
    """Return the counts of `olh_counts`, and for each report the number of items it supports."""
    sizes = np.zeros(len(seeds), dtype=np.uint32)
    return _olh_counts(seeds, buckets, d, g, sizes), sizes.astype(np.int64)


def _olh_counts(
    seeds: UInt32Array, buckets: UInt16Array, d: int, g: int, sizes: UInt32Array | None
) -> Int64Array:
    counts = np.zeros(d, dtype=np.int64)
    products = np.arange(d, dtype=np.uint32) * np.uint32(PRIME3)
    for block, base, lo, width in report_blocks(seeds, buckets, g, _BLOCK):
        _olh(base, lo, width, products, counts, None if sizes is None else sizes[block])
    return counts


def olh_supported(
    seeds: UInt32Array, buckets: UInt16Array, items: UInt32Array, g: int
) -> BoolArray:
    """Return 1[the seed hashes the item to its bucket], an (items, n) array for n reports."""
    supported = np.empty((len(items), len(seeds)), np.uint8)
    products = items * np.uint32(PRIME3)
    for block, base, lo, width in report_blocks(seeds, buckets, g, _BLOCK):
        _olh_hits(base, lo, width, products, block.start, supported)
    return supported.view(np.bool_)


def unary_sizes(rows: UInt8Array) -> Int64Array:
    """Return the number of bits that are one in each row."""
    sizes = np.empty(len(rows), np.int64)
    _ones(np.ascontiguousarray(rows).reshape(-1), rows.shape[1], sizes)
    return sizes


def unary_supported(rows: UInt8Array, items: UInt32Array) -> BoolArray:
    """Return 1[the item's bit is set in the row], an (items, n) array for n rows."""
    supported = np.empty((len(items), len(rows)), np.uint8)
    _bits(rows, items, supported)
    return supported.view(np.bool_)


def joint_counts(lines: UInt64Array, others: UInt64Array) -> Int64Array:
    """Return, as (lines, others), the number of bits that are one in both lines of each pair."""
    counts = np.zeros((len(lines), len(others)), np.int64)
    same = lines is others
    _joint(lines, others, same, counts)
    return np.maximum(counts, counts.T) if same else counts


def oue_counts(rows: UInt8Array, d: int) -> Int64Array:
    """Return for each of d items the number of rows whose bit is one, ignoring padding bits."""
    n, row_bytes = rows.shape
    # A line holds enough rows to fill whole words; it is counted as one long word.
    group = 8 // math.gcd(row_bytes, 8)
    group *= max(1, _LINE * 8 // (group * row_bytes))
    lines = n // group
    if lines < 8:
        return numpy_kernels.oue_counts(rows, d)
    words = np.ascontiguousarray(rows[: lines * group]).reshape(-1).view(np.uint64)
    # For a row, not a line: malloc maps and unmaps blocks of a megabyte at each call.
    counts = np.zeros(8 * row_bytes, dtype=np.int64)
    _oue(words, lines, counts)
    counts = counts[:d]
    if lines * group < n:
        counts += numpy_kernels.oue_counts(rows[lines * group :], d)
    return counts


def _input(dtype: Any, dimensions: int, layout: Literal["A", "C"]) -> Any:
    """Return the numba type of an array that is only read, and may be read-only or unaligned."""
    return types.Array(dtype, dimensions, layout, readonly=True, aligned=False)


def _compiled(
    *arguments: Any, returns: Any = types.void, optional: Any = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function for these argument types.

    With `optional` it has another argument, and is compiled for this type and for None.
    """
    last = [()] if optional is None else [(optional,), (types.none,)]
    signatures = [returns(*arguments, *each) for each in last]

    def compile_(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return numba.njit(signatures, nogil=True, cache=True)(function)
        except (OSError, RuntimeError):  # numba found no writable folder for its cache
            return numba.njit(signatures, nogil=True)(function)

    return compile_


@_compiled(_input(uint32, 1, "A"), int64, int64[::1], int64, returns=types.boolean)
def _grr(items, d, tables, mask):  # type: ignore[no-untyped-def]
    """Count items into the mask + 1 tables in turn; return whether any is outside 0..d-1."""
    outside = False
    for i in range(len(items)):
        item = int64(items[i])
        if item < d:
            tables[uintp((i & mask) * d + item)] += 1
        else:
            outside = True
    return outside


@numba.njit(inline="always")
def _hash(h):  # type: ignore[no-untyped-def]
    """Return xxHash32; every intermediate is cast, for numba widens 32 bits to 64."""
    h = uint32(uint32(uint32(h << uint32(17)) | uint32(h >> uint32(15))) * uint32(PRIME4))
    h = uint32(uint32(h ^ uint32(h >> uint32(15))) * uint32(PRIME2))
    h = uint32(uint32(h ^ uint32(h >> uint32(13))) * uint32(PRIME3))
    return uint32(h ^ uint32(h >> uint32(16)))


@_compiled(*_HASHED, int64[::1], optional=uint32[::1])
def _olh(base, lo, width, products, counts, sizes):  # type: ignore[no-untyped-def]
    """Add the supports of reports, and each report's size to `sizes` unless that is None."""
    for start in range(0, len(base), _INNER):
        stop = min(len(base), start + _INNER)
        b, first, size = base[start:stop], lo[start:stop], width[start:stop]
        own = sizes
        if sizes is not None:
            own = sizes[start:stop]
        for v in range(len(products)):
            product = products[v]
            total = uint32(0)
            for i in range(stop - start):
                h = _hash(uint32(b[i] + product))
                hit = uint32(uint32(h - first[i]) < size[i])
                total = uint32(total + hit)
                if sizes is not None:
                    own[i] = uint32(own[i] + hit)
            counts[v] += int64(total)


@_compiled(*_HASHED, int64, uint8[:, ::1])
def _olh_hits(base, lo, width, products, offset, supported):  # type: ignore[no-untyped-def]
    """Write which of these reports support which item, from the column `offset` on."""
    for start in range(0, len(base), _INNER):
        stop = min(len(base), start + _INNER)
        b, first, size = base[start:stop], lo[start:stop], width[start:stop]
        for v in range(len(products)):
            product = products[v]
            row = supported[v, offset + start : offset + stop]
            for i in range(stop - start):
                h = _hash(uint32(b[i] + product))
                row[i] = uint8(uint32(h - first[i]) < size[i])


@numba.njit(inline="always")
def _popcount(word):  # type: ignore[no-untyped-def]
    """Return the number of ones; compilers turn these lines into one instruction if possible."""
    word = word - ((word >> uint64(1)) & uint64(0x5555555555555555))
    word = (word & uint64(0x3333333333333333)) + ((word >> uint64(2)) & uint64(0x3333333333333333))
    word = (word + (word >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return (word * uint64(0x0101010101010101)) >> uint64(56)


@_compiled(_input(uint8, 1, "C"), int64, int64[::1])
def _ones(rows, width, sizes):  # type: ignore[no-untyped-def]
    """Set each size to the number of ones of its row of `width` bytes.

    Compilers turn the eight bytes of a word into one load; a loop over all bytes takes five times
    as long.
    """
    at = uintp(0)
    for i in range(len(sizes)):
        total = uint64(0)
        for _ in range(width // 8):
            word = uint64(0)
            for k in range(8):
                word |= uint64(rows[at + uintp(k)]) << uint64(8 * k)
            total += _popcount(word)
            at += uintp(8)
        word = uint64(0)
        for k in range(width % 8):
            word |= uint64(rows[at + uintp(k)]) << uint64(8 * k)
        at += uintp(width % 8)
        sizes[i] = int64(total + _popcount(word))


@_compiled(_input(uint8, 2, "A"), uint32[::1], uint8[:, ::1])
def _bits(rows, items, supported):  # type: ignore[no-untyped-def]
    """Write which rows have which bit set."""
    for start in range(0, len(rows), _ROWS):
        block = rows[start : start + _ROWS]
        for v in range(len(items)):
            at, shift = uintp(items[v] >> uint32(3)), uint8(items[v] & uint32(7))
            row = supported[v, start : start + _ROWS]
            for i in range(len(block)):
                row[i] = (block[i, at] >> shift) & uint8(1)


@_compiled(uint64[:, ::1], uint64[:, ::1], types.boolean, int64[:, ::1])
def _joint(lines, others, same, counts):  # type: ignore[no-untyped-def]
    """Add for each pair of lines the ones they have in common; for the same lines only i <= j."""
    for start in range(0, lines.shape[1], _JOINED):
        for i in range(len(lines)):
            line = lines[i, start : start + _JOINED]
            for j in range(i if same else 0, len(others)):
                other = others[j, start : start + _JOINED]
                total = uint64(0)
                for c in range(len(line)):
                    total += _popcount(line[c] & other[c])
                counts[i, j] += int64(total)


@numba.njit(inline="always")
def _full_adder(a, b, c):  # type: ignore[no-untyped-def]
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@numba.njit
def _add_eight(words, start, stride, planes, columns):  # type: ignore[no-untyped-def]
    """Add eight lines to planes 0, 1 and 2, and write the carries of weight 8 to plane 3.

    Indices are unsigned, which spares numba's test for negative ones and lets the loop vectorise.
    """
    one = uintp(stride)
    at = uintp(start)
    for column in range(columns):
        j = uintp(column)
        i = at + j
        ones, twos, fours = planes[j], planes[j + uintp(_COLUMNS)], planes[j + uintp(2 * _COLUMNS)]
        ones, a = _full_adder(ones, words[i], words[i + one])
        ones, b = _full_adder(ones, words[i + uintp(2) * one], words[i + uintp(3) * one])
        twos, c = _full_adder(twos, a, b)
        ones, a = _full_adder(ones, words[i + uintp(4) * one], words[i + uintp(5) * one])
        ones, b = _full_adder(ones, words[i + uintp(6) * one], words[i + uintp(7) * one])
        twos, d = _full_adder(twos, a, b)
        fours, eights = _full_adder(fours, c, d)
        planes[j], planes[j + uintp(_COLUMNS)], planes[j + uintp(2 * _COLUMNS)] = ones, twos, fours
        planes[j + uintp(3 * _COLUMNS)] = eights


@numba.njit
def _add_carry(planes, start, columns):  # type: ignore[no-untyped-def]
    """Add plane 3 and the line waiting after the plane at `start` to it; carries go to plane 3."""
    at = uintp(start)
    for column in range(columns):
        j = uintp(column)
        waiting = planes[at + uintp(_COLUMNS) + j]
        planes[at + j], planes[j + uintp(3 * _COLUMNS)] = _full_adder(
            planes[at + j], waiting, planes[j + uintp(3 * _COLUMNS)]
        )


@numba.njit
def _add_bits(words, weight, counts):  # type: ignore[no-untyped-def]
    """Add `weight` for each bit of the words that is one."""
    for j in range(len(words)):
        for bit in range(64):
            counts[64 * j + bit] += int64((words[j] >> uint64(bit)) & uint64(1)) * weight


@numba.njit
def _fold(column_counts, first, counts):  # type: ignore[no-untyped-def]
    """Add the counts of the bits of a line, from bit `first` on, to those of the bits of a row."""
    done, at = 0, first % len(counts)
    while done < len(column_counts):
        size = min(len(column_counts) - done, len(counts) - at)
        added, to = column_counts[done : done + size], counts[at : at + size]
        for i in range(size):
            to[i] += added[i]
        done, at = done + size, 0


@_compiled(_input(uint64, 1, "C"), int64, int64[::1])
def _oue(words, lines, counts):  # type: ignore[no-untyped-def]
    """Add the bits of `lines` lines of whole rows to the counts of a row, in carry-save form.

    A binary counter of full adders (Hacker's Delight, 5-1): planes 0 to 2 have weights 1, 2 and 4,
    plane 3 holds the carries. Then, for each weight 8, 16, ..., a plane and one line that waits
    while that bit of the number of eights is one.
    """
    length = len(words) // lines
    eights = lines // 8
    depth = 0
    while eights >> depth:
        depth += 1
    planes = np.empty((4 + 2 * depth) * _COLUMNS, dtype=np.uint64)
    bit_counts = np.empty(64 * min(_COLUMNS, length), dtype=np.int64)
    for first in range(0, length, _COLUMNS):
        columns = min(_COLUMNS, length - first)
        planes[:] = uint64(0)
        for eight in range(eights):
            _add_eight(words, 8 * eight * length + first, length, planes, columns)
            at, rest = 4 * _COLUMNS, eight
            while rest & 1:
                _add_carry(planes, at, columns)
                at += 2 * _COLUMNS
                rest >>= 1
            for j in range(columns):
                planes[uintp(at + _COLUMNS + j)] = planes[uintp(3 * _COLUMNS + j)]
        column_counts = bit_counts[: 64 * columns]
        column_counts[:] = 0
        for k in range(3):
            _add_bits(planes[k * _COLUMNS : k * _COLUMNS + columns], 1 << k, column_counts)
        for k in range(depth):
            at = (4 + 2 * k) * _COLUMNS
            _add_bits(planes[at : at + columns], 8 << k, column_counts)
            if eights >> k & 1:
                _add_bits(planes[at + _COLUMNS : at + _COLUMNS + columns], 8 << k, column_counts)
        for line in range(8 * eights, lines):
            at = line * length + first
            _add_bits(words[at : at + columns], 1, column_counts)
        _fold(column_counts, 64 * first, counts)
