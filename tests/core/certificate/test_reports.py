"""Certificates from reports: the truth is inside whatever malicious users send."""

import builtins
import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from ldprecover import ParameterError
from ldprecover.certificate import Ahead, certify
from ldprecover.certificate.evidence import HonestPart
from ldprecover.certificate.partitions import numbers_of_cells, report_cells, set_cells
from ldprecover.certificate.region import Region
from ldprecover.certificate.reports import chooses
from ldprecover.distributions import binomial_threshold
from ldprecover.protocols import GRR, HR, LLH, OLH, OUE, SS, SUE, FrequencyOracle
from ldprecover.reports.source import ReportSource
from ldprecover_attacker import make_attack
from ldprecover_client.datasets import load_dataset

D = 24
TARGETS = (3, 9, 14, 20)
ORACLES: dict[str, FrequencyOracle] = {
    "grr": GRR(1.5, D),
    "oue": OUE(1.5, D),
    "sue": SUE(1.5, D),
    "olh": OLH(1.5, D, 5),
    "ss": SS(1.5, D, 4),
    "hr": HR(1.5, D),
    "llh": LLH(1.5, D, 5),
}
ATTACKS = ("none", "ria", "mga", "apa2")


def frequencies(n: int) -> np.ndarray:
    """Return the numbers of n users by item: a falling law."""
    users = np.floor(n / np.arange(1, D + 1) / (1 / np.arange(1, D + 1)).sum()).astype(int)
    users[0] += n - users.sum()
    return users


def played(
    oracle: FrequencyOracle, attack="mga", m=600, rng=None, n=8_000
) -> tuple[np.ndarray, np.ndarray]:
    """Return the honest users' frequencies, and all reports, the malicious ones last."""
    users, rng = frequencies(n), rng or np.random.default_rng(3)
    honest = oracle.perturb(np.repeat(np.arange(D), users), rng)
    fakes = honest[:0]
    if attack != "none":
        name = "mga" if attack == "apa2" and oracle.protocol not in ("oue", "olh") else attack
        fakes = make_attack(name, targets=TARGETS).reports(oracle, m, rng)
    return users / n, np.concatenate([honest, fakes])


def certified(oracle: FrequencyOracle, reports, share=0.07, seed=5) -> Any:
    return certify(oracle, reports, share, questions=[TARGETS], seed=seed)


@pytest.mark.parametrize(
    "name",
    [
        "oue",
        "llh",
        *(
            pytest.param(name, marks=pytest.mark.statistical)
            for name in ("grr", "sue", "olh", "ss", "hr")
        ),
    ],
)
def test_truth_is_inside_with_confidence(name):
    # Two rounds with each attack. If a certificate failed in a tenth of the rounds, as it may at
    # most, the threshold would be reached in fewer than one of 1,000 runs.
    oracle, failures = ORACLES[name], 0
    for trial in range(8):
        rng = np.random.default_rng([7, trial])
        m = int(rng.integers(100, 800))
        truth, reports = played(oracle, ATTACKS[trial % 4], m, rng)
        share = m / len(reports)
        certificate = certify(oracle, reports, share, 0.9, questions=[TARGETS], seed=trial)
        failures += not holds(certificate, truth, share)
    assert failures < binomial_threshold(8, 0.1, 1e-3)


def holds(certificate, truth: np.ndarray, share: float) -> bool:
    if not certificate.is_possible or certificate.least_malicious_share > share:
        return False
    inside = bool(((certificate.lower <= truth) & (truth <= certificate.upper)).all())
    for items in (TARGETS, (0,), range(8), range(12, D)):
        low, high = certificate.total(items)
        inside &= low <= truth[list(items)].sum() <= high
    low, high = certificate.difference(0, 3)
    return bool(inside and low <= truth[0] - truth[3] <= high)


@pytest.mark.statistical
def test_truth_is_inside_for_sorted_reports():
    # Ten seeds of one round; the threshold is reached in fewer than one of 10,000 runs.
    oracle = ORACLES["oue"]
    truth, reports = played(oracle)
    reports = reports[np.lexsort(reports.T)]
    share = 600 / len(reports)
    certificates = [
        certify(oracle, reports, share, 0.9, questions=[TARGETS], seed=seed) for seed in range(10)
    ]
    failures = sum(not holds(certificate, truth, share) for certificate in certificates)
    assert failures < binomial_threshold(10, 0.1, 1e-4)


@pytest.mark.parametrize("name", ["oue", "sue", "olh", "ss"])
def test_reports_say_more_than_counts(name):
    oracle, rng = ORACLES[name], np.random.default_rng(5)
    _, reports = played(oracle, "mga", 2_000, rng, n=40_000)
    tally = ReportSource(oracle, reports).tally()
    share = 2_000 / len(reports)
    counted = certify(oracle, tally, share)
    certificate = certified(oracle, reports, share, 1)
    wide = np.subtract(*counted.total(TARGETS)[::-1])
    narrow = np.subtract(*certificate.total(TARGETS)[::-1])
    assert narrow < 0.6 * wide
    assert certificate.least_malicious_share > 0.5 * share


def test_seed_determines_certificate():
    oracle = ORACLES["oue"]
    _, reports = played(oracle)
    first, again, other = (certified(oracle, reports, seed=seed) for seed in (5, 5, 6))
    assert first.total(TARGETS) == again.total(TARGETS)
    assert first.least_malicious_share == again.least_malicious_share
    assert first.total(TARGETS) != other.total(TARGETS)
    unseeded: Any = certify(oracle, reports, 0.07)
    assert unseeded.seed.bit_length() > 64
    assert first.seed == 5


def test_events_are_those_of_counts_scores_and_split():
    oracle = ORACLES["oue"]
    _, reports = played(oracle)
    evidence = certified(oracle, reports).evidence
    assert len(evidence.scored.losses) > 0
    assert evidence.events == 2 * D + len(evidence.scored.losses) + 2


def test_a_failing_solver_leaves_the_limits_of_the_box(monkeypatch):
    oracle = ORACLES["oue"]
    truth, reports = played(oracle)
    share = 600 / len(reports)
    certificate = certified(oracle, reports, share)
    region = certificate.region
    box = Region(region.lower, region.upper)
    failed = SimpleNamespace(status=4)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_args, **_options: failed)
    certificate = replace(certificate)
    assert certificate.total(TARGETS) == box.limits(np.isin(np.arange(D), TARGETS).astype(float))
    assert holds(certificate, truth, share)


def test_chunks_give_the_same_certificate(monkeypatch):
    oracle = ORACLES["olh"]
    _, reports = played(oracle)
    whole = certified(oracle, reports)
    monkeypatch.setattr("ldprecover.reports.source._CELLS", 1_000 * D)
    chunks = ReportSource(oracle, lambda: np.array_split(reports, 7))
    chunked = certified(oracle, chunks)
    assert chunked.total(TARGETS) == whole.total(TARGETS)


@pytest.mark.parametrize("name", ["grr", "oue", "olh", "llh"])
def test_order_of_reports_changes_no_bit(name):
    oracle = ORACLES[name]
    _, reports = played(oracle)
    reports = np.concatenate([reports, np.repeat(reports[:1], 300, axis=0)])  # copies
    shuffled = reports[np.random.default_rng(4).permutation(len(reports))]
    first, other = (certified(oracle, each, 0.1) for each in (reports, shuffled))
    assert first.evidence.scored.sums.size
    np.testing.assert_array_equal(first.evidence.scored.sums, other.evidence.scored.sums)
    assert first.total(TARGETS) == other.total(TARGETS)
    assert first.least_malicious_share == other.least_malicious_share


def test_a_quarter_of_equal_reports_chooses():
    # All reports are equal: 0.25 is within five standard deviations.
    reports = np.repeat(ORACLES["oue"].perturb([0], np.random.default_rng(3)), 10_000, axis=0)
    evidence = certified(ORACLES["oue"], reports, 0.9).evidence
    assert abs(evidence.scored.n / 10_000 - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 10_000)


def test_share_of_reports_is_not_rounded_down():
    """0.29 of 100 reports are 29, though the product of the doubles is below."""
    honest: Any = HonestPart.of(100, 100, 0.29, D, 0.01)
    assert honest.n == 71


def test_a_quarter_chooses():
    whole = chooses(2**127 + 3, 100_000)
    np.testing.assert_array_equal(chooses(2**127 + 3, 77_077), whole[:77_077])
    assert abs(whole.mean() - 0.25) < 0.01


@pytest.mark.parametrize("name", ["oue", "sue", "olh", "ss", "hr", "grr", "llh"])
def test_cells_have_the_laws_of_honest_reports(name):
    # Each number is within five standard deviations: wrong in fewer than one of 1,000 runs.
    oracle, n = ORACLES[name], 40_000
    sets = [np.array(TARGETS), np.array([0, 5])]
    by_sets = [cells for items in sets if (cells := set_cells(oracle, items)) is not None]
    partitions = by_sets or report_cells(oracle, sets)
    assert partitions
    for cells, item in itertools.product(partitions, (0, 3, 7)):
        np.testing.assert_allclose(cells.laws.sum(axis=(1, 2)), 1)
        reports = oracle.perturb(np.full(n, item), np.random.default_rng(item))
        (numbers,) = numbers_of_cells([cells], oracle, reports)
        counts = np.bincount(numbers, minlength=cells.size)
        law = cells.laws[cells.types[item]].ravel()
        assert (counts[law == 0] == 0).all()
        common = law * n > 20
        deviations = (counts - n * law)[common] / np.sqrt(n * law * (1 - law))[common]
        assert np.abs(deviations).max() < 5


def test_intervals_widen_with_share_and_confidence():
    oracle = ORACLES["oue"]
    _, reports = played(oracle)
    certificate = certified(oracle, reports)
    regions = [certificate.evidence.region(share) for share in (0.07, 0.08, 0.1, 0.2, 0.4)]
    weights = np.isin(np.arange(D), TARGETS).astype(float)
    ends = np.array([region.limits(weights) for region in regions])
    assert (np.diff(ends[:, 0]) <= 1e-7).all()
    assert (np.diff(ends[:, 1]) >= -1e-7).all()


def test_same_scores_prove_less_at_a_larger_confidence():
    oracle = ORACLES["oue"]
    _, reports = played(oracle)
    evidence = certified(oracle, reports).evidence
    weights, ends = np.isin(np.arange(D), TARGETS).astype(float), []
    for error in (0.2, 0.05, 0.001):
        ends.append(replace(evidence, error=error).region(0.07).limits(weights))
    (lows, highs) = zip(*ends, strict=True)
    assert lows[0] > lows[1] > lows[2]
    assert highs[0] < highs[1] < highs[2]


def test_relabelling_items_changes_nothing(monkeypatch):
    # The seed draws other reports if their content changes; here both rounds have one split.
    monkeypatch.setattr(
        "ldprecover.certificate.reports._choosing",
        lambda source, seed: chooses(seed, source.tally().n),
    )
    oracle, rng = ORACLES["grr"], np.random.default_rng(4)
    _, reports = played(oracle, "ria", 400, rng)
    labels = rng.permutation(D)
    before = certified(oracle, reports, 0.05, 2)
    renamed = labels[list(TARGETS)].tolist()
    after = certify(oracle, labels[reports].astype("<u4"), 0.05, questions=[renamed], seed=2)
    np.testing.assert_allclose(after.total(renamed), before.total(TARGETS), atol=1e-6)
    np.testing.assert_allclose(after.lower[labels], before.lower, atol=1e-12)


def test_the_best_mimicry_reaches_the_bound():
    # The malicious reports turn the law of the users' frequencies into that of others exactly, as
    # far as a linear programme over all columns allows: so the bound is reached but for noise.
    d, n, share = 7, 400_000, 0.1
    oracle = HR(1.0, d)
    (columns, *_) = report_cells(oracle, [])
    laws = columns.laws[:, :, 0]
    truth = np.array([0.1, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1])
    best = linprog(
        -np.eye(d)[0],
        A_ub=-laws.T,
        b_ub=np.zeros(columns.size),
        A_eq=np.ones((1, d)),
        b_eq=[share],
        bounds=[(-(1 - share) * f, None) for f in truth],
    )
    law = np.maximum(best.x @ laws, 0) / share
    rng = np.random.default_rng(8)
    honest = oracle.perturb(
        np.repeat(np.arange(d), np.rint(n * (1 - share) * truth).astype(int)), rng
    )
    fakes = rng.choice(columns.size, round(n * share), p=law / law.sum()).astype("<u4")
    reports = np.concatenate([honest, fakes])
    certificate = certify(oracle, reports, share, questions=[(0,)], seed=3)
    estimate = oracle.estimate(oracle.support_counts(reports), n)[0]
    least, _ = certificate.total((0,))
    assert estimate > truth[0] + 0.1
    assert truth[0] - 0.03 < least <= truth[0]
    assert certificate.least_malicious_share == 0


@pytest.mark.parametrize(
    ("epsilon", "attack", "width"), [(1, "none", 0.43), (1, "mga", 0.22), (2, "mga", 0.1)]
)
def test_width_of_ten_cities(epsilon, attack, width):
    # Medians over seeds were 0.36, 0.15 and 0.08; single ones lie within 30 % of them.
    shares = load_dataset("cities").frequencies
    users = np.floor(389_894 * shares).astype(int)
    oracle, rng = OUE(epsilon, users.size), np.random.default_rng(5)
    targets, m = tuple(range(20, 30)), 20_520
    reports = oracle.perturb(np.repeat(np.arange(users.size), users), rng)
    if attack != "none":
        fakes = make_attack(attack, targets=targets).reports(oracle, m, rng)
        reports = np.concatenate([reports, fakes])
    certificate = certify(oracle, reports, 0.05, questions=[targets], seed=5)
    low, high = certificate.total(targets)
    assert low <= users[20:30].sum() / users.sum() <= high
    assert high - low < width


def test_tolerance_of_a_claim():
    oracle, rng = ORACLES["oue"], np.random.default_rng(9)
    _, reports = played(oracle, "none", 0, rng, n=60_000)
    certificate = certify(oracle, reports, 0.05, questions=[(0,), (5,)], seed=1)
    counted = certify(oracle, ReportSource(oracle, reports).tally(), 0.05)
    tolerance, least = (each.tolerance(Ahead(0, 5)) for each in (certificate, counted))
    assert tolerance is not None
    assert least is not None
    assert tolerance > 0.9 * least


def test_a_round_without_reports_raises():
    oracle = ORACLES["oue"]
    with pytest.raises(ParameterError, match="at least one report"):
        certify(oracle, oracle.perturb([]), 0.1)


def test_missing_scipy_names_the_extra(monkeypatch):
    oracle = ORACLES["oue"]
    _, reports = played(oracle, "none", 0)
    imported = builtins.__import__

    def without_scipy(name, *args, **kwargs):
        if name.startswith("scipy"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_scipy)
    with pytest.raises(ImportError, match=r"ldprecover\[certify\]"):
        certify(oracle, reports, 0.1)
