"""Attacks of users with assigned seeds."""

import numpy as np
import pytest
from tests.attacker.conftest import attacks_on
from tests.attacker.strategies import refusal

from ldprecover.protocols import LLH
from ldprecover_attacker import MGA, Attack

D = 102
TARGETS = tuple(range(5, D, 10))
ORACLE = LLH(0.5, D, 2, assigned_seeds=True)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    "attack",
    [attack for attack in attacks_on(TARGETS).values() if refusal(attack, ORACLE) is None],
    ids=repr,
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
