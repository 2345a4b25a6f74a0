"""The evidence of an attack: p-values, the probability that follows from them, and the reach."""

import math

import numpy as np
import pytest

from ldprecover import GRR, OLH, OUE, FrequencyOracle, RecoveryRequest, recover
from ldprecover.protocols import SS, SUE
from ldprecover.recovery.sample import Sample
from ldprecover.recovery.unmixing.evidence import (
    Evidence,
    log_p_of_canaries,
    log_p_of_items,
    log_p_of_set,
    log_p_of_sizes,
    log_p_of_sum,
    noise_of_none,
    reach,
)
from ldprecover.recovery.unmixing.filters.rules import set_laws
from ldprecover.recovery.unmixing.least_share import least_by_shift, least_of_set
from ldprecover_attacker.targeted import MGA

CLEAN = [1882, 1460, 1368, 1282, 1301, 1185, 1188, 1157, 1175, 1102, 1143, 1099, 1193, 1112]
CLEAN += [1147, 1206]
ATTACKED = [1750, 1334, 1236, 1148, 1096, 1124, 989, 1029, 1026, 1706, 1683, 1030, 1055, 1730]
ATTACKED += [1050, 1012]
"""Counts of GRR(1, 16); the attack is on the items 9, 10 and 13."""

UNARY = [OUE(1.0, 40), SUE(1.0, 40), OLH(1.0, 40, 4), SS(1.0, 40, 10)]


@pytest.mark.parametrize(
    ("log_p", "reached", "probability"),
    [
        (math.log(0.01), 0.0, 0.470),
        (math.log(1e-3), 0.0, 0.855),
        (math.log(1e-4), 0.0, 0.978),
        (math.log(1e-6), 0.0, 0.9997),
        (-0.47, 0.2, 0.1),
        (-0.47, 0.95, 0.0058),
        (-1000.0, 0.2, 1.0),
    ],
)
def test_probability_is_that_of_the_largest_bayes_factor(
    log_p: float, reached: float, probability: float
) -> None:
    """1/(-e p ln p), with a prior of .1; without evidence it is what the reach leaves."""
    assert Evidence({"items": log_p}, reached).probability == pytest.approx(probability, abs=5e-4)


@pytest.mark.parametrize(
    ("log_p", "reached", "word"),
    [
        (-8.0, 0.0, "near_certain"),
        (math.log(0.04), 0.9, "possible"),
        (-1.0, 0.5, "none_seen"),
        (-1.0, 0.49, "cannot_be_seen"),
    ],
)
def test_word(log_p: float, reached: float, word: str) -> None:
    assert Evidence({"items": log_p}, reached).word == word


def test_kinds_share_the_level() -> None:
    evidence = Evidence({"items": math.log(0.01), "sum": 0.0, "reports": -0.1}, 0.0)
    assert evidence.p_value == pytest.approx(0.03)


@pytest.mark.parametrize(("counts", "exact"), [(CLEAN, -0.4757), (ATTACKED, -25.536)])
def test_items_below_zero(counts: list[int], exact: float) -> None:
    """Wilson and Hilferty's cube root is too near one, by 7 % of the logarithm here."""
    oracle, n = GRR(1.0, 16), sum(counts)
    z = oracle.estimate(np.array(counts), n)
    log_p = log_p_of_items(z, noise_of_none(oracle, n))
    assert exact - 0.01 <= log_p <= 0.9 * exact


@pytest.mark.parametrize(("beta", "bound"), [(0.005, -41.118), (0.01, -148.22)])
def test_shared_set(beta: float, bound: float) -> None:
    """Expected counts of a share beta that supports five of 100 items, by hand."""
    oracle, n, t = OUE(1.0, 100), 50_000, 5
    pairs = np.full((t + 1, t + 1), ((1 - beta) * oracle.q**2 + beta) * n)
    pairs[-1, :] = pairs[:, -1] = ((1 - beta) * oracle.q + beta) * n
    pairs[-1, -1] = n
    log_p = log_p_of_set(oracle, np.zeros(t), pairs, price=0.0)
    assert log_p == pytest.approx(bound + math.log(2 * t * (t + 1)), abs=0.01)


@pytest.mark.parametrize("oracle", UNARY, ids=lambda oracle: oracle.protocol)
def test_score_of_a_set_has_mean_zero_for_any_users(oracle: FrequencyOracle) -> None:
    """Of 60 p-values on popular and rare sets none is below 1e-4: the bound is conservative."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        users = rng.multinomial(20_000, rng.dirichlet(np.full(40, 0.3)))
        reports = oracle.perturb(np.repeat(np.arange(40), users), rng)
        order = np.argsort(-users)
        for items in (order[:2], order[:5], order[-8:]):
            pairs = Sample(oracle, reports).pair_counts(items)
            z = (np.diag(pairs)[:-1] / len(reports) - oracle.q) / (oracle.p - oracle.q)
            assert log_p_of_set(oracle, z, pairs, price=0.0) > math.log(1e-4)


def test_sizes_and_sum_and_canaries() -> None:
    oracle, rng, n = OUE(1.0, 40), np.random.default_rng(2), 20_000
    reports = oracle.perturb(rng.integers(30, size=n), rng)
    law = oracle.laws.size_law().probabilities()
    crafted = MGA([3, 4], model="sampled").reports(oracle, n // 20, rng)
    values = []
    for each in (reports, np.concatenate([reports, crafted])):
        sample = Sample(oracle, each)
        z = oracle.estimate(sample.tally().counts(oracle), sample.n)
        of_sum = log_p_of_sum(oracle, z, sample.n)
        of_canaries = log_p_of_canaries(oracle, z, sample.n, range(30, 40))
        assert of_sum is not None
        assert of_canaries is not None
        values.append([log_p_of_sizes(sample.size_counts(), law), of_sum, of_canaries])
    assert min(values[0]) > math.log(1e-3)
    assert max(values[1]) < -20


def test_named_targets_pay_no_price_of_a_search() -> None:
    """A third of a percent of the reports support five of 100 items: too few to be searched."""
    oracle, rng, n = OUE(1.0, 100), np.random.default_rng(6), 60_000
    reports = oracle.perturb(rng.integers(100, size=n), rng)
    crafted = MGA([20, 30, 35, 40, 50]).reports(oracle, n // 250, rng)
    reports = np.concatenate([reports, crafted])
    words = []
    for targets in ((), (20, 30, 35, 40, 50), (20, 31, 36, 41, 51)):
        conclusions = recover(
            oracle, reports, RecoveryRequest("unmix", targets=targets)
        ).conclusions
        assert conclusions is not None
        words.append(conclusions.attack)
    assert words == ["none_seen", "near_certain", "none_seen"]


def test_what_a_kind_does_not_tell_is_none() -> None:
    assert log_p_of_sum(GRR(1.0, 16), np.full(16, 1 / 16), 100) is None
    assert log_p_of_canaries(OUE(1.0, 16), np.zeros(16), 100, ()) is None


def test_reach() -> None:
    """Two items show a shared pair; GRR of two items, and little data, show nothing."""
    assert reach(OUE(1.0, 2), np.array([0.5, 0.5]), 2000, 3, reads_reports=True) > 0.9
    assert reach(OUE(1.0, 2), np.array([0.5, 0.5]), 2000, 2, reads_reports=False) < 0.5
    assert reach(GRR(1.0, 2), np.array([0.5, 0.5]), 10**6, 1, reads_reports=False) < 0.5
    law = 0.9 ** np.arange(60)
    z = law / law.sum()
    assert reach(GRR(0.5, 60), z, 100_000, 1, reads_reports=False) > 0.9
    assert reach(GRR(4.0, 60), z, 100_000, 1, reads_reports=False) < 0.5


@pytest.mark.parametrize("oracle", [*UNARY, GRR(1.0, 40)], ids=lambda oracle: oracle.protocol)
def test_clean_round_has_no_evidence_and_an_attack_has(oracle: FrequencyOracle) -> None:
    rng, n = np.random.default_rng(3), 40_000
    law = 0.9 ** np.arange(40)
    reports = oracle.perturb(rng.choice(40, n, p=law / law.sum()), rng)
    crafted = MGA([20, 30, 35]).reports(oracle, n // 20, rng)
    clean = recover(oracle, reports, "unmix").conclusions
    attacked = recover(oracle, np.concatenate([reports, crafted]), "unmix").conclusions
    assert clean is not None
    assert attacked is not None
    assert clean.attack == "none_seen"
    assert attacked.attack == "near_certain"


@pytest.mark.parametrize("oracle", UNARY, ids=lambda oracle: oracle.protocol)
def test_least_share_is_most_of_the_malicious_reports_of_a_set(oracle: FrequencyOracle) -> None:
    """Expected numbers of reports that support k of five targets, 5 % all of them."""
    laws, n = set_laws(oracle, 5), 100_000
    honest = 0.7 * laws[0] + 0.3 * laws[1]
    observed = np.rint(n * (0.95 * honest + 0.05 * np.eye(6)[5])).astype(np.int64)
    assert 0.5 * 0.05 * n < least_of_set(oracle, observed) < 0.05 * n
    assert least_of_set(oracle, np.rint(n * honest).astype(np.int64)) == 0


def test_no_share_shows_in_clean_rounds() -> None:
    """A bound above 0 is allowed once in some 200 rounds."""
    rng, oracle, d = np.random.default_rng(4), GRR(1.0, 60), 60
    bounds = []
    for _ in range(200):
        users = rng.multinomial(20_000, rng.dirichlet(np.full(d, 0.3)))
        counts = oracle.simulation.honest_tally(users, rng).counts(oracle)
        bounds.append(least_by_shift(oracle, oracle.estimate(counts, 20_000), 20_000))
    assert np.count_nonzero(bounds) <= 4
