"""Attacks of users with assigned seeds."""

import numpy as np
import pytest
from tests.attacker.test_expectations import ATTACKS, fits

from ldprecover import ParameterError
from ldprecover.protocols import LLH, crafter_of
from ldprecover_attacker import MGA, MGAA, Attack

D = 102
TARGETS = list(range(5, D, 10))
ORACLE = LLH(0.5, D, 2, assigned_seeds=True)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    "attack", [attack for attack in ATTACKS.values() if fits(ORACLE, attack)], ids=repr
)
def test_reports_have_the_assigned_seeds(attack: Attack) -> None:
    seeds = rng().integers(ORACLE.seed_count, size=500)
    reports = attack.reports(ORACLE.with_seeds(seeds), 500, rng())
    assert sorted(ORACLE.seeds(reports).tolist()) == sorted(seeds.tolist())


def test_a_search_does_not_change_the_reports() -> None:
    first, *others = (
        MGA(TARGETS, search=search).reports(ORACLE, 500, rng()) for search in (1, 9, "exhaustive")
    )
    for other in others:
        assert np.array_equal(first, other)


def test_the_best_tickets_gain_more() -> None:
    """An attacker with eight tickets for each report uses those of the best seeds."""
    crafter = crafter_of(ORACLE.with_seeds(np.arange(128)))
    reports = crafter.craft(np.broadcast_to(TARGETS, (128, 10)), rng())
    hits = ORACLE.supports(reports, np.array(TARGETS)).sum(axis=1)
    best = reports[np.argsort(-hits)[:16]]
    gains = [
        float(ORACLE.estimate(ORACLE.support_counts(each), len(each))[TARGETS].sum())
        for each in (reports, best)
    ]
    assert gains[1] > 1.5 * gains[0]


def test_an_attack_on_too_many_sets_has_no_law() -> None:
    with pytest.raises(ParameterError, match="lacks a law of reports crafted for 20 of 40 items"):
        MGAA(range(40), 20).gain(ORACLE, np.full(D, 1 / D), 0.05)
