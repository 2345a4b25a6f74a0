"""The gain of un-mixing over projection on simulated rounds.

All is seeded: a test fails only where code or numpy's streams change.
"""

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import play

from ldprecover import GRR, OLH, OUE, FrequencyOracle
from ldprecover.protocols import SS, SUE
from ldprecover_attacker import APA, MGA, Attack
from ldprecover_client.datasets import load_dataset

pytestmark = pytest.mark.statistical

D = 102
GRR_, OLH_, SUE_, SS_ = GRR(0.5, D), OLH(0.5, D, 3), SUE(0.5, D), SS(0.5, D, 39)


@pytest.mark.parametrize(
    ("oracle", "r", "least"),
    [
        *[(GRR_, 3, 15), (GRR_, 10, 6), (GRR_, 30, 2), (SUE_, 10, 15), (SS_, 10, 4)],
        (OLH(1.6, D, 6), 10, 1.5),
        *[(oracle, 0, 1) for oracle in (GRR_, OUE(0.5, D), OLH_, SUE_, SS_)],
    ],
    ids=str,
)
def test_unmixing_gains_and_states_its_errors(
    oracle: FrequencyOracle, r: int, least: float
) -> None:
    """Against 5 % of reports for r targets, or none; `errors` are squared, in stated variances."""
    gains, errors, inside = [], [], []
    for seed in range(3):
        targets = np.random.default_rng(seed).choice(D, r, replace=False).tolist()
        attacks = [MGA(targets)] if r else []
        cities = load_dataset("cities").counts
        round = play(oracle, cities, 389_894, *attacks, m=20_521, seed=seed, tallied=True)
        result, conclusions, gain = round.unmixed()
        assert (conclusions.attack_probability > 0.99) if r else not conclusions.suspects
        assert conclusions.attack_probability < 0.5 or r
        gains.append(gain)
        variance = (conclusions.standard_deviations**2).mean()
        errors.append(((result.recovered - round.truth) ** 2).mean() / variance)
        inside.append((conclusions.lower <= round.truth) & (round.truth <= conclusions.upper))
    assert np.exp(np.log(gains).mean()) > least
    assert 0.2 < np.mean(errors) < 3
    assert np.mean(inside) > 0.85


READ = [OUE(1.0, 60), OLH(1.0, 60, 4), SUE(1.0, 60), SS(1.0, 60, 16)]
ONE = MGA((7, 19, 22, 31, 40))


@pytest.mark.parametrize(
    ("oracle", "attacks", "least"),
    [
        *[(oracle, [ONE], 8) for oracle in READ],
        *[(oracle, [APA(ONE.targets)], 1.5) for oracle in READ],
        *[(oracle, [ONE, MGA((3, 9, 14)), MGA((25, 45, 55, 58))], 1.5) for oracle in READ],
    ],
)
def test_reports_tell_more(oracle: FrequencyOracle, attacks: list[Attack], least: float) -> None:
    """Of one attacker, one with hidden reports, and three; few items are undecided."""
    law, gains, inside = 0.9 ** np.arange(oracle.domain_size), [], []
    for seed in range(3):
        round = play(oracle, law, 30_000, *attacks, m=1_578, seed=seed)
        _, conclusions, gain = round.unmixed()
        assert conclusions.attack == "near_certain"
        assert 0 < conclusions.beta < 0.05
        gains.append(gain)
        inside.append((conclusions.lower <= round.truth) & (round.truth <= conclusions.upper))
    assert np.exp(np.log(gains).mean()) > least
    assert np.mean(inside) > 0.75


@pytest.mark.parametrize("share", [0.6, 0.99])
@pytest.mark.parametrize(
    ("oracle", "n", "least"),
    [
        *[(OUE(0.5, 30), 5000, 1.05), (OLH(0.5, 30, 3), 5000, 1.05)],
        *[(OUE(0.5, D), 300_000, 1.05), (OLH_, 300_000, 1.05), (OUE(0.5, 1000), 100_000, 5)],
    ],
    ids=str,
)
def test_one_item_may_hold_most(
    oracle: FrequencyOracle, n: int, least: float, share: float
) -> None:
    """What projection leaves to the others is noise."""
    d = oracle.domain_size
    weights = np.append(share, np.full(d - 1, (1 - share) / (d - 1)))
    gains = [play(oracle, weights, n, seed=s, tallied=True).unmixed()[2] for s in range(3)]
    assert np.exp(np.log(gains).mean()) > least


def test_many_items_of_which_few_are_held_look_honest() -> None:
    """An estimate's own noise as the measure of its noise made low and high ones unlike, and an
    attack certain.
    """
    law = np.arange(1.0, 10_001) ** -1.3
    _, conclusions, gain = play(GRR(0.5, 10_000), law, 1_000_000, tallied=True).unmixed()
    assert conclusions.attack in ("none_seen", "cannot_be_seen")
    assert gain > 1.5
