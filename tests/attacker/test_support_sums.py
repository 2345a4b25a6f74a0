"""Support sums S and expected gains against their formulas, through the real reports and counts."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.seed_laws import best_hits

from ldprecover import GRR, OLH, OUE, Estimates, FrequencyOracle, Tally
from ldprecover_attacker import AA, MGA, Attack, InputPoisoning, ItemAttack, Manip, Several

D, R, EPSILON = 102, 10, 0.5
TARGETS = tuple(range(5, 105, 10))
GRR_, OUE_, OLH_ = GRR(EPSILON, D), OUE(EPSILON, D), OLH(EPSILON, D, 3)

ONE_ITEM = [Manip, AA, lambda **kw: AA("peaked", **kw), lambda **kw: MGA([7], **kw)]


def rng(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def malicious_sum(oracle: FrequencyOracle, mean_support: float) -> float:
    """S = (k - qd)/(p - q) of reports that support k items on average."""
    return (mean_support - oracle.q * oracle.domain_size) / (oracle.p - oracle.q)


def measured(attack: Attack, oracle: FrequencyOracle, m: int) -> float:
    return Estimates.of(oracle, Tally.of(oracle, attack.reports(oracle, m, rng()))).sum


def spread(oracle: FrequencyOracle, variance: float, m: int) -> float:
    """6 sd of a sum of frequencies when one report's support size has this variance."""
    return 6 * (variance / m) ** 0.5 / (oracle.p - oracle.q) + 1e-9


every_attack = pytest.mark.parametrize(
    "attack",
    [
        MGA(TARGETS),
        MGA(TARGETS, model="sampled"),
        Manip(),
        Manip(model="sampled"),
        AA(),
        AA("peaked", model="sampled"),
        InputPoisoning(MGA(TARGETS)),
        Several([AA()] * 5),
    ],
    ids=repr,
)


@every_attack
def test_malicious_frequencies_sum_to_one_under_grr(attack: Attack) -> None:
    """p + (d-1)q = 1: identically, for any reports."""
    assert measured(attack, GRR_, 500) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    "attack", [MGA(TARGETS, model="sampled"), Manip(model="sampled"), AA(model="sampled")], ids=repr
)
def test_sampled_oue_reports_sum_to_the_papers_constant(attack: Attack) -> None:
    """One one a report: (1 - qd)/(p - q) = -306.30, identically."""
    assert measured(attack, OUE_, 500) == pytest.approx(OUE_.malicious_sum, rel=1e-12)
    assert OUE_.malicious_sum == pytest.approx(-306.30, abs=0.005)


@pytest.mark.parametrize(
    "attack", [MGA(TARGETS, model="sampled"), Manip(), AA(), AA(model="sampled")], ids=repr
)
def test_sampled_olh_reports_sum_to_what_a_random_seed_gives(attack: Attack) -> None:
    """(1 - q)/(p - q) = 5.62 and not the paper's -278.41, to 6 sd of Bin(d-1, 1/g) (2e-9)."""
    m, expected = 20_000, (1 - OLH_.q) / (OLH_.p - OLH_.q)
    assert abs(measured(attack, OLH_, m) - expected) <= spread(OLH_, (D - 1) * 2 / 9, m)
    assert expected == pytest.approx(5.62, abs=0.005)
    assert OLH_.malicious_sum == pytest.approx(-278.41, abs=0.005)


@pytest.mark.parametrize(
    "attack", [MGA(TARGETS), Manip(), AA(), AA("peaked"), MGA([7]), Several([AA()] * 5)], ids=repr
)
def test_padded_oue_reports_sum_to_almost_what_honest_ones_do(attack: Attack) -> None:
    """(L - qd)/(p - q) = -4.16 with L = 38 ones, identically."""
    assert measured(attack, OUE_, 500) == pytest.approx(malicious_sum(OUE_, 38), rel=1e-12)
    assert malicious_sum(OUE_, 38) == pytest.approx(-4.16, abs=0.005)


def test_more_targets_than_an_honest_report_has_ones_are_all_set() -> None:
    oracle = OUE(3.0, 50)  # L = 2
    assert measured(MGA(range(20)), oracle, 300) == pytest.approx(
        malicious_sum(oracle, 20), rel=1e-12
    )


@pytest.mark.parametrize("search", [1, 1_000])
def test_searched_olh_reports_sum_to_what_their_hits_give(search: int) -> None:
    """(c - rq)/(p - q), 13.5 and 45.2 for c of 1 and 1,000 seeds, to 6 sd of hits plus Bin(d-r,
    1/g) (2e-9 each).
    """
    m = 6_000
    mean, variance = best_hits(R, 3, search)
    expected = (mean - R * OLH_.q) / (OLH_.p - OLH_.q)
    tolerance = spread(OLH_, variance + (D - R) * 2 / 9, m)
    assert abs(measured(MGA(TARGETS, search=search), OLH_, m) - expected) <= tolerance


def test_perfect_olh_seeds_sum_to_the_most_there_is() -> None:
    """r(1 - q)/(p - q) = 56.2, to 6 sd of Bin(d-r, 1/g) (2e-9)."""
    m, expected = 300, R * (1 - OLH_.q) / (OLH_.p - OLH_.q)
    assert abs(measured(MGA(TARGETS, search="exhaustive"), OLH_, m) - expected) <= spread(
        OLH_, (D - R) * 2 / 9, m
    )
    assert expected == pytest.approx(56.2, abs=0.05)


@pytest.mark.parametrize("oracle", [OUE_, OLH_], ids=repr)
@pytest.mark.parametrize("inner", [MGA(TARGETS), Manip(), AA("peaked")], ids=repr)
def test_input_poisoning_sums_to_one(oracle: FrequencyOracle, inner: ItemAttack) -> None:
    """As honest reports do, to 6 sd of the size of an honest report's support (2e-9 each)."""
    m = 10_000
    variance = oracle.p * (1 - oracle.p) + (D - 1) * oracle.q * (1 - oracle.q)
    assert abs(measured(InputPoisoning(inner), oracle, m) - 1) <= spread(oracle, variance, m)


@dataclass(frozen=True)
class Case:
    """An attack, the mean and variance of the targets one of its reports supports, and the gain it
    should have.
    """

    oracle: FrequencyOracle
    attack: Attack
    hits: float
    variance: float
    known: float | None


def gain_cases() -> list[Case]:
    crafted, sampled, ipa = (
        MGA(TARGETS),
        MGA(TARGETS, model="sampled"),
        InputPoisoning(MGA(TARGETS)),
    )
    cases = [
        Case(GRR_, crafted, 1, 0, 7.14),
        Case(GRR_, sampled, 1, 0, 7.14),
        Case(OUE_, crafted, R, 0, 2.54),
        Case(OUE_, sampled, 1, 0, -1.14),
        Case(OLH_, sampled, 1 + (R - 1) / 3, (R - 1) * 2 / 9, None),
    ]
    for oracle in (GRR_, OUE_, OLH_):
        p, q = oracle.p, oracle.q
        hits = p + (R - 1) * q
        # GRR reports one item: its hits are one coin. The bits of OUE, and buckets of OLH, are
        # pairwise independent.
        variance = hits * (1 - hits) if oracle is GRR_ else p * (1 - p) + (R - 1) * q * (1 - q)
        cases.append(Case(oracle, ipa, hits, variance, None))
    return cases


def gain_and_tolerance(case: Case) -> tuple[float, float, float]:
    """Return measured gain, expected gain and 6 sd, at beta = 0.05 among 95,000 genuine users of a
    Zipf law.

    G = beta (sum_t f~_Y(t) - f_T). Measured from both estimates of the same genuine reports, it is
    beta (sum_t f~_Y - sum_t f~_X~), so both sums' variances count.
    """
    n, m, beta = 95_000, 5_000, 0.05
    oracle, p, q = case.oracle, case.oracle.p, case.oracle.q
    weights = 1 / np.arange(1, D + 1)
    counts = np.floor(n * weights / weights.sum()).astype(int)
    counts[0] += n - counts.sum()
    genuine = Tally.of(oracle, oracle.perturb(np.repeat(np.arange(D), counts), rng()))
    malicious = Tally.of(oracle, case.attack.reports(oracle, m, rng()))
    targets = list(TARGETS)
    share = counts[targets].sum() / n
    poisoned, before = (
        Estimates.of(oracle, tally).frequencies[targets].sum()
        for tally in (genuine + malicious, genuine)
    )
    expected = beta * ((case.hits - R * q) / (p - q) - share)
    honest = 1 / 4 if oracle is GRR_ else R / 4  # at most, for hits of one honest report
    sd = beta * (case.variance / m + honest / n) ** 0.5 / (p - q)
    if case.known is not None:
        assert expected == pytest.approx(case.known, abs=0.01)
    return float(poisoned - before), expected, 6 * sd


@pytest.mark.parametrize(
    "case", gain_cases(), ids=lambda case: f"{case.oracle.protocol} {case.attack}"
)
def test_the_gain_is_the_expected_one(case: Case) -> None:
    """2e-9 a case."""
    gain, expected, tolerance = gain_and_tolerance(case)
    assert abs(gain - expected) <= tolerance


@pytest.mark.parametrize(("search", "known"), [(1_000, 2.26), ("exhaustive", 2.81)])
def test_the_gain_of_searched_seeds_is_the_expected_one(search: Any, known: float) -> None:
    """2e-9 a case; 5,000 perfect seeds among three buckets are found in 10^8."""
    hits, variance = best_hits(R, 3, 1_000) if search == 1_000 else (R, 0.0)
    gain, expected, tolerance = gain_and_tolerance(
        Case(OLH_, MGA(TARGETS, search=search), hits, variance, known)
    )
    assert abs(gain - expected) <= tolerance
    assert math.isclose(expected, known, abs_tol=0.01)
