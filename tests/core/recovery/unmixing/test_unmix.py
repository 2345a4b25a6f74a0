"""Un-mixing against golden values, its invariants, and what it is told."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.recovery.poisoned_round import play

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError, project_simplex, recover
from ldprecover.certificate import certify
from ldprecover.protocols import SS
from ldprecover.recovery.unmixing import (
    History,
    Unmixed,
    estimates_of_counts,
    history_of,
    unmix,
)
from ldprecover_attacker import MGA

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
ORACLES: dict[str, FrequencyOracle] = {"grr": GRR(1, 16), "olh": OLH(1, 16, 4)}


def unmixed(
    oracle: FrequencyOracle,
    counts: Any,
    n: int,
    targets: list[int],
    history: History | None = None,
) -> Unmixed:
    measured = estimates_of_counts(oracle, oracle.estimate(counts, n), n)
    return unmix(oracle, measured, targets=tuple(targets), history=history)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_frequencies_and_errors_are_those_of_before(case: dict[str, Any]) -> None:
    """The values were computed by this code. A first version agreed with an independent prototype
    within a fifth of a standard deviation; the prior has changed since.
    """
    past = History(np.array(case["history"]), np.full(16, 1e-5)) if "history" in case else None
    oracle, targets = ORACLES[case["protocol"]], case.get("targets", [])
    result = unmixed(oracle, case["counts"], case["n"], targets, past)
    for name in ("frequencies", "sd", "lower", "upper"):
        np.testing.assert_allclose(getattr(result, name), case[name], rtol=1e-4, atol=2e-6)
    assert result.p_attack == pytest.approx(case["p_attack"], abs=1e-5)


@pytest.mark.parametrize("d", [2, 3, 15])
def test_few_items_are_projected(d: int) -> None:
    oracle = OUE(0.5, d)
    round = play(oracle, np.ones(d), 1000, tallied=True)
    result, conclusions, _ = round.unmixed(targets=[1], history=[(oracle, round.tally)])
    np.testing.assert_allclose(result.recovered, project_simplex(result.poisoned), atol=1e-12)
    assert conclusions.history_weight is None
    noise = estimates_of_counts(oracle, result.poisoned, 1000).sd
    np.testing.assert_allclose(conclusions.standard_deviations, noise * (1 - 1 / d) ** 0.5)


ODD = [OUE(8, 17), OLH(0.5, 16, 3), SS(1, 20, 6), GRR(0.5, 2)]


@pytest.mark.parametrize("oracle", ODD, ids=lambda o: f"{o.protocol}-{o.epsilon:g}-{o.domain_size}")
@settings(max_examples=3)
@given(data=st.data(), n=st.sampled_from([1, 2, 50, 1_000_000]))
def test_result_of_any_counts_is_a_distribution_with_errors(
    oracle: FrequencyOracle, data: st.DataObject, n: int
) -> None:
    d, share = oracle.domain_size, st.sampled_from([0, 1 / 3, 1 / 2, 1])
    shares = np.array(data.draw(st.lists(share, min_size=d, max_size=d)))
    if oracle.fixed_size == 1:
        shares = np.diff([0, *sorted(shares[1:]), 1])
    frequencies = (shares - oracle.q) / (oracle.p - oracle.q)  # more than SS reports have
    result = recover(oracle, frequencies, "unmix", n=n)
    conclusions: Any = result.conclusions
    assert result.recovered.sum() == pytest.approx(1, abs=1e-9)
    ends = np.array([np.zeros(d), conclusions.lower, result.recovered, conclusions.upper])
    assert (np.diff(ends, axis=0) >= -1e-12).all()
    assert conclusions.upper.max() <= 1
    assert np.isfinite(conclusions.standard_deviations).all()
    assert 0 < conclusions.attack_probability <= 1
    assert 0 <= conclusions.beta <= 1
    assert all(0.5 < probability <= 1 for _, probability in conclusions.suspects)


def test_all_items_may_be_raised_alike() -> None:
    """Then no item is beside the targets."""
    oracle = ODD[0]
    frequencies = (np.full(17, 1 / 2) - oracle.q) / (oracle.p - oracle.q)
    result = recover(oracle, frequencies, "unmix", n=50)
    np.testing.assert_allclose(result.recovered, 1 / 17)


def test_nine_tenths_malicious_reports_are_seen() -> None:
    round = play(GRR(1, 30), np.arange(1, 31), 20_000, MGA((3, 7, 8)), m=180_000, tallied=True)
    result, conclusions, _ = round.unmixed()
    assert conclusions.attack_probability == pytest.approx(1)
    assert 0.85 < conclusions.beta < 0.9
    proven = certify(round.oracle, round.tally, 0.0, 0.975).least_malicious_share
    assert 0 < proven <= conclusions.beta
    assert result.eta == pytest.approx(9, rel=0.1)
    assert {item for item, _ in conclusions.suspects} == {3, 7, 8}
    # Equation 1 holds between the three.
    mixed = (result.genuine + result.eta * result.malicious) / (1 + result.eta)
    np.testing.assert_allclose(mixed, result.poisoned, atol=1e-12)


def test_history_of_several_rounds_is_their_weighted_mean() -> None:
    f, now = np.arange(1, 21), OLH(1, 20, 4)
    oracles: list[FrequencyOracle] = [GRR(1, 20), OUE(1, 20)]
    rounds = [(o, play(o, f, 50_000, tallied=True).tally) for o in oracles]
    round = play(now, f, 20_000, seed=2, tallied=True)
    (result, conclusions, gain), (swapped, *_) = (
        round.unmixed(history=each) for each in permutations(rounds)
    )
    measured = [estimates_of_counts(o, o.estimate(t.counts(o), t.n), t.n) for o, t in rounds]
    weights = np.array([1 / m.sd**2 for m in measured])
    pooled = np.average([m.z for m in measured], axis=0, weights=weights)
    past = history_of(now, pooled, weights.sum(axis=0) ** -0.5)
    m = estimates_of_counts(now, round.estimates, 20_000)
    for same in (swapped.recovered, unmix(now, m, history=past).frequencies):
        np.testing.assert_allclose(result.recovered, same, rtol=0, atol=1e-9)
    assert conclusions.history_weight > 0.9
    assert gain > round.unmixed()[2]
    unlike = [(GRR(1, 20), play(GRR(1, 20), f[::-1], 50_000, tallied=True).tally)]
    assert round.unmixed(history=unlike)[1].history_weight < 0.01


def test_frequencies_that_no_counts_give_are_refused() -> None:
    with pytest.raises(ParameterError, match="no counts of oue reports give such frequencies"):
        recover(OUE(1, 20), np.full(20, 1e300), "unmix", n=10)


@pytest.mark.statistical
@pytest.mark.parametrize("seed", [1, 2])
def test_half_of_the_attacked_items_named_is_not_worse_than_none(seed: int) -> None:
    """The others would be taken for popular items, if none but the named ones might be attacked."""
    targets = np.random.default_rng(seed).choice(100, 10, replace=False).tolist()
    round = play(
        GRR(0.5, 100),
        np.arange(1.0, 101) ** -1.2,
        390_000,
        *[MGA(targets[i:]) for i in range(10)],
        m=20_526,
        seed=seed,
        tallied=True,
    )
    named = round.unmixed(targets=targets[5:])[2]
    assert named > 2
    assert named > round.unmixed()[2] / 1.5
