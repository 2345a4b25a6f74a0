import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.conftest import Collector

from ldprecover import GRR, OLH, OUE, ParameterError
from ldprecover.protocols import MAX_USERS
from ldprecover.protocols.wire import pack
from ldprecover_client import ArgumentError, Population, load_dataset

ORACLES = [GRR(0.5, 4), OUE(0.5, 4), OLH(0.5, 4, 3)]
WEIGHTS = [10, 5, 4, 1]


@pytest.mark.parametrize("draw", ["multinomial", "apportioned"])
def test_counts_match_values(draw):
    users = Population(WEIGHTS, 1003, seed=7, draw=draw)
    values = users.values()
    assert values.shape == (1003,)
    np.testing.assert_array_equal(np.bincount(values, minlength=4), users.counts)
    np.testing.assert_array_equal(users.frequencies, users.counts / 1003)


def test_first_items_have_the_rest_of_apportioned_users():
    np.testing.assert_array_equal(
        Population([1, 1, 1], 2, seed=0, draw="apportioned").counts, [1, 1, 0]
    )


@given(st.lists(st.integers(0, 10**10), min_size=2, max_size=50).filter(any))
def test_apportioning_all_users_gives_counts(counts):
    n = sum(counts)
    if n <= 10**15:  # quotas are doubles
        np.testing.assert_array_equal(
            Population(counts, n, seed=0, draw="apportioned").counts, counts
        )


@given(
    st.lists(st.floats(0, 1e6), min_size=2, max_size=50).filter(lambda w: sum(w) > 1e-3),
    st.integers(1, 10**6),
)
def test_apportioned_counts_are_within_one_of_quota(weights, n: int):
    counts = Population(weights, n, seed=0, draw="apportioned").counts
    assert counts.sum() == n
    assert (np.abs(counts - np.array(weights) / math.fsum(weights) * n) < 1 + 1e-6).all()


def test_multinomial_counts_have_right_variance():
    """Chi-squared with 101 degrees of freedom, seed fixed; a fresh seed would fail 1 in 10^9.

    Shares that are off by 2 % of themselves are missed once in 100.
    """
    cities = load_dataset("cities")
    users = Population.of(cities, 389_894, seed=1)
    expected = cities.frequencies * 389_894
    statistic = ((users.counts - expected) ** 2 / expected).sum()
    spread = math.sqrt(2 * 101)
    assert 101 - 6 * spread < statistic < 101 + 7 * spread


def test_values_are_in_random_order():
    """The first half holds an item as often as the second, to six standard errors; seed fixed.

    8.4 of them are missed once in 100.
    """
    users = Population(WEIGHTS, 100_000, seed=3, draw="apportioned")
    half = np.bincount(users.values()[:50_000], minlength=4) / 50_000
    f = users.frequencies
    error = np.sqrt(f * (1 - f) / 50_000 / 2)  # drawn without replacement, half of all
    assert (np.abs(half - f) < 6 * error).all()


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.protocol)
@pytest.mark.parametrize("draw", ["multinomial", "apportioned"])
def test_seed_determines_users_and_reports(oracle, draw):
    first, again = (Population(WEIGHTS, 500, seed=11, draw=draw) for _ in range(2))
    again.reports(ORACLES[1])
    np.testing.assert_array_equal(first.values(), again.values())
    assert pack(first.reports(oracle)) == pack(again.reports(oracle)) == pack(again.reports(oracle))


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": [1]},
        {"weights": [[1, 2], [3, 4]]},
        {"weights": [0, 0]},
        {"weights": [1, -1]},
        {"weights": [1, math.nan]},
        {"weights": [1, math.inf]},
        {"n": 0},
        {"n": MAX_USERS + 1},
        {"n": 2.0},
        {"n": True},
        {"seed": -1},
        {"seed": None},
        {"draw": "uniform"},
        {"items": ("a",)},
    ],
)
def test_rejects_invalid_population(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        Population(**({"weights": WEIGHTS, "n": 5, "seed": 0} | wrong))


def test_truth_is_read_only():
    users = Population(WEIGHTS, 5, seed=0)
    with pytest.raises(ValueError, match="read-only"):
        users.counts[0] = 99


def test_rejects_round_with_other_items(collector: Collector):
    collector.add()
    users = Population(WEIGHTS, 10, seed=9, items=("a", "b", "c", "d"))
    with pytest.raises(ArgumentError, match="not those of these users"):
        users.report_to(collector.client())
    assert not collector.posts
    items = tuple(item.replace(" ", "\u00a0") for item in collector.ITEMS)
    assert Population(WEIGHTS, 10, seed=9, items=items).report_to(collector.client()).accepted == 10


def test_bar_shows_progress_on_terminal(collector: Collector, capsys, monkeypatch):
    collector.add()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    Population(WEIGHTS, 100, seed=9).report_to(collector.client())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "100/100" in captured.err


@pytest.mark.parametrize("closed", [False, True])
def test_no_bar_without_terminal(collector: Collector, capsys, monkeypatch, closed):
    collector.add()
    monkeypatch.setenv("FORCE_COLOR", "1")
    if closed:
        monkeypatch.setattr(sys, "stderr", None)
    users = Population(WEIGHTS, 100, seed=9)
    assert users.report_to(collector.client()).accepted == 100
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.protocol)
def test_reports_that_memory_cannot_hold_are_an_error(oracle):
    with pytest.raises(ParameterError, match="users must be at most"):
        Population(WEIGHTS, 10**12, seed=0).reports(oracle)
