"""Subset selection: its sets are exactly as likely as they must be."""

import math

import numpy as np
import pytest
from tests.core.protocols.listed import listed

from ldprecover import ParameterError, frequency_oracle
from ldprecover.evidence.alarms import raise_alarms
from ldprecover.protocols import SS, default_subset_size
from ldprecover.reports import tally_sampler
from ldprecover.testing.tolerances import assert_follows


@pytest.mark.parametrize(
    ("epsilon", "d", "k"),
    [(0.5, 102, 39), (1, 102, 27), (3, 2, 1), (0.01, 2, 1), (10, 100_000, 5), (math.log(3), 10, 2)],
)
def test_the_default_subset_size_is_the_best_half_to_even(epsilon: float, d: int, k: int) -> None:
    assert default_subset_size(epsilon, d) == k
    assert frequency_oracle("ss", epsilon, d) == SS(epsilon, d, k)


def test_subset_size_is_below_the_number_of_items() -> None:
    with pytest.raises(ParameterError, match="subset_size must be below the number of items, 5"):
        SS(1.0, 5, 5)


def test_with_one_item_it_is_grr() -> None:
    for d in (2, 10, 102):
        ss, grr = SS(0.7, d, 1), frequency_oracle("grr", 0.7, d)
        assert [ss.p, ss.q] == pytest.approx([grr.p, grr.q])


@pytest.mark.parametrize(("d", "k"), [(4, 1), (4, 2), (5, 3), (5, 4)])
def test_every_set_is_as_likely_as_the_protocol_says(d: int, k: int) -> None:
    oracle = SS(1.0, d, k)
    sets, law = listed(oracle)
    draws = oracle.supports(oracle.perturb(np.full(60_000, 1), np.random.default_rng(d)))
    assert_follows(np.array([(draws == each).all(axis=1).sum() for each in sets]), law[1])


def test_a_tie_of_the_last_key_is_drawn_again() -> None:
    """Keys of few values tie nearly always; the sets are still of k items, and evenly drawn."""
    oracle, rng, n = SS(1.0, 6, 3), np.random.default_rng(1), 6_000

    def words(size: int) -> np.ndarray:  # both halves of a word are from 0 to 15
        halves = rng.integers(0, 16, (2, size), dtype=np.uint64)
        return halves[0] << np.uint64(32) | halves[1]

    rows = oracle._subsets(np.zeros(n, np.int64), np.ones(n, np.bool_), words)
    bits = oracle.supports(rows)
    assert (bits.sum(axis=1) == 3).all()
    assert bits[:, 0].all()
    # Each of the others with probability 2/5, within 6 standard deviations: 1e-8 for the five.
    # Probabilities that are off by .053 are missed once in 100.
    assert np.abs(bits[:, 1:].mean(axis=0) - 0.4).max() < 6 * math.sqrt(0.24 / n)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "n"), [(None, 50), (None, 1), (1, 50), (198, 50)])
def test_large_population_tally_has_the_moments_of_reports(
    k: int | None, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a step for each item. Means and variances of 200 items within 7 deviations: 2e-9 for
    the two. Means that are off by 9.4 are missed once in 100.
    """
    d, rounds, rng = 200, 2_000, np.random.default_rng(3)
    oracle = SS(1.0, d, k or default_subset_size(1.0, d))
    monkeypatch.setattr(type(tally_sampler(oracle)), "_random_sets", None)
    weights = np.concatenate([[0.5, 0.2], np.full(d - 2, 0.3 / (d - 2))])
    tallies = [tally_sampler(oracle).population_tally(weights, n, rng) for _ in range(rounds)]
    counts = np.array([tally.counts(oracle) for tally in tallies])
    assert {tally.n for tally in tallies} == {n}
    assert (counts.sum(axis=1) == n * oracle.subset_size).all()
    assert counts.min() >= 0
    assert counts.max() <= n
    share = oracle.q + (oracle.p - oracle.q) * weights
    variance = n * share * (1 - share)
    assert (np.abs(counts.mean(axis=0) - n * share) <= 7 * np.sqrt(variance / rounds)).all()
    # Bits have a fourth central moment of at most 3 v^2 + v.
    deviation = np.sqrt((2 * variance**2 + variance) / rounds)
    squares = ((counts - n * share) ** 2).mean(axis=0)
    assert (np.abs(squares - variance) <= 1.5 * 7 * deviation + 2 * variance / d).all()


@pytest.mark.slow
def test_alarms_of_many_items_are_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle, rng = SS(1.0, 20_000, default_subset_size(1.0, 20_000)), np.random.default_rng(4)
    monkeypatch.setattr(type(tally_sampler(oracle)), "_random_sets", None)
    tally = tally_sampler(oracle).population_tally(np.full(20_000, 1 / 20_000), 5_000, rng)
    (excess,) = raise_alarms(oracle, tally, rate=1e-6)
    assert excess.name == "excess"
    assert not excess.raised
