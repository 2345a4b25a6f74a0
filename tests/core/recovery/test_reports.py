"""Methods that read each report: what they drop from a round whose malicious reports are known."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.core.recovery.poisoned_round import ORACLES, D, M, N, estimates_of, poisoned
from tests.core.recovery.poisoned_round import TARGETS as ALL_TARGETS

from ldprecover import (
    OLH,
    OUE,
    FrequencyOracle,
    ParameterError,
    RecoveryRequest,
    project_simplex,
    recover,
)
from ldprecover.crafting import crafter_of
from ldprecover.estimation.metrics import mse
from ldprecover.items import indices_named
from ldprecover.recovery import RecoveryInputs, run_method
from ldprecover.recovery.methods.kmeans import two_means
from ldprecover.recovery.methods.likelihood import expectation_maximisation
from ldprecover.reports import ReportSource

TARGETS = ALL_TARGETS[0]
SAMPLED = pytest.mark.parametrize("oracle", ORACLES.values(), ids=list(ORACLES))
UNARY = pytest.mark.parametrize("oracle", [ORACLES["oue"], ORACLES["olh"]], ids=["oue", "olh"])
GRR_, OUE_ = ORACLES["grr"], ORACLES["oue"]


@SAMPLED
@pytest.mark.parametrize("match", ["any", "all"])
def test_detection_drops_exactly_the_reports_that_match(
    oracle: FrequencyOracle, match: str
) -> None:
    """An explicit comparison leaves the same reports; projected, and not."""
    r = poisoned(oracle)
    targets = TARGETS if match == "any" or oracle.protocol != "grr" else TARGETS[:1]
    hits = oracle.supports(r.reports)[:, list(targets)].sum(axis=1)
    remaining = r.reports[hits < (1 if match == "any" else len(targets))]
    expected = estimates_of(oracle, remaining)
    plain, raw = (
        recover(
            oracle,
            r.reports,
            RecoveryRequest(
                "detection", targets=targets, options={"match": match, "project": project}
            ),
        )
        for project in (1, 0)
    )
    np.testing.assert_allclose(raw.recovered, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(plain.recovered, project_simplex(expected), rtol=1e-12, atol=1e-12)
    assert plain.targets == targets
    note = f"Dropped {len(r.reports) - len(remaining)} of {len(r.reports)}"
    assert any(note in each for each in plain.notes)
    # Equation 1 holds between the remaining and the dropped reports.
    np.testing.assert_allclose(
        raw.genuine, (1 + raw.eta) * r.f_z - raw.eta * raw.malicious, rtol=0, atol=1e-9
    )


def test_detection_counts_only_dropped_hashed_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is that of counting the others, to the bit.

    If n is another, all reports are counted, and a note says so.
    """
    oracle, rng = OLH(1, 200, 4), np.random.default_rng(3)
    rows = oracle.perturb(rng.integers(200, size=5_000), rng)
    bad = oracle.supports(rows, np.array([17]))[:, 0]
    expected = oracle.estimate(oracle.support_counts(rows[~bad]), int((~bad).sum()))
    f_z = estimates_of(oracle, rows)
    fewer = estimates_of(oracle, rows[1:])
    summarise, counted = OLH.summarise, 0

    def recorded(oracle: OLH, reports: np.ndarray) -> Any:
        nonlocal counted
        counted += len(reports)
        return summarise(oracle, reports)

    monkeypatch.setattr(OLH, "summarise", recorded)
    request, n_bad = RecoveryRequest("detection", targets=[17]), int(bad.sum())
    for frequencies, missing in ((f_z, 0), (fewer, 1)):
        counted = 0
        source = ReportSource(oracle, rows)
        result = run_method(
            RecoveryInputs(oracle, frequencies, request, len(rows) - missing, source)
        )
        assert result.genuine.tobytes() == expected.tobytes()
        assert counted == n_bad + missing * len(rows)
        noted = "not those of the poisoned frequencies" in result.notes[-1]
        assert noted == bool(missing)


def test_diffstats_finds_padded_reports_by_their_size() -> None:
    """All crafted reports have L = 16 ones; honest reports of that size with a target go too."""
    r = poisoned(OUE_)
    result = recover(OUE_, r.reports, "diffstats")
    assert any("support 16 items" in note for note in result.notes)
    honest = recover(OUE_, r.genuine, "diffstats")
    assert any("follow the law of honest reports" in note for note in honest.notes)
    assert mse(result.recovered, r.truth) < mse(project_simplex(r.f_z), r.truth) / 4
    dropped = result.eta / (1 + result.eta) * len(r.reports)
    assert M <= dropped <= M + 0.12 * N


@UNARY
def test_fiad_drops_the_crafted_reports_and_hardly_an_honest_one(oracle: FrequencyOracle) -> None:
    r = poisoned(oracle)
    result = recover(oracle, r.reports, "fiad")
    assert any("of item indices 7, 19, 22, 31, 40, 51." in note for note in result.notes)
    assert result.eta / (1 + result.eta) == pytest.approx(M / (N + M), rel=0.25)
    honest = recover(oracle, r.genuine, "fiad")
    assert honest.eta == 0
    assert mse(result.recovered, r.truth) < mse(project_simplex(r.f_z), r.truth) / 4


def test_two_means_separates_distant_clusters() -> None:
    rng = np.random.default_rng(3)
    points = rng.normal(0, 1, (30, 5))
    second = np.arange(30) % 3 == 1
    points[second] += 20
    np.testing.assert_array_equal(two_means(points), second)
    np.testing.assert_array_equal(
        two_means(points[::-1]) ^ two_means(points[::-1])[-1], second[::-1]
    )
    assert not two_means(np.ones((4, 5))).any()


@SAMPLED
def test_k_means_and_ldprecover_km_use_the_two_clusters(oracle: FrequencyOracle) -> None:
    """The larger cluster's mean is near all reports'; KM subtracts the smaller one's."""
    r = poisoned(oracle)
    options = {"subsets": 12, "rate": 0.5, "seed": 4}
    mean = recover(oracle, r.reports, RecoveryRequest("k-means", options=options))
    np.testing.assert_array_equal(mean.recovered, project_simplex(mean.genuine))
    error = 6 * oracle.standard_errors(r.f_z, N + M)
    assert (np.abs(mean.genuine - r.f_z) < error).all()
    request = RecoveryRequest("ldprecover-km", eta=0.1, options=options)
    km = recover(oracle, r.reports, request)
    np.testing.assert_allclose(km.genuine, 1.1 * r.f_z - 0.1 * km.malicious, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(km.recovered, project_simplex(km.genuine))
    assert (km.malicious != mean.genuine).all()


@UNARY
def test_em_never_lowers_the_likelihood_and_converges(oracle: FrequencyOracle) -> None:
    """At the maximum of sum log(1 + (e^eps - 1) f(S(z))) all positive items have one slope."""
    genuine = poisoned(oracle).genuine[:3000]
    rows = oracle.supports(genuine)
    lift = np.expm1(oracle.epsilon)
    source, f = ReportSource(oracle, genuine), np.full(D, 1 / D)
    score = -np.inf
    for iterations in (1, 4, 15, 80, 1000):
        f, _ = expectation_maximisation(source, f, iterations=iterations, tolerance=0.0)
        before, score = score, float(np.log1p(lift * (rows @ f)).sum())
        assert score >= before - 1e-3
    slopes = (rows / (1 + lift * (rows @ f))[:, None]).sum(axis=0)
    assert expectation_maximisation(source, f, iterations=9, tolerance=1e-4)[1] == 1
    assert np.ptp(slopes[f > 0.01]) < 0.01 * slopes.max()
    assert slopes.max() < slopes[f > 0.01].max() * 1.02


def test_diffstats_drops_nothing_without_a_passing_removal() -> None:
    """Two fifths of the reports are uniformly random: their sizes are spread widely."""
    rng = np.random.default_rng(3)
    random = crafter_of(OUE_).uniform_reports(2 * N // 3, rng)
    reports = np.concatenate([poisoned(OUE_).genuine, random])
    f_z = estimates_of(OUE_, reports)
    result = recover(OUE_, reports, "diffstats")
    assert result.eta == 0
    assert "nothing is dropped" in result.notes[0]
    assert result.recovered.tolist() == project_simplex(f_z).tolist()


def test_conditional_probability_is_bayes_rule() -> None:
    """Both probabilities of each report follow from the definitions of its two kinds."""
    oracle, target, eta = OUE_, 22, 0.075
    r = poisoned(oracle, (target,))
    f, p, q = project_simplex(r.f_z), oracle.p, oracle.q
    bits = oracle.supports(r.reports)
    ones = int(p + (D - 1) * q)
    exact = (bits.sum(axis=1) == ones) & bits[:, target]
    crafted = np.where(exact, 1 / math.comb(D - 1, ones - 1), 0)
    honest = np.zeros(len(bits))
    for v in range(D):
        probability = np.full(D, q)
        probability[v] = p
        honest += f[v] * np.where(bits, probability, 1 - probability).prod(axis=1)
    dropped = eta * crafted > honest
    remaining = r.reports[~dropped]
    expected = estimates_of(oracle, remaining)
    assert dropped.sum() >= M
    for assumed, genuine in ((eta, expected), (0, r.f_z)):
        request = RecoveryRequest("conditional-probability", targets=[target], eta=assumed)
        result = recover(oracle, r.reports, request)
        np.testing.assert_allclose(result.genuine, genuine, atol=1e-12)
    assert indices_named((2, 5)) == "item indices 2, 5"
    request = RecoveryRequest("conditional-probability", targets=[target], eta=eta)
    note = recover(oracle, r.reports, request).notes[0]
    assert note.startswith("Reports for the target, item index 22, are dropped where")


@pytest.mark.parametrize(
    ("oracle", "crafted", "note"),
    [
        (OUE(1, 3), [0, 1, 2], "Sets of 3 of the 3 items"),
        (OUE_, [5, 20, 33], "of item indices 5, 20, 33."),
    ],
)
def test_fiad_finds_an_attack_on_three_items(
    oracle: FrequencyOracle, crafted: list[int], note: str
) -> None:
    """By default it looks at sets of four and more."""
    d, rng = oracle.domain_size, np.random.default_rng(4)
    genuine = oracle.perturb(rng.integers(d, size=N), rng)
    attack = crafter_of(oracle).craft(np.tile(crafted, (N // 10, 1)), rng)
    if d == 3:
        attack[:] = 0b111
    reports = np.concatenate([genuine, attack])
    result = recover(oracle, reports, "fiad")
    assert any(note in each for each in result.notes)
    assert result.eta > 0.1


@pytest.mark.parametrize("z", [2, 10])
@pytest.mark.parametrize("rate", [0.01, 1e-6])
def test_thresholds_of_itemsets(z: int, rate: float) -> None:
    """OUE: Chebyshev's bound is met at tau and not before. OLH: the binomial tail, by scipy."""
    n, oue, olh = 100_000, OUE_, ORACLES["olh"]
    w = oue.p * oue.q ** (z - 1)
    assert oue.laws.joint_support is not None
    assert olh.laws.joint_support is not None
    tau = oue.laws.joint_support.threshold(n, z, rate)
    assert n * w * (1 - w) / (tau - n * w) ** 2 <= rate < n * w * (1 - w) / (tau - 1 - n * w) ** 2
    tau = olh.laws.joint_support.threshold(n, z, rate)
    law = stats.binom(n, olh.q ** (z - 1))
    assert law.sf(tau - 1) <= rate < law.sf(tau - 2)


@pytest.mark.parametrize(
    ("oracle", "method", "fields", "reason"),
    [
        (
            GRR_,
            "detection",
            {"targets": TARGETS, "options": {"match": "all"}},
            "a grr report supports one item, so none matches all 6 targets",
        ),
        (GRR_, "em", {}, "mle is their exact likelihood"),
        (OUE_, "conditional-probability", {"targets": [1, 2]}, "one target, not 2"),
        (OUE_, "conditional-probability", {"targets": [1], "eta": "auto"}, "as a number"),
        (OUE_, "ldprecover-km", {"eta": "auto"}, "as a number"),
        (GRR_, "detection", {"targets": [0]}, "all 9 reports would be dropped"),
        (
            OUE_,
            "k-means",
            {"options": {"rate": 0.001}},
            "k-means: too few reports, 9, for 30 random subsets at rate 0.001: one holds none",
        ),
        (
            OUE_,
            "ldprecover-km",
            {"options": {"rate": 1}},
            "ldprecover-km: .* all 30 random subsets are the same: at rate 1 each holds all",
        ),
    ],
)
def test_error_states_why_a_method_cannot_run(
    oracle: FrequencyOracle, method: str, fields: dict[str, Any], reason: str
) -> None:
    reports = oracle.perturb(np.arange(9), np.random.default_rng(1))
    if "would be dropped" in reason:
        reports[:] = 0
    with pytest.raises(ParameterError, match=reason):
        recover(oracle, reports, RecoveryRequest(method, **fields))
