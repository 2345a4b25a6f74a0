"""Linear hash functions over GF(g), g prime: buckets, and sums over all of them.

A number below S = g^k stands for its k digits in base g. A seed r hashes an item v to <r, v>, the
inner product of their digits modulo g. An array over all pairs of a seed r and a bucket y has r g +
y as its index. Sums of integers are exact.
"""

from functools import lru_cache
from typing import TypeVar

import numpy as np

from ldprecover.types import FloatArray, Int64Array

_Numbers = TypeVar("_Numbers", Int64Array, FloatArray)
_SMALL = 1 << 16  # places of a sum that are kept between calls


def buckets_of(seeds: Int64Array, items: Int64Array, g: int, k: int) -> Int64Array:
    """Return <r, v> modulo g for seeds r and items v, which broadcast."""
    if g == 2:
        return np.asarray(np.bitwise_count(seeds & items) & 1, np.int64)
    buckets = np.zeros(np.broadcast_shapes(seeds.shape, items.shape), np.int64)
    for _ in range(k):
        seeds, seed_digits = np.divmod(seeds, g)
        items, item_digits = np.divmod(items, g)
        buckets += seed_digits * item_digits
    return buckets % g


def support_sums(histogram: _Numbers, g: int, k: int) -> _Numbers:
    """Return C(v) = sum_r histogram(r, <r, v>) for v from 0 to S - 1, in O(S g^2 k).

    One digit at a time takes the place of the seed's: with T(r, v, y) the sum over the digits of
    the seed that are done, T'(r, v_j v, y) = sum_{r_j} T(r_j r, v, y + r_j v_j).
    """
    if histogram.size * g <= _SMALL:
        return _sums_by_places(histogram, g, k, 1)[::g].copy()
    sums = histogram
    for _ in range(k - 1):
        sums = _exchange_digit(sums, g, 1)
    parts = sums.reshape(g, -1, g)
    digits = np.arange(g)
    counts = np.zeros(parts.shape[1:], histogram.dtype)
    for digit, part in enumerate(parts):
        counts += part[:, digit * digits % g]
    return counts.reshape(-1)


def bucket_sums(weights: _Numbers, g: int, k: int) -> _Numbers:
    """Return W(r, y) = sum of weights(v) over the v with <r, v> = y, in O(S g^2 k)."""
    if weights.size * g**2 <= _SMALL:
        result = np.zeros(weights.size * g, weights.dtype)
        result[::g] = weights
        return _sums_by_places(result, g, k, -1)
    parts = weights.reshape(g, -1)
    digits = np.arange(g)
    sums = np.zeros((parts.shape[1], g, g), weights.dtype)
    for digit, part in enumerate(parts):
        sums[:, digits, digit * digits % g] += part[:, None]
    result = sums.reshape(-1)
    for _ in range(k - 1):
        result = _exchange_digit(result, g, -1)
    return result


def _exchange_digit(sums: _Numbers, g: int, sign: int) -> _Numbers:
    """Sum over the leading digit a: T'(rest, b, y) = sum_a T(a, rest, y + sign a b)."""
    parts = sums.reshape(g, -1, g)
    result = np.zeros((g, parts.shape[1], g), sums.dtype)  # b first: its sums stay in the cache
    for a, part in enumerate(parts):
        twice = np.concatenate([part, part], axis=1)
        for b in range(g):
            shift = sign * a * b % g
            result[b] += twice[:, shift : shift + g]
    return result.swapaxes(0, 1).reshape(-1)


def _sums_by_places(sums: _Numbers, g: int, k: int, sign: int) -> _Numbers:
    """Return the result of k steps of `_exchange_digit`, several times faster for small arrays."""
    first, *others = _places(sums.size, g, sign)
    for _ in range(k):
        result = sums[first]
        for each in others:
            result += sums[each]
        sums = result
    return sums


@lru_cache(maxsize=16)
def _places(size: int, g: int, sign: int) -> Int64Array:
    """Return where the terms of `_exchange_digit` are, one row for each leading digit."""
    index, digits = np.arange(size).reshape(g, -1, g), np.arange(g)
    shifted = [(digits + sign * digit * digits[:, None]) % g for digit in digits]
    terms = [part[:, each].reshape(-1) for part, each in zip(index, shifted, strict=True)]
    return np.stack(terms)
