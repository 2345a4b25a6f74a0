"""Un-mixing against golden values, and its invariants."""

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.recovery.poisoned_round import estimates_of

from ldprecover import (
    GRR,
    OLH,
    OUE,
    FrequencyOracle,
    ParameterError,
    RecoveryRequest,
    Tally,
    project_simplex,
    recover,
)
from ldprecover.protocols import SS, SUE
from ldprecover.recovery.unmixing import (
    History,
    Unmixed,
    estimates_of_counts,
    history_of,
    unmix,
)

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
ORACLES: dict[str, FrequencyOracle] = {"grr": GRR(1, 16), "olh": OLH(1, 16, 4)}


def unmixed(
    oracle: FrequencyOracle, counts: Any, n: int, targets: Sequence[int] = (), **fields: Any
) -> Unmixed:
    measured = estimates_of_counts(oracle, oracle.estimate(counts, n), n)
    return unmix(oracle, measured, targets=tuple(targets), **fields)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_frequencies_and_errors_are_those_of_before(case: dict[str, Any]) -> None:
    """The values were computed by this code. A first version agreed with an independent prototype
    within a fifth of a standard deviation; the prior has changed since.
    """
    fields: dict[str, Any] = {"targets": case.get("targets", ())}
    if "history" in case:
        fields["history"] = History(np.array(case["history"]), np.full(16, 1e-5))
    result = unmixed(ORACLES[case["protocol"]], case["counts"], case["n"], **fields)
    np.testing.assert_allclose(result.frequencies, case["frequencies"], rtol=0, atol=2e-6)
    np.testing.assert_allclose(result.sd, case["sd"], rtol=1e-4)
    np.testing.assert_allclose(result.lower, case["lower"], rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(result.upper, case["upper"], rtol=1e-4, atol=2e-6)
    assert result.p_attack == pytest.approx(case["p_attack"], abs=1e-5)


def test_relabelling_the_items_relabels_the_result() -> None:
    case = GOLDEN[3]
    order = np.random.default_rng(1).permutation(16)
    targets = [3, 9]
    original = unmixed(GRR(1, 16), case["counts"], case["n"], targets=targets)
    moved = [int(np.flatnonzero(order == t)[0]) for t in targets]
    back = unmixed(GRR(1, 16), np.array(case["counts"])[order], case["n"], targets=moved)
    np.testing.assert_allclose(back.frequencies, original.frequencies[order], rtol=0, atol=1e-9)
    np.testing.assert_allclose(back.sd, original.sd[order], rtol=1e-6)
    np.testing.assert_allclose(back.spikes, original.spikes[order], rtol=0, atol=1e-6)


@pytest.mark.parametrize("d", [2, 3, 15])
def test_few_items_are_projected(d: int) -> None:
    oracle, rng = OUE(0.5, d), np.random.default_rng(1)
    n = 1000
    f_z = oracle.estimate(
        oracle.simulation.honest_tally(rng.multinomial(n, np.ones(d) / d), rng).counts(oracle), n
    )
    result = recover(
        oracle,
        f_z,
        RecoveryRequest("unmix", targets=[1], history=[(oracle, Tally(np.full(d, 5), 9))]),
        n=n,
    )
    np.testing.assert_allclose(result.recovered, project_simplex(f_z), rtol=0, atol=1e-12)
    conclusions: Any = result.conclusions
    assert conclusions.history_weight is None
    sd = conclusions.standard_deviations
    np.testing.assert_allclose(sd, estimates_of_counts(oracle, f_z, n).sd * (1 - 1 / d) ** 0.5)


ODD = [
    GRR(0.5, 16),
    OUE(8, 17),
    OLH(0.5, 16, 3),
    SUE(1, 20),
    SS(1, 20, 6),
    GRR(0.5, 2),
]


@pytest.mark.parametrize("oracle", ODD, ids=lambda o: f"{o.protocol}-{o.epsilon:g}-{o.domain_size}")
@settings(max_examples=3)
@given(data=st.data(), n=st.sampled_from([1, 2, 50, 1_000_000]))
def test_result_of_any_counts_is_a_distribution_with_errors(
    oracle: FrequencyOracle, data: st.DataObject, n: int
) -> None:
    d = oracle.domain_size
    if oracle.fixed_size == 1:
        cuts = sorted(
            data.draw(st.lists(st.sampled_from([0, n // 3, n]), min_size=d - 1, max_size=d - 1))
        )
        counts = np.diff([0, *cuts, n])
    else:
        counts = np.array(
            data.draw(st.lists(st.sampled_from([0, n // 3, n // 2, n]), min_size=d, max_size=d))
        )
    frequencies = (counts / n - oracle.q) / (oracle.p - oracle.q)  # more than SS reports have
    result = recover(oracle, frequencies, "unmix", n=n)
    assert (result.recovered >= 0).all()
    assert result.recovered.sum() == pytest.approx(1, abs=1e-9)
    conclusions: Any = result.conclusions
    assert np.isfinite(conclusions.standard_deviations).all()
    assert (conclusions.lower <= result.recovered + 1e-12).all()
    assert (result.recovered <= conclusions.upper + 1e-12).all()
    assert (
        (conclusions.lower >= 0)
        & (conclusions.lower <= conclusions.upper)
        & (conclusions.upper <= 1)
    ).all()
    assert 0 < conclusions.attack_probability <= 1
    assert 0 <= conclusions.beta <= 1
    assert all(0.5 < probability <= 1 for _, probability in conclusions.suspects)


def test_nine_tenths_malicious_reports_are_seen() -> None:
    oracle, rng = GRR(1, 30), np.random.default_rng(2)
    counts = oracle.simulation.honest_tally(
        rng.multinomial(20_000, np.arange(1, 31) / 465), rng
    ).counts(oracle)
    counts = counts + np.bincount([3, 7, 8], minlength=30) * 60_000
    result = recover(oracle, oracle.estimate(counts, 200_000), "unmix", n=200_000)
    conclusions: Any = result.conclusions
    assert conclusions.attack_probability == pytest.approx(1)
    assert 0.85 < conclusions.beta < 0.9
    assert {item for item, _ in conclusions.suspects} == {3, 7, 8}
    # Equation 1 holds between the three.
    mixed = (result.genuine + result.eta * result.malicious) / (1 + result.eta)
    np.testing.assert_allclose(mixed, result.poisoned, atol=1e-12)


def test_history_of_several_rounds_is_their_weighted_mean() -> None:
    rng = np.random.default_rng(3)
    f = np.arange(1, 21) / 210
    oracles: list[FrequencyOracle] = [GRR(1, 20), OUE(1, 20)]
    rounds = [(o, o.simulation.honest_tally(rng.multinomial(50_000, f), rng)) for o in oracles]
    now = OLH(1, 20, 4)
    counts = now.simulation.honest_tally(rng.multinomial(20_000, f), rng).counts(now)
    z = now.estimate(counts, 20_000)
    results = [
        recover(now, z, RecoveryRequest("unmix", history=each), n=20_000)
        for each in permutations(rounds)
    ]
    np.testing.assert_allclose(results[0].recovered, results[1].recovered, rtol=0, atol=1e-9)
    measured = [estimates_of_counts(o, o.estimate(t.counts(o), t.n), t.n) for o, t in rounds]
    weights = np.array([1 / m.sd**2 for m in measured])
    pooled = (weights * [m.z for m in measured]).sum(axis=0) / weights.sum(axis=0)
    past = history_of(oracles[0], pooled, 1 / np.sqrt(weights.sum(axis=0)))
    m = estimates_of_counts(now, z, 20_000)
    np.testing.assert_allclose(
        unmix(now, m, history=past).frequencies, results[0].recovered, atol=1e-9
    )
    conclusions: Any = results[0].conclusions
    assert conclusions.history_weight > 0.9
    alone = recover(now, z, "unmix", n=20_000)
    assert ((results[0].recovered - f) ** 2).sum() < ((alone.recovered - f) ** 2).sum()


def test_frequencies_that_no_counts_give_are_refused() -> None:
    with pytest.raises(ParameterError, match="no counts of oue reports give such frequencies"):
        recover(OUE(1, 20), np.full(20, 1e300), "unmix", n=10)


def test_number_of_reports_comes_from_unfiltered_reports() -> None:
    oracle, rng = GRR(1, 20), np.random.default_rng(4)
    reports = oracle.perturb(rng.integers(20, size=400), rng)
    f_z = estimates_of(oracle, reports)
    named = recover(oracle, f_z, "unmix", n=400).recovered
    assert recover(oracle, reports, "unmix").recovered.tolist() == named.tolist()


@pytest.mark.parametrize("seed", [1, 2])
def test_half_of_the_attacked_items_named_is_not_worse_than_none(seed: int) -> None:
    """The others would be taken for popular items, if none but the named ones might be attacked."""
    oracle, rng = GRR(0.5, 100), np.random.default_rng(seed)
    f = np.arange(1.0, 101) ** -1.2
    counts = rng.multinomial(390_000, f / f.sum())
    weights = np.zeros(100)
    weights[rng.choice(100, 10, replace=False)] = rng.dirichlet(np.ones(10))
    support = oracle.simulation.honest_tally(counts, rng).counts(oracle) + rng.multinomial(
        20_526, weights
    )
    targets = np.argsort(weights)[-5:].tolist()
    truth, n = counts / counts.sum(), int(support.sum())

    def error(frequencies: Any) -> float:
        return float(((frequencies - truth) ** 2).mean())

    named = error(unmixed(oracle, support, n, targets=targets).frequencies)
    assert named < error(project_simplex(oracle.estimate(support, n))) / 2
    assert named < 1.5 * error(unmixed(oracle, support, n).frequencies)


def test_dominant_item_leaves_little_to_the_others() -> None:
    """The other 999 items share a hundredth; what projection leaves there is noise. Seeded."""
    oracle, rng, n = OUE(0.5, 1000), np.random.default_rng(6), 100_000
    counts = rng.multinomial(n, np.append(0.99, rng.dirichlet(np.ones(999)) * 0.01))
    support = oracle.simulation.honest_tally(counts, rng).counts(oracle)
    projected = project_simplex(oracle.estimate(support, n))
    of_projection = ((projected - counts / n) ** 2).mean()
    of_unmixing = ((unmixed(oracle, support, n).frequencies - counts / n) ** 2).mean()
    assert of_unmixing < of_projection / 5
