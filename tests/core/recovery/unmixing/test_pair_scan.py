"""The set of items whose pairs stand out."""

import math

import numpy as np
import pytest

from ldprecover import OUE
from ldprecover.distributions import log_choose
from ldprecover.protocols import crafter_of
from ldprecover.recovery.sample import Sample
from ldprecover.recovery.unmixing.filters.pair_scan import best_set, pair_scores


def test_worked_example() -> None:
    i, j = np.meshgrid(np.arange(12), np.arange(12), indexing="ij")
    scores = ((7 * i * j + 3 * (i + j)) % 11 - 5) / 5 + 4.0 * ((i < 4) & (j < 4))
    np.fill_diagonal(scores, 0)
    best_members, score = best_set(scores)
    assert best_members.tolist() == [0, 1, 2, 3]
    assert score == pytest.approx(34.865442, abs=1e-6)


@pytest.mark.parametrize("t", [3, 7, 10, 20])
def test_a_set_whose_pairs_are_each_within_noise_is_found(t: int) -> None:
    """Pairs two deviations up among noise: no single one would stand out of 1,128."""
    rng = np.random.default_rng(t)
    members = np.sort(rng.choice(48, t, replace=False))
    scores = rng.normal(size=(48, 48)) * 0.5
    scores = np.triu(scores, 1) + np.triu(scores, 1).T
    scores[np.ix_(members, members)] += 2.0
    np.fill_diagonal(scores, 0)
    best_members, score = best_set(scores)
    assert best_members.tolist() == members.tolist()
    s = scores[np.ix_(best_members, best_members)].sum() / 2 / math.sqrt(t * (t - 1) / 2)
    assert score == pytest.approx(s * s / 2 - log_choose(48, t))


def test_items_that_most_users_hold_have_pairs_as_honest_ones_do() -> None:
    """Who holds the one does not hold the other: 12 deviations of covariance here, which are
    expected.

    Of 120 pairs none is 6 deviations off, but once in 4e6.
    """
    oracle, rng = OUE(1.0, 16), np.random.default_rng(9)
    items = np.where(
        rng.random(100_000) < 0.9, rng.integers(2, size=100_000), rng.integers(16, size=100_000)
    )
    pairs = Sample(oracle, oracle.perturb(items, rng)).pair_counts(np.arange(16))
    assert np.abs(pair_scores(pairs, oracle)).max() < 6


@pytest.mark.parametrize("m", [0, 1, 2, 5])
def test_among_fewer_than_six_items_there_is_no_set(m: int) -> None:
    best_members, score = best_set(np.zeros((m, m)))
    assert (best_members.size, score) == (0, -1.0)


def test_no_set_scores_where_no_pair_is_above_zero() -> None:
    assert best_set(-np.ones((8, 8)) + np.eye(8))[1] == -1.0


def test_items_that_all_or_no_reports_support_have_no_score() -> None:
    oracle = OUE(1.0, 8)
    bits = np.random.default_rng(1).integers(0, 2, (1000, 8), dtype=np.uint8)
    bits[:, 0], bits[:, 1] = 0, 1
    pairs = Sample(oracle, np.packbits(bits, axis=1, bitorder="little")).pair_counts(np.arange(8))
    scores = pair_scores(pairs, oracle)
    assert np.isfinite(scores).all()
    assert np.ptp(scores[:2, 2:]) < 1e-12


def test_without_a_report_no_pair_has_a_score() -> None:
    assert not pair_scores(np.zeros((9, 9), np.int64), OUE(1.0, 8)).any()


def test_common_shift_of_all_pairs_is_removed() -> None:
    """Reports with half of all bits set, whichever: all pairs are up by many deviations, and none
    stands out.
    """
    oracle, rng = OUE(1.0, 40), np.random.default_rng(2)
    honest = oracle.perturb(rng.integers(40, size=20_000), rng)
    many = np.concatenate([honest, crafter_of(oracle).uniform_reports(4_000, rng)])
    pairs = Sample(oracle, many).pair_counts(np.arange(40))
    share = np.diag(pairs)[:-1] / len(many)
    covariance = pairs[:-1, :-1] / len(many) - np.outer(share, share)
    assert np.median(covariance) * math.sqrt(len(many)) / (0.3 * 0.7) > 3
    scores = pair_scores(pairs, oracle)
    assert abs(np.median(scores[~np.eye(40, dtype=bool)])) < 1e-9
    assert best_set(scores)[1] < 8
