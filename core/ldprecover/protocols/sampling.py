"""Exact sampling from uniform 64-bit words, for simulators and real users alike.

A private draw compares a uniform 64-bit word with an integer threshold. Thresholds are computed in
decimal arithmetic and rounded to the private side. So the ratio of the probabilities of any report
under two values is at most e^epsilon exactly, not up to the rounding of a float.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldprecover.errors import ParameterError
from ldprecover.types import Rng, UInt64Array, Words

_DIGITS = 60  # e^10 * 2^64 has 24 digits before the point
_WORDS = Decimal(1 << 64)


def words_from(rng: Rng | None) -> Words:
    """Return a word source: the operating system's randomness, or a seeded generator's.

    None gives the cryptographic source, the only one that a real user may draw from.
    """
    if rng is None:
        return lambda n: np.frombuffer(os.urandom(8 * n), dtype="<u8")
    if not isinstance(rng, np.random.Generator):
        raise ParameterError(f"rng must be None or np.random.default_rng(seed), not {rng!r:.40}")
    return lambda n: rng.integers(0, 1 << 64, size=n, dtype=np.uint64)


def keep_threshold(epsilon: float, k: int) -> int:
    """Return the largest t with t(k-1)/(2^64 - t) <= e^epsilon.

    Generalised randomised response over k values keeps its value if a word is below t: with
    probability t/2^64, just under p = e^epsilon/(e^epsilon + k - 1).
    """
    return _threshold(epsilon, lambda e: _WORDS * e / (e + (k - 1)), ROUND_FLOOR)


def flip_threshold(epsilon: float) -> int:
    """Return the smallest t with (2^64 - t)/t <= e^epsilon.

    A zero bit of optimised unary encoding is sent as one if a word is below t: with probability
    t/2^64, just over q = 1/(e^epsilon + 1).
    """
    return _threshold(epsilon, lambda e: _WORDS / (e + 1), ROUND_CEILING)


def hold_threshold(epsilon: float, d: int, k: int) -> int:
    """Return the largest t with t(d-k)/((2^64 - t)k) <= e^epsilon.

    Subset selection reports k of d items that contain the user's if a word is below t: with
    probability t/2^64, just under p = k e^epsilon/(k e^epsilon + d - k).
    """
    return _threshold(epsilon, lambda e: _WORDS * k * e / (k * e + (d - k)), ROUND_FLOOR)


def _threshold(epsilon: float, words_of: Callable[[Decimal], Decimal], rounding: str) -> int:
    """Return the number of words, rounded to an integer, that follows from e^epsilon."""
    with localcontext(prec=_DIGITS):
        return int(words_of(Decimal(epsilon).exp()).to_integral_value(rounding))


def keep_or_replace(
    values: NDArray[np.integer[Any]], k: int, keep_below: int, rng: Rng | None
) -> UInt64Array:
    """Return each of the values below k if a word is below `keep_below`, else one of the others.

    The others are equally likely: it is generalised randomised response.
    """
    own, words = values.astype(np.uint64), words_from(rng)
    keep = words(own.size) < np.uint64(keep_below)
    # A shift by 1..k-1 modulo k is uniform over the other values.
    other = below(k - 1, own.size, words)
    other += own + 1
    other %= k
    return np.where(keep, own, other)


def below(k: int, n: int, words: Words) -> UInt64Array:
    """Return n exactly uniform integers in 0..k-1; words in the biased tail are drawn again."""
    limit = (1 << 64) // k * k  # 2^64 itself when k is a power of two
    numbers = words(n)
    if limit < 1 << 64:
        while (biased := np.flatnonzero(numbers >= np.uint64(limit))).size:
            numbers = numbers.copy()
            numbers[biased] = words(biased.size)
    return numbers % np.uint64(k)
