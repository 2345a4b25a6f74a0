"""Support counting in numpy alone.

Work is split into blocks that stay in a core's second-level cache, so memory is bounded for any
number of reports and items.
"""

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldprecover.counting.xxhash32 import PRIME2, PRIME3, PRIME4, report_blocks
from ldprecover.types import (
    BoolArray,
    FloatArray,
    Int64Array,
    UInt8Array,
    UInt16Array,
    UInt32Array,
    UInt64Array,
)

_CHUNK = 1 << 16  # items of a block that GRR widens to numpy's index type
_CELLS = 1 << 16  # (report, item) tests of an OLH block
_LANES = 1024  # hits are summed as bytes, 128 words of 8 at a time
_LINE = 1 << 13  # 64-bit words of a line that OUE adds
_FEW = 1 << 10  # rows below which OUE unpacks the bits
_UNPACKED = 1 << 20  # unpacked bits of a block
_ROWS = 1 << 12  # rows whose bits are picked: a cache holds the bytes that they are read from
_SIZED = 1 << 13  # words of a block of rows whose ones are counted
_NARROW = 32  # words of a row up to which its words are added one column after another
_JOINED = 1 << 14  # words of two lists of lines in a block that is compared
_EXACT = 1 << 53  # below this, floats of 64 bits hold every integer
_HALF = 32  # bits of the lower half of a number

# Arrays without dimensions: ufuncs convert them faster than scalars.
_SHIFTS = {bits: np.array(bits, dtype=np.uint32) for bits in (13, 15, 16, 17)}
_PRIME2, _PRIME3, _PRIME4 = (np.array(prime, dtype=np.uint32) for prime in (PRIME2, PRIME3, PRIME4))


def grr_counts(items: UInt32Array, d: int) -> Int64Array:
    """Return how often each item 0..d-1 occurs among n items: C(v) of GRR, in O(n + d).

    Raises IndexError for an item outside this range.
    """
    counts = np.zeros(d, dtype=np.int64)
    for start in range(0, len(items), _CHUNK):
        # Where all operands have the table's type, np.add.at takes two thirds of np.bincount's
        # time.
        np.add.at(counts, items[start : start + _CHUNK].astype(np.intp), np.int64(1))
    return counts


def olh_counts(seeds: UInt32Array, buckets: UInt16Array, d: int, g: int) -> Int64Array:
    """Return, for each of d items, the number of n seeds that hash it to their bucket: C(v) of OLH.

    `seeds` and `buckets` are (n,); buckets are below g, which is from 2 to 65536. Takes O(nd).

    The longer of the two axes is the inner one. With at least 8192 reports in a block, numpy's
    inner loops are as long as its internal buffer, and broadcasting costs nothing.
    """
    return _olh(seeds, buckets, d, g, None)


def olh_counts_and_sizes(
    seeds: UInt32Array, buckets: UInt16Array, d: int, g: int
) -> tuple[Int64Array, Int64Array]:
    """Return the counts of `olh_counts`, and for each report the number of items it supports."""
    sizes = np.zeros(len(seeds), dtype=np.int64)
    return _olh(seeds, buckets, d, g, sizes), sizes


def _olh(
    seeds: UInt32Array, buckets: UInt16Array, d: int, g: int, sizes: Int64Array | None
) -> Int64Array:
    """Return the counts; add the number of items that each report supports to `sizes`, if given."""
    counts = np.zeros(d, dtype=np.int64)
    products = np.arange(d, dtype=np.uint32) * _PRIME3
    scratch = _Scratch()
    if len(seeds) > d:
        count, size = scratch.count_along_reports, max(8192, _CELLS // d // _LANES * _LANES)
    else:
        count, size = scratch.count_along_items, min(255, max(8, _CELLS // d))
    for block, base, lo, width in report_blocks(seeds, buckets, g, size):
        count(base, lo, width, products, counts, None if sizes is None else sizes[block])
    return counts


def olh_supported(
    seeds: UInt32Array, buckets: UInt16Array, items: UInt32Array, g: int
) -> BoolArray:
    """Return 1[the seed hashes the item to its bucket], an (items, n) array for n reports."""
    supported = np.empty((len(items), len(seeds)), np.bool_)
    products = (items * _PRIME3)[:, None]
    scratch = _Scratch()
    size = min(_CELLS, max(8192, _CELLS // max(1, len(items)) // _LANES * _LANES))
    for block, base, lo, width in report_blocks(seeds, buckets, g, size):
        step = _CELLS // len(base)
        for first in range(0, len(items), step):
            rows = slice(first, first + step)
            scratch.test(base, lo, width, products[rows], supported[rows, block])
    return supported


class _Scratch:
    """Buffers for one block of OLH tests."""

    def __init__(self) -> None:
        self._hash: UInt32Array = _aligned(_CELLS, np.uint32)
        self._shifted: UInt32Array = _aligned(_CELLS, np.uint32)
        self._hits: BoolArray = _aligned(_CELLS, np.bool_)

    def count_along_reports(
        self,
        base: UInt32Array,
        lo: UInt32Array,
        width: UInt32Array,
        products: UInt32Array,
        counts: Int64Array,
        sizes: Int64Array | None,
    ) -> None:
        """Add the supports of at most 65536 reports."""
        padded = -(-len(base) // _LANES) * _LANES
        step = _CELLS // padded
        hits = self._hits[: step * padded].reshape(step, padded)
        hits[:, len(base) :] = False
        # A word holds eight hits; 128 words sum without a carry from byte to byte.
        words = hits.view(np.uint64).reshape(step, padded // _LANES, _LANES // 8)
        sums = np.empty((len(counts), padded // _LANES), dtype=np.uint64)
        for start in range(0, len(counts), step):
            items = slice(start, start + step)
            column = products[items, None]
            self.test(base, lo, width, column, hits[: len(column), : len(base)])
            np.add.reduce(words[: len(column)], axis=2, out=sums[items])
            if sizes is not None:  # of at most 64 items, so that they sum in a byte
                sizes += np.add.reduce(
                    hits[: len(column), : len(base)].view(np.uint8), axis=0, dtype=np.uint8
                )
        counts += sums.view(np.uint8).sum(axis=1, dtype=np.int64)

    def count_along_items(
        self,
        base: UInt32Array,
        lo: UInt32Array,
        width: UInt32Array,
        products: UInt32Array,
        counts: Int64Array,
        sizes: Int64Array | None,
    ) -> None:
        """Add the supports of at most 255 reports."""
        step = _CELLS // len(base)
        for start in range(0, len(counts), step):
            items = slice(start, start + step)
            row = products[items]
            hits = self._hits[: len(base) * len(row)].reshape(len(base), len(row))
            self.test(base[:, None], lo[:, None], width[:, None], row, hits)
            counts[items] += np.add.reduce(hits.view(np.uint8), axis=0, dtype=np.uint8)
            if sizes is not None:
                sizes += np.count_nonzero(hits, axis=1)

    def test(
        self,
        base: UInt32Array,
        lo: UInt32Array,
        width: UInt32Array,
        products: UInt32Array,
        hits: BoolArray,
    ) -> None:
        """Set hits to (xxHash32 - lo) mod 2^32 < width; the other arrays broadcast to its shape."""
        h = self._hash[: hits.size].reshape(hits.shape)
        t = self._shifted[: hits.size].reshape(hits.shape)
        np.add(base, products, out=h)
        np.left_shift(h, _SHIFTS[17], out=t)
        np.right_shift(h, _SHIFTS[15], out=h)
        np.bitwise_or(h, t, out=h)
        np.multiply(h, _PRIME4, out=h)
        np.right_shift(h, _SHIFTS[15], out=t)
        np.bitwise_xor(h, t, out=h)
        np.multiply(h, _PRIME2, out=h)
        np.right_shift(h, _SHIFTS[13], out=t)
        np.bitwise_xor(h, t, out=h)
        np.multiply(h, _PRIME3, out=h)
        np.right_shift(h, _SHIFTS[16], out=t)
        np.bitwise_xor(h, t, out=h)
        np.subtract(h, lo, out=h)
        np.less(h, width, out=hits)


def _aligned(size: int, dtype: Any) -> NDArray[Any]:
    """Return an uninitialised array that starts a cache line, so that no vector straddles two."""
    line = 64
    raw = np.empty(size * np.dtype(dtype).itemsize + line, dtype=np.uint8)
    start = -raw.ctypes.data % line
    return raw[start : raw.size - line + start].view(dtype)


def oue_counts(rows: UInt8Array, d: int) -> Int64Array:
    """Return, for each of d items, the number of n packed rows with its bit set: C(v) of OUE.

    `rows` is (n, ceil(d/8)); item i is bit i%8 of byte i//8. Takes O(nd).
    """
    count = _count_unpacked if len(rows) < _FEW else _count_added
    return count(rows)[:d]


def unary_sizes(rows: UInt8Array) -> Int64Array:
    """Return the number of bits that are one in each packed row."""
    sizes = np.zeros(len(rows), np.int64)
    for block, words in word_blocks(rows, _SIZED):
        ones, block_sizes = np.bitwise_count(words), sizes[block]
        if words.shape[1] > _NARROW:
            np.add.reduce(ones, axis=1, dtype=np.int64, out=block_sizes)
        else:  # starting a short sum takes numpy as long as adding a dozen columns
            for column in ones.T:
                np.add(block_sizes, column, out=block_sizes)
    return sizes


def word_blocks(rows: UInt8Array, size: int) -> Iterator[tuple[slice, UInt64Array]]:
    """Yield blocks of packed rows, padded to 64-bit words of which a block has about `size`."""
    n, row_bytes = rows.shape
    width = -(-row_bytes // 8)
    step = max(1, size // width)
    padded = np.zeros((min(n, step), 8 * width), np.uint8)
    for start in range(0, n, step):
        block = slice(start, min(n, start + step))
        padded[: block.stop - start, :row_bytes] = rows[block]
        yield block, padded[: block.stop - start].view(np.uint64)


def unary_supported(rows: UInt8Array, items: UInt32Array) -> BoolArray:
    """Return 1[the item's bit is set in the row], an (items, n) array for n packed rows."""
    bits = np.empty((len(items), len(rows)), np.uint8)
    for start in range(0, len(rows), _ROWS):
        block = slice(start, start + _ROWS)
        for item, column in zip(items.tolist(), bits[:, block], strict=True):
            np.right_shift(rows[block, item >> 3], np.uint8(item & 7), out=column)
        np.bitwise_and(bits[:, block], np.uint8(1), out=bits[:, block])
    return bits.view(np.bool_)


def joint_counts(lines: UInt64Array, others: UInt64Array) -> Int64Array:
    """Return for each pair of packed lines the number of places where both have a one.

    The result is (lines, others). If both arguments are the same array, it takes half the time.
    """
    counts = np.zeros((len(lines), len(others)), np.int64)
    same = lines is others
    words = lines.shape[1]
    step = max(8, _JOINED // max(1, len(others)))
    for start in range(0, words, step):
        block = np.ascontiguousarray(others[:, start : start + step])
        for i, line in enumerate(lines[:, start : start + step]):
            pairs = slice(i, None) if same else slice(None)
            counts[i, pairs] += np.bitwise_count(block[pairs] & line).sum(axis=1, dtype=np.int64)
    return np.maximum(counts, counts.T) if same else counts


def _count_unpacked(rows: UInt8Array) -> Int64Array:
    counts = np.zeros(8 * rows.shape[1], dtype=np.int64)
    step = min(255, max(1, _UNPACKED // counts.size))
    for start in range(0, len(rows), step):
        bits = np.unpackbits(rows[start : start + step], axis=1, bitorder="little")
        counts += np.add.reduce(bits, axis=0, dtype=np.uint8)
    return counts


def _count_added(rows: UInt8Array) -> Int64Array:
    """Count with carry-save adders: about five 64-bit operations for each 64 bits of the rows.

    A line holds as many rows as fill whole words, and is added as one long word. Its bits are
    separated, and the rows of a line folded, after all lines are added.
    """
    n, row_bytes = rows.shape
    group = 8 // math.gcd(row_bytes, 8)  # the fewest rows that fill whole words
    width = group * row_bytes // 8
    groups = 1 << max(1, min(_LINE // width, n // group // 16)).bit_length() - 1
    lines = _LineCounter(-(-n // (groups * group)), groups * width)
    for start in range(0, n, groups * group):
        block = rows[start : start + groups * group]
        if len(block) < groups * group:
            padded = np.zeros((groups * group, row_bytes), dtype=np.uint8)
            padded[: len(block)] = block
            block = padded
        lines.add(np.ascontiguousarray(block).reshape(-1).view(np.uint64))
    counts: Int64Array = lines.bit_counts(groups, width).reshape(8, group, row_bytes).sum(axis=1)
    return counts.T.reshape(-1)


class _LineCounter:
    """Counts the ones at each bit position of many lines of words, in carry-save form.

    It is a binary counter of full adders (Harley and Seal; Warren, Hacker's Delight, 5-1).
    `_planes[k]` holds bit k of every position's count. `_waiting[k]` is one more line of weight 2^k
    whenever bit k of the number of lines is one.
    """

    def __init__(self, lines: int, size: int) -> None:
        depth = lines.bit_length()
        self._added = 0
        self._planes: list[UInt64Array] = [_aligned(size, np.uint64) for _ in range(depth)]
        self._waiting: list[UInt64Array] = [_aligned(size, np.uint64) for _ in range(depth)]
        self._carries: list[UInt64Array] = [_aligned(size, np.uint64) for _ in range(2)]
        self._both: UInt64Array = _aligned(size, np.uint64)
        for plane in self._planes:
            plane[...] = 0

    def add(self, line: UInt64Array) -> None:
        """Add a line; the caller must not change it before the next one is added."""
        carry, k = line, 0
        while self._added >> k & 1:
            a, b, both = self._planes[k], self._waiting[k], self._both
            out = self._carries[k % 2] if self._added >> (k + 1) & 1 else self._waiting[k + 1]
            np.bitwise_and(a, b, out=both)
            np.bitwise_xor(a, b, out=a)
            np.bitwise_and(a, carry, out=out)
            np.bitwise_xor(a, carry, out=a)
            np.bitwise_or(both, out, out=out)
            carry, k = out, k + 1
        if k == 0:
            self._waiting[0] = line
        self._added += 1

    def bit_counts(self, groups: int, width: int) -> Int64Array:
        """Return, as (8, bytes of a group), the count of each bit over all groups of a line."""
        waiting = [k for k in range(len(self._planes)) if self._added >> k & 1]
        weights = np.left_shift(np.int64(1), np.array([*range(len(self._planes)), *waiting]))
        stack = np.stack([*self._planes, *(self._waiting[k] for k in waiting)])
        lanes = np.empty_like(stack)
        counts = np.empty((8, 8 * width), dtype=np.int64)
        fold = min(groups, 128)  # sums of at most 128 bits fit into a byte
        for bit in range(8):
            np.right_shift(stack, np.uint64(bit), out=lanes)
            np.bitwise_and(lanes, np.uint64(0x0101010101010101), out=lanes)
            sums = np.add.reduce(lanes.reshape(len(stack), groups // fold, fold, width), axis=2)
            counts[bit] = weights @ sums.view(np.uint8).sum(axis=1, dtype=np.int64)
        return counts


def walsh_hadamard(values: Int64Array) -> Int64Array:
    """Return the Walsh-Hadamard transform of 2^b numbers of at least 0, exactly.

    The matrix is the Kronecker product of three matrices of about 2^(b/3) rows. numpy multiplies by
    those in floats, three times as fast as it adds and subtracts integers in b passes.
    """
    # No sum on the way is larger: below this limit all of them are floats without rounding.
    if int(values.sum()) >= _EXACT:
        high = walsh_hadamard(values >> _HALF)
        return (high << _HALF) + walsh_hadamard(values & ((1 << _HALF) - 1))
    transformed: Int64Array = transform_floats(values.astype(np.float64)).astype(np.int64)
    return transformed


def transform_floats(values: FloatArray) -> FloatArray:
    """Return the Walsh-Hadamard transform of 2^b floats."""
    bits = values.size.bit_length() - 1
    sizes = [1 << (bits // 3 + (i < bits % 3)) for i in range(3)]
    first, second, third = map(_hadamard, sizes)
    cube = values.reshape(sizes)
    # In stacks of small products, which the linear algebra library leaves in this thread.
    cube = np.matmul(second, np.matmul(cube, third))
    cube = np.matmul(first, cube.transpose(1, 0, 2)).transpose(1, 0, 2)
    transformed: FloatArray = cube.reshape(values.size)
    return transformed


@functools.lru_cache(maxsize=8)
def _hadamard(rows: int) -> FloatArray:
    """Return the matrix with (-1)^popcount(i & j) in row i and column j."""
    matrix = np.ones((1, 1))
    while len(matrix) < rows:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    matrix.flags.writeable = False  # every caller gets this one
    return matrix
