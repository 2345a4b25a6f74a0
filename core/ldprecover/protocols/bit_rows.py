"""Random bit vectors with given numbers of ones, as packed rows."""

from collections.abc import Callable

import numpy as np

from ldprecover.counting.tiles import tiles
from ldprecover.types import FloatArray, Int64Array, Rng, UInt8Array

_CELLS = 1 << 20  # random keys in memory, 8 MiB


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
