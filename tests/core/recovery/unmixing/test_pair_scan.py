"""The set of items whose pairs stand out."""

import math

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import play

from ldprecover import OUE
from ldprecover.distributions import log_choose
from ldprecover.recovery.unmixing.filters.set_search import best_set, pair_scores
from ldprecover.reports.sample import Sample
from ldprecover_attacker import RPA


@pytest.mark.parametrize("t", [5, 7, 10, 20])
def test_a_set_whose_pairs_are_each_within_noise_is_found(t: int) -> None:
    """Pairs two deviations up among noise: no single one would stand out of 1,128."""
    rng = np.random.default_rng(t)
    members = np.sort(rng.choice(48, t, replace=False))
    scores = rng.normal(size=(48, 48)) * 0.5
    scores[np.ix_(members, members)] += 2.0
    scores = np.triu(scores, 1) + np.triu(scores, 1).T
    best_members, score = best_set(scores)
    assert best_members.tolist() == members.tolist()
    s = scores[np.ix_(members, members)].sum() / 2 / math.sqrt(t * (t - 1) / 2)
    assert score == pytest.approx(s * s / 2 - log_choose(48, t))


def test_common_shift_of_all_pairs_is_removed() -> None:
    """Reports with half of all bits set, whichever: all pairs are up by many deviations, and none
    stands out.
    """
    round = play(OUE(1.0, 40), np.ones(40), 20_000, RPA(), m=4_000)
    pairs = Sample(round.oracle, round.data).pair_counts(np.arange(40))
    share = np.diag(pairs)[:-1] / 24_000
    covariance = pairs[:-1, :-1] / 24_000 - np.outer(share, share)
    assert np.median(covariance) * math.sqrt(24_000) / (0.3 * 0.7) > 3
    scores = pair_scores(pairs, round.oracle)
    assert abs(np.median(scores[~np.eye(40, dtype=bool)])) < 1e-9
    assert best_set(scores)[1] < 8
