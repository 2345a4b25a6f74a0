"""Thresholds against exact rational bounds of e^epsilon, and uniform draws from crafted words."""

import itertools
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover.protocols.sampling import below, flip_threshold, keep_threshold, words_from
from ldprecover.types import UInt64Array

WORDS = 2**64
EPSILONS = st.one_of(
    st.floats(0.01, 10), st.sampled_from([0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])
)
SIZES = st.one_of(st.integers(2, 100_000), st.sampled_from([2, 3, 4, 102, 490, 65_536, 100_000]))


def exponential(epsilon: float) -> tuple[Fraction, Fraction]:
    """Return rational numbers just below and above e^epsilon, from its series.

    After the term x^n/n! the rest is below that term times (x/(n+1)) / (1 - x/(n+1)).
    """
    x = Fraction(epsilon)
    term = total = Fraction(1)
    for n in itertools.count(1):
        term *= x / n
        total += term
        if n > 2 * x and term < Fraction(1, 10**40):
            step = x / (n + 1)
            return total, total + term * step / (1 - step)
    raise AssertionError


@given(epsilon=EPSILONS, k=SIZES)
def test_the_keep_threshold_is_the_largest_private_one(epsilon: float, k: int) -> None:
    """P(keep)/P(another value) = t(k-1)/(2^64-t) is at most e^eps, and above it for t + 1."""
    t = keep_threshold(epsilon, k)
    lowest, highest = exponential(epsilon)
    assert Fraction(t * (k - 1), WORDS - t) <= lowest
    assert Fraction((t + 1) * (k - 1), WORDS - t - 1) > highest


@given(epsilon=EPSILONS)
def test_the_flip_threshold_is_the_smallest_private_one(epsilon: float) -> None:
    """(1-q)/q = (2^64-t)/t, the likelihood ratio of OUE with p = 1/2, is at most e^eps, and above
    it for t - 1.
    """
    t = flip_threshold(epsilon)
    lowest, highest = exponential(epsilon)
    assert Fraction(WORDS - t, t) <= lowest
    assert Fraction(WORDS - t + 1, t - 1) > highest


class Crafted:
    """A source that answers each request with the next of these lists of words."""

    def __init__(self, *answers: list[int] | UInt64Array) -> None:
        self.remaining = list(answers)

    def __call__(self, n: int) -> UInt64Array:
        answer = np.array(self.remaining.pop(0), dtype=np.uint64)
        assert len(answer) == n
        answer.flags.writeable = False  # as words of the operating system are
        return answer


@given(k=st.integers(2, 100_000))
def test_words_in_the_biased_tail_are_drawn_again(k: int) -> None:
    """Accepted are the words below the greatest multiple of k up to 2^64: each remainder equally
    often.
    """
    limit = WORDS // k * k
    tail = limit if limit < WORDS else None
    if tail is None:
        assert below(k, 2, Crafted([0, WORDS - 1])).tolist() == [0, k - 1]
        return
    source = Crafted([tail, 5, tail - 1, WORDS - 1], [tail - k, tail], [k])
    assert below(k, 4, source).tolist() == [0, 5 % k, k - 1, 0]
    assert not source.remaining


def test_choice_among_one_protocol_is_that_one() -> None:
    assert below(1, 3, Crafted([0, 7, WORDS - 1])).tolist() == [0, 0, 0]


def test_no_users_draw_nothing() -> None:
    assert below(3, 0, Crafted([])).size == 0


def test_words_without_generator_come_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    request = []

    def urandom(size: int) -> bytes:
        request.append(size)
        return bytes(range(size))

    monkeypatch.setattr(os, "urandom", urandom)
    assert words_from(None)(2).tolist() == [0x0706050403020100, 0x0F0E0D0C0B0A0908]
    assert request == [16]


def test_words_of_a_generator_do_not_depend_on_block_sizes() -> None:
    at_once = words_from(np.random.default_rng(9))(30)
    words = words_from(np.random.default_rng(9))
    assert np.concatenate([words(n) for n in (1, 0, 9, 20)]).tolist() == at_once.tolist()
    assert at_once.dtype == np.uint64
    assert int(at_once.max()) > 2**63
