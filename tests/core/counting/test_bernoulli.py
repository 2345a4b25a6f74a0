"""Packed bits drawn with an exact probability, from crafted words and from seeded ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.protocols.test_sampling import Crafted

from ldprecover.counting import unary_rows
from ldprecover.protocols.sampling import flip_threshold, words_from
from ldprecover.types import UInt64Array

THRESHOLDS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1).map(lambda t: t & ~(2**56 - 1)),  # no bit after the prefix
    st.sampled_from(
        [0, 1, 255, 2**56 - 1, 2**56, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2**56, 2**64 - 1]
    ),
    st.floats(0.01, 10).map(flip_threshold),
)


def every_prefix() -> UInt64Array:
    """Return 8 x 4 words in which bit v of 256 holds the bits of v, the highest in the first
    round.
    """
    v = np.arange(256)
    bits = np.array([(v >> (7 - place)) & 1 for place in range(8)], dtype=np.uint8)
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64).reshape(-1)


def ones(rows: np.ndarray) -> int:
    return int(np.unpackbits(rows).sum())


@given(threshold=THRESHOLDS)
def test_bit_probability_is_threshold_over_2_to_64(threshold: int) -> None:
    """Over all 256 prefixes t >> 56 bits are one and one is open; its last word decides 2^56 t mod
    2^64.

    So 256 2^64 P = (t >> 56) 2^64 + (t << 8 mod 2^64), which is 256 t.
    """
    rest = (threshold << 8) % 2**64
    for last in {0, max(rest - 1, 0), rest, 2**64 - 1}:
        source = Crafted(every_prefix(), [last])
        rows = unary_rows(1, 256, threshold, source)
        assert ones(rows) == (threshold >> 56) + (last < rest)
        assert not source.remaining
    assert (threshold >> 56) * 2**64 + rest == 256 * threshold


@pytest.mark.parametrize("d", [2, 7, 8, 9, 63, 64, 65, 490, 100_000])
@pytest.mark.parametrize("n", [0, 1, 3, 8, 50])
def test_rows_have_their_shape_and_zero_padding(n: int, d: int) -> None:
    rows = unary_rows(n, d, 2**64 - 1, words_from(np.random.default_rng(1)))
    assert rows.shape == (n, -(-d // 8))
    assert rows.dtype == np.uint8
    assert rows.flags.c_contiguous
    assert rows.flags.writeable
    # At this threshold a bit is zero with probability 2^-64: every bit but the padding is one.
    assert ones(rows) == n * d
