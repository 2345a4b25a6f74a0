"""Methods that look at each report: what they take out of a round whose malicious reports are
known.
"""

import itertools
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from ldprecover import (
    GRR,
    OLH,
    OUE,
    Estimates,
    FrequencyOracle,
    ParameterError,
    RecoveryRequest,
    Tally,
    project_simplex,
    recover,
)
from ldprecover.estimation.metrics import mse
from ldprecover.protocols import crafter_of
from ldprecover.protocols.given_seeds import GivenSeedsOLH
from ldprecover.recovery import ReportSource
from ldprecover.recovery.contract import indices_named
from ldprecover.recovery.methods.fiad import abnormal_itemsets
from ldprecover.recovery.methods.kmeans import two_means
from ldprecover.recovery.methods.likelihood import expectation_maximisation
from ldprecover_attacker import MGA

D, N, M = 60, 20_000, 1_500
TARGETS = (7, 19, 22, 31, 40, 51)
SAMPLED = pytest.mark.parametrize(
    "oracle", [GRR(1, D), OUE(1, D), OLH(1, D, 4)], ids=lambda o: o.protocol
)
UNARY = pytest.mark.parametrize("oracle", [OUE(1, D), OLH(1, D, 4)], ids=lambda o: o.protocol)


class Round(NamedTuple):
    """A poisoned round whose truth is known."""

    truth: np.ndarray
    genuine: np.ndarray
    malicious: np.ndarray
    reports: np.ndarray
    f_z: np.ndarray


def poisoned(oracle: FrequencyOracle, targets: tuple[int, ...] = TARGETS, m: int = M) -> Round:
    """Return N honest reports and m crafted ones, shuffled. Seeded: no chance in what follows."""
    rng = np.random.default_rng(11)
    truth = 1 / np.arange(1, D + 1)
    truth /= truth.sum()
    genuine = oracle.perturb(rng.choice(D, N, p=truth), rng)
    malicious = MGA(targets).reports(oracle, m, rng)
    reports = np.concatenate([genuine, malicious])
    rng.shuffle(reports)
    tally = Tally.of(oracle, reports)
    return Round(truth, genuine, malicious, reports, oracle.estimate(tally.counts(oracle), tally.n))


@SAMPLED
def test_some_items_are_tested_as_all_are(oracle: FrequencyOracle) -> None:
    reports = poisoned(oracle).reports[:500]
    items = np.array([0, 9, 8, 59])
    np.testing.assert_array_equal(
        oracle.supported(reports, items), oracle.supports(reports)[:, items]
    )


@SAMPLED
def test_a_source_counts_what_the_oracle_counts_block_by_block(oracle: FrequencyOracle) -> None:
    reports = poisoned(oracle).reports
    source = ReportSource(
        oracle, lambda: (reports[i : i + 777] for i in range(0, len(reports), 777))
    )
    assert source.tally() == source.tally() == Tally.of(oracle, reports)


@SAMPLED
@pytest.mark.parametrize("reading", ["any", "all"])
def test_detection_drops_exactly_the_reports_that_match(
    oracle: FrequencyOracle, reading: str
) -> None:
    """Re-estimated from the rows that an explicit comparison leaves; projected, and not."""
    r = poisoned(oracle)
    targets = TARGETS if reading == "any" or oracle.protocol != "grr" else TARGETS[:1]
    hits = oracle.supports(r.reports)[:, list(targets)].sum(axis=1)
    kept = r.reports[hits == 0] if reading == "any" else r.reports[hits < len(targets)]
    expected = oracle.estimate(oracle.support_counts(kept), len(kept))
    name = f"detection-{reading}"
    plain = recover(oracle, r.f_z, RecoveryRequest(name, targets=targets), reports=r.reports)
    raw = recover(
        oracle, r.f_z, RecoveryRequest(f"{name}-unprojected", targets=targets), reports=r.reports
    )
    np.testing.assert_allclose(raw.recovered, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(plain.recovered, project_simplex(expected), rtol=1e-12, atol=1e-12)
    assert plain.targets == targets
    assert any(
        f"Dropped {len(r.reports) - len(kept)} of {len(r.reports)}" in note for note in plain.notes
    )
    # Equation 1 holds between what is kept and what is dropped.
    np.testing.assert_allclose(
        raw.genuine, (1 + raw.eta) * r.f_z - raw.eta * raw.malicious, rtol=0, atol=1e-9
    )


@pytest.mark.parametrize(
    "oracle", [OLH(1, 200, 4), GivenSeedsOLH(1, 200, 4, 256)], ids=["olh", "given"]
)
def test_detection_counts_only_dropped_hashed_reports(
    oracle: OLH, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit what counting the kept ones gives; one report that is another, or n that is, is
    seen and said.
    """
    rng = np.random.default_rng(3)
    rows = oracle.perturb(rng.integers(200, size=5_000), rng)
    bad = oracle.supported(rows, np.array([17]))[:, 0]
    expected = oracle.estimate(oracle.support_counts(rows[~bad]), int((~bad).sum()))
    f_z = oracle.estimate(oracle.support_counts(rows), len(rows))
    another = rows.copy()
    another[0] = oracle.perturb([0], rng)[0]
    counted: list[int] = []
    monkeypatch.setattr(OLH, "summarise", _recorded(OLH.summarise, counted))

    def genuine(frequencies: np.ndarray) -> tuple[np.ndarray, bool]:
        counted.clear()
        found = recover(
            oracle, frequencies, RecoveryRequest("detection-any", targets=[17]), reports=rows
        )
        return found.genuine, "not those of the poisoned frequencies" in found.notes[-1]

    by_rest, said = genuine(f_z)
    assert (by_rest.tobytes(), said, sum(counted)) == (expected.tobytes(), False, int(bad.sum()))
    for other in (another, rows[1:]):
        by_all, said = genuine(oracle.estimate(OLH.support_counts(oracle, other), len(other)))
        assert (by_all.tobytes(), said, sum(counted)) == (
            expected.tobytes(),
            True,
            int(bad.sum()) + len(rows),
        )
    assert genuine(1e300 * f_z)[1]


def _recorded(summarise: Any, counted: list[int]) -> Any:
    def recorded(oracle: OLH, reports: np.ndarray) -> Any:
        counted.append(len(reports))
        return summarise(oracle, reports)

    return recorded


def test_detection_all_is_refused_for_one_item_reports() -> None:
    r = poisoned(GRR(1, D))
    with pytest.raises(
        ParameterError, match="a grr report supports one item, so none matches all 6 targets"
    ):
        recover(
            GRR(1, D), r.f_z, RecoveryRequest("detection-all", targets=TARGETS), reports=r.reports
        )


def test_dropping_every_report_is_refused() -> None:
    oracle = GRR(1, 4)
    with pytest.raises(ParameterError, match="all 9 reports would be dropped"):
        recover(
            oracle,
            [1, 0, 0, 0],
            RecoveryRequest("detection-any", targets=[0]),
            reports=np.zeros(9, "<u4"),
        )


@UNARY
def test_sizes_and_their_law_are_those_of_honest_reports(oracle: FrequencyOracle) -> None:
    """Chi-squared over the sizes expected five times; passes but once in 1e9, and seeded."""
    genuine = poisoned(oracle).genuine
    sizes = oracle.support_sizes(genuine)
    np.testing.assert_array_equal(sizes, oracle.supports(genuine).sum(axis=1))
    law = oracle.laws.size_law().probabilities()
    k = np.arange(D + 1)
    by_scipy = (1 - oracle.p) * stats.binom.pmf(k, D - 1, oracle.q) + oracle.p * stats.binom.pmf(
        k - 1, D - 1, oracle.q
    )
    np.testing.assert_allclose(law, by_scipy, rtol=1e-9, atol=1e-300)
    expected = law * N
    enough = expected >= 5
    score = ((np.bincount(sizes, minlength=D + 1) - expected)[enough] ** 2 / expected[enough]).sum()
    assert score < stats.chi2.isf(1e-9, enough.sum() - 1)


def test_diffstats_finds_padded_reports_by_their_size() -> None:
    """All crafted reports have L = 16 ones and the targets; honest ones of that size with a target
    go too.
    """
    oracle = OUE(1, D)
    r = poisoned(oracle)
    result = recover(oracle, r.f_z, "diffstats", reports=r.reports)
    assert any("support 16 items" in note for note in result.notes)
    honest = recover(oracle, r.f_z, "diffstats", reports=r.genuine)
    assert any("follow the law of honest reports" in note for note in honest.notes)
    assert mse(result.recovered, r.truth) < mse(project_simplex(r.f_z), r.truth) / 4
    dropped = result.eta / (1 + result.eta) * len(r.reports)
    assert M <= dropped <= M + 0.12 * N


@pytest.mark.parametrize("z", [2, 4, 6, 10])
@pytest.mark.parametrize("rate", [0.01, 1e-6])
def test_the_thresholds_of_itemsets(z: int, rate: float) -> None:
    """OUE: Chebyshev's bound is met at tau and not before. OLH: the binomial tail, by scipy."""
    n, oue, olh = 100_000, OUE(1, D), OLH(1, D, 4)
    w = oue.p * oue.q ** (z - 1)
    assert oue.laws.joint_support is not None
    assert olh.laws.joint_support is not None
    tau = oue.laws.joint_support.threshold(n, z, rate)
    assert n * w * (1 - w) / (tau - n * w) ** 2 <= rate < n * w * (1 - w) / (tau - 1 - n * w) ** 2
    tau = olh.laws.joint_support.threshold(n, z, rate)
    law = stats.binom(n, olh.q ** (z - 1))
    assert law.sf(tau - 1) <= rate < law.sf(tau - 2)


def test_abnormal_itemsets_are_found_largest_first_and_only_they() -> None:
    """Patterns by hand: 10 random items, and a tenth of the reports holds items 2, 3, 5, 7, 9
    besides.
    """
    oracle, rng = OUE(1, 10), np.random.default_rng(2)
    bits = rng.random((50_000, 10)) < oracle.q

    def found() -> list[tuple[int, ...]]:
        source = ReportSource(oracle, np.packbits(bits, axis=1, bitorder="little"))
        groups = abnormal_itemsets(source, np.arange(10), least=4, rate=0.01)
        return [itemset for group in groups for itemset in group.itemsets]

    assert found() == []
    bits[:5_000, [2, 3, 5, 7, 9]] = True
    assert found() == [(2, 3, 5, 7, 9)]


@UNARY
def test_fiad_drops_the_crafted_reports_and_hardly_an_honest_one(oracle: FrequencyOracle) -> None:
    r = poisoned(oracle)
    result = recover(oracle, r.f_z, "fiad", reports=r.reports)
    assert any("of item indices 7, 19, 22, 31, 40, 51." in note for note in result.notes)
    assert result.eta / (1 + result.eta) == pytest.approx(M / (N + M), rel=0.25)
    honest = recover(oracle, r.f_z, "fiad", reports=r.genuine)
    assert honest.eta == 0
    assert mse(result.recovered, r.truth) < mse(project_simplex(r.f_z), r.truth) / 4


def test_fiad_looks_at_the_only_set_that_three_items_have() -> None:
    """By default it looks at sets of four and more."""
    oracle, rng = OUE(1.0, 3), np.random.default_rng(5)
    genuine = oracle.perturb(rng.integers(3, size=5_000), rng)
    reports = np.concatenate([genuine, np.full_like(genuine[:800], 0b111)])
    f_z = Estimates.of(oracle, Tally.of(oracle, reports)).frequencies
    result = recover(oracle, f_z, "fiad", reports=reports)
    assert any(note.startswith("Sets of 3 of the 3 items") for note in result.notes)
    assert result.eta > 0.1


def test_the_conditional_probability_is_bayes_rule() -> None:
    """Each report's two probabilities, worked out from the definitions of crafted and honest OUE
    reports.
    """
    oracle, target, eta = OUE(1, D), 22, 0.075
    r = poisoned(oracle, (target,))
    f, p, q = project_simplex(r.f_z), oracle.p, oracle.q
    bits = oracle.supports(r.reports)
    ones = int(p + (D - 1) * q)
    crafted = np.where(
        (bits.sum(axis=1) == ones) & bits[:, target], 1 / _choose(D - 1, ones - 1), 0
    )
    honest = np.zeros(len(bits))
    for v in range(D):
        probability = np.full(D, q)
        probability[v] = p
        honest += f[v] * np.where(bits, probability, 1 - probability).prod(axis=1)
    dropped = eta * crafted > honest
    kept = r.reports[~dropped]
    result = recover(
        oracle,
        r.f_z,
        RecoveryRequest("conditional-probability", targets=[target], eta=eta),
        reports=r.reports,
    )
    np.testing.assert_allclose(
        result.genuine, oracle.estimate(oracle.support_counts(kept), len(kept)), atol=1e-12
    )
    assert dropped.sum() >= M
    assert recover(
        oracle,
        r.f_z,
        RecoveryRequest("conditional-probability", targets=[target], eta=0),
        reports=r.reports,
    ).genuine == pytest.approx(r.f_z)


def _choose(n: int, k: int) -> float:
    return float(np.prod([(n - i) / (k - i) for i in range(k)]))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"targets": [1, 2]}, "one target, not 2"), ({"targets": [1], "eta": "auto"}, "as a number")],
)
def test_conditional_probability_needs_one_target_and_eta(
    fields: dict[str, Any], reason: str
) -> None:
    oracle = OUE(1, D)
    r = poisoned(oracle)
    with pytest.raises(ParameterError, match=reason):
        recover(
            oracle, r.f_z, RecoveryRequest("conditional-probability", **fields), reports=r.reports
        )


def test_two_clusters_that_are_apart_are_told_apart() -> None:
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
    """The larger cluster's mean is near all reports'; KM subtracts the smaller one's; the seed
    decides the subsets.
    """
    r = poisoned(oracle)
    options = {"subsets": 12, "rate": 0.5, "seed": 4}
    mean = recover(oracle, r.f_z, RecoveryRequest("k-means", options=options), reports=r.reports)
    np.testing.assert_array_equal(mean.recovered, project_simplex(mean.genuine))
    error = 6 * oracle.standard_errors(r.f_z, N + M)
    assert (np.abs(mean.genuine - r.f_z) < error).all()
    request = RecoveryRequest("ldprecover-km", eta=0.1, options=options)
    km = recover(oracle, r.f_z, request, reports=r.reports)
    np.testing.assert_allclose(km.genuine, 1.1 * r.f_z - 0.1 * km.malicious, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(km.recovered, project_simplex(km.genuine))
    assert (km.malicious != mean.genuine).all()
    again = recover(oracle, r.f_z, request, reports=r.reports)
    assert again.recovered.tolist() == km.recovered.tolist()
    with pytest.raises(ParameterError, match="as a number"):
        recover(oracle, r.f_z, replace(request, eta="auto"), reports=r.reports)


def test_too_few_reports_for_random_subsets_are_refused() -> None:
    oracle = OUE(1, 5)
    for n, options, reason in (
        (1, {}, "too few reports, 1, for 30 random subsets at rate 0.5: one holds none"),
        (40, {"rate": 0.001}, "too few reports, 40, for 30 random subsets at rate 0.001"),
        (40, {"rate": 1}, "all 30 random subsets are the same: at rate 1 each holds all reports"),
    ):
        reports = oracle.perturb(np.arange(n) % 5, np.random.default_rng(1))
        for method in ("k-means", "ldprecover-km"):
            with pytest.raises(ParameterError, match=f"{method}: .*{reason}"):
                recover(
                    oracle, np.zeros(5), RecoveryRequest(method, options=options), reports=reports
                )


def test_notes_name_items_by_index() -> None:
    """A label may be another item's number."""
    assert indices_named((2,)) == "item index 2"
    assert indices_named((2, 5)) == "item indices 2, 5"
    r = poisoned(OUE(1, D))
    result = recover(
        OUE(1, D), r.f_z, RecoveryRequest("conditional-probability", targets=[2]), reports=r.reports
    )
    assert result.notes[0].startswith("Reports for the target, item index 2, are dropped where")


@UNARY
def test_em_never_lowers_the_likelihood_and_converges(
    oracle: FrequencyOracle,
) -> None:
    """The likelihood sum_z log(1 + (e^eps - 1) f(S(z))), and at its maximum the slopes of positive
    items are equal.
    """
    r = poisoned(oracle)
    rows = oracle.supports(r.genuine[:3000])
    lift = np.expm1(oracle.epsilon)

    def likelihood(f: np.ndarray) -> float:
        return float(np.log1p(lift * (rows @ f)).sum())

    source, start = ReportSource(oracle, r.genuine[:3000]), np.full(D, 1 / D)
    steps = [
        expectation_maximisation(source, start, iterations=i, tolerance=0.0)[0]
        for i in (1, 2, 5, 20, 100)
    ]
    scores = [likelihood(f) for f in [start, *steps]]
    assert all(later >= earlier - 1e-3 for earlier, later in itertools.pairwise(scores))
    f, taken = expectation_maximisation(source, start, iterations=3000, tolerance=1e-8)
    slopes = (rows / (1 + lift * (rows @ f))[:, None]).sum(axis=0)
    assert taken <= 3000
    assert np.ptp(slopes[f > 0.01]) < 0.01 * slopes.max()
    assert slopes.max() < slopes[f > 0.01].max() * 1.02


def test_of_grr_the_counts_say_all_that_the_reports_do() -> None:
    r = poisoned(GRR(1, D))
    with pytest.raises(ParameterError, match="mle is their exact likelihood"):
        recover(GRR(1, D), r.f_z, "em", reports=r.reports)


def test_diffstats_drops_nothing_without_a_passing_removal() -> None:
    """Two fifths of the reports are uniformly random: their sizes are of a wide bell, not of few
    values.
    """
    oracle, rng = OUE(1, D), np.random.default_rng(3)
    genuine = oracle.perturb(rng.integers(D, size=N), rng)
    reports = np.concatenate([genuine, crafter_of(oracle).uniform_reports(2 * N // 3, rng)])
    estimates = Estimates.of(oracle, Tally.of(oracle, reports)).frequencies
    result = recover(oracle, estimates, "diffstats", reports=reports)
    assert result.eta == 0
    assert "nothing is dropped" in result.notes[0]
    assert result.recovered.tolist() == project_simplex(estimates).tolist()


def test_fiad_finds_an_attack_on_three_items_whatever_least_is() -> None:
    oracle, rng = OUE(1, D), np.random.default_rng(4)
    genuine = oracle.perturb(rng.integers(D, size=N), rng)
    crafted = crafter_of(oracle).craft(np.tile([5, 20, 33], (N // 10, 1)), rng)
    reports = np.concatenate([genuine, crafted])
    estimates = Estimates.of(oracle, Tally.of(oracle, reports)).frequencies
    result = recover(oracle, estimates, "fiad", reports=reports)
    assert any("of item indices 5, 20, 33." in note for note in result.notes)
    assert result.eta > N // 10 / N
