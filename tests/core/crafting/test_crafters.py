"""Crafted reports: padding, and the law of what they support."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.randomness import rng

from ldprecover import OLH, OUE
from ldprecover.crafting import Strategy, crafter_of


@st.composite
def oue_and_items(draw: st.DrawFn) -> tuple[OUE, np.ndarray]:
    d = draw(st.integers(2, 40))
    oracle = OUE(draw(st.floats(0.01, 10)), d)
    r = draw(st.integers(1, d))
    rows = draw(st.lists(st.permutations(range(d)), min_size=0, max_size=4))
    return oracle, np.array([row[:r] for row in rows], dtype=np.int64).reshape(len(rows), r)


@given(oue_and_items())
def test_padded_report_has_its_items_and_an_honest_size(case: tuple[OUE, np.ndarray]) -> None:
    oracle, chosen_items = case
    reports = crafter_of(oracle).craft(chosen_items, rng())
    oracle.wire.check(reports)
    supports = oracle.supports(reports)
    assert np.take_along_axis(supports, chosen_items, axis=1).all()
    ones = max(math.floor(oracle.p + (oracle.domain_size - 1) * oracle.q), chosen_items.shape[1])
    assert supports.sum(axis=1).tolist() == [ones] * len(chosen_items)


def test_padding_is_uniform_and_independent() -> None:
    """Each other item in l/(d-r) of 20,000 reports, each pair in l(l-1)/((d-r)(d-r-1)), to 7 sd:
    1e-8 in all.
    """
    oracle, m, r = OUE(0.5, 102), 20_000, 10
    chosen_items = np.broadcast_to(np.arange(0, 100, 10), (m, r))
    others = np.setdiff1d(np.arange(102), chosen_items[0])
    bits = oracle.supports(crafter_of(oracle).craft(chosen_items, rng()))[:, others].astype(
        np.float64
    )
    pairs = bits.T @ bits
    l, k = 38 - r, 102 - r  # noqa: E741
    one, both = l / k, l * (l - 1) / (k * (k - 1))
    assert np.abs(np.diag(pairs) - m * one).max() <= 7 * (m * one * (1 - one)) ** 0.5
    off = pairs[~np.eye(k, dtype=bool)]
    assert np.abs(off - m * both).max() <= 7 * (m * both * (1 - both)) ** 0.5


def test_padding_is_the_same_in_blocks_as_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = OUE(1.0, 30)
    chosen_items = np.broadcast_to([4, 7], (100, 2))
    whole = crafter_of(oracle).craft(chosen_items, rng())
    monkeypatch.setattr("ldprecover.protocols.unary._CELLS", 90)
    assert np.array_equal(crafter_of(oracle).craft(chosen_items, rng()), whole)


def test_exhaustive_search_handles_each_item_set() -> None:
    oracle = OLH(0.5, 50, 3)
    chosen_items = np.array([[0, 1, 2], [7, 8, 9]] * 200)
    reports = crafter_of(oracle).craft(chosen_items, rng(), Strategy(search="exhaustive"))
    assert np.take_along_axis(oracle.supports(reports), chosen_items, axis=1).all()
    assert all(np.unique(reports["seed"][half::2]).size == 200 for half in (0, 1))
