"""The set of items whose pairs stand out."""

import math

import numpy as np
import pytest

from ldprecover import OUE
from ldprecover.distributions import log_choose
from ldprecover.protocols import crafter_of
from ldprecover.recovery.sample import Sample
from ldprecover.recovery.unmixing.filters.pair_scan import best_set, pair_scores


@pytest.mark.parametrize("t", [5, 7, 10, 20])
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
