"""Targets drawn with a seed, malicious users from a share."""

import math

import numpy as np
import pytest

from ldprecover import ParameterError
from ldprecover_experiments.simulation.parameters import draw_targets, malicious_users


def test_the_paper_s_share_gives_the_paper_s_number() -> None:
    assert malicious_users(389_894, 0.05) == 20_521
    assert malicious_users(100, 0.0) == 0
    assert malicious_users(100, 0.5) == 100


@pytest.mark.parametrize("beta", [-0.01, 0.91, 1.0, math.nan])
def test_a_share_outside_its_range_is_refused(beta: float) -> None:
    with pytest.raises(ParameterError, match=r"from 0 to 0\.9"):
        malicious_users(100, beta)


def test_targets_are_distinct_sorted_and_seeded() -> None:
    targets = draw_targets(102, 10, seed=7)
    assert targets == draw_targets(102, 10, seed=7) != draw_targets(102, 10, seed=8)
    assert list(targets) == sorted(set(targets))
    assert len(targets) == 10


def test_every_item_is_as_likely_a_target() -> None:
    """chi^2 with 9 degrees of freedom over 3,000 draws of 1 of 10: above 60 with probability 1e-9;
    seeds are fixed. It misses an item of 1.2 times its share, and sees one of 1.6 times.
    """
    counts = np.bincount([draw_targets(10, 1, seed)[0] for seed in range(3000)], minlength=10)
    assert ((counts - 300) ** 2 / 300).sum() < 60


@pytest.mark.parametrize("r", [0, 5, 6])
def test_no_target_and_every_item_a_target_are_refused(r: int) -> None:
    with pytest.raises(ParameterError, match="from 1 to 4"):
        draw_targets(5, r, seed=0)
