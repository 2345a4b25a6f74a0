"""The evidence of an attack: p-values, and the probability that follows from them."""

import math
from itertools import product

import numpy as np
import pytest
from tests.core.recovery.poisoned_round import play

from ldprecover import GRR, OLH, OUE, FrequencyOracle, frequency_oracle
from ldprecover.distributions import log_factorials
from ldprecover.evidence.unseen import UnseenGain
from ldprecover.protocols import SS, SUE
from ldprecover.recovery.unmixing.evidence import (
    Evidence,
    divergence,
    log_p_of_canaries,
    log_p_of_hits,
    log_p_of_items,
    log_p_of_pairs,
    log_p_of_sizes,
    log_p_of_sum,
    noise_of_none,
)
from ldprecover.recovery.unmixing.filters.rules import hits_of, set_laws
from ldprecover.recovery.unmixing.least_share import (
    least_by_shift,
    least_number,
    least_of_set,
)
from ldprecover.reports import tally_sampler
from ldprecover.reports.sample import Sample
from ldprecover_attacker import MGA

CLEAN = [1882, 1460, 1368, 1282, 1301, 1185, 1188, 1157, 1175, 1102, 1143, 1099, 1193, 1112]
CLEAN += [1147, 1206]
ATTACKED = [1750, 1334, 1236, 1148, 1096, 1124, 989, 1029, 1026, 1706, 1683, 1030, 1055, 1730]
ATTACKED += [1050, 1012]
"""Counts of GRR(1, 16); the attack is on the items 9, 10 and 13."""

UNARY = [OUE(1.0, 40), SUE(1.0, 40), OLH(1.0, 40, 4), SS(1.0, 40, 10)]


FOUND, BLIND = UnseenGain(10, 0.05, 0.8, 1.0), UnseenGain(10, 0.05, 0.9, 1.0)


@pytest.mark.parametrize(
    ("log_p", "unseen", "probability", "word"),
    [
        (math.log(0.04), FOUND, 0.241, "possible"),
        (math.log(0.01), BLIND, 0.470, "possible"),
        (math.log(1e-3), BLIND, 0.855, "possible"),
        (math.log(1e-4), BLIND, 0.978, "near_certain"),
        (math.log(1e-6), BLIND, 0.9997, "near_certain"),
        (-1000.0, FOUND, 1.0, "near_certain"),
        (-0.47, BLIND, 0.1, "cannot_be_seen"),
        (-0.47, FOUND, 0.1, "none_seen"),
        (math.log(0.0501), FOUND, 0.1, "none_seen"),
    ],
)
def test_probability_is_that_of_the_largest_bayes_factor(
    log_p: float, unseen: UnseenGain, probability: float, word: str
) -> None:
    """1/(-e p ln p), with a prior of .1, which stays without evidence."""
    evidence = Evidence({"items": log_p}, (unseen,))
    assert evidence.probability == pytest.approx(probability, abs=5e-4)
    assert evidence.word == word


def test_kinds_share_the_level() -> None:
    evidence = Evidence({"items": math.log(0.01), "sum": 0.0, "reports": -0.1}, (FOUND,))
    assert evidence.p_value == pytest.approx(0.03)


@pytest.mark.parametrize(("counts", "exact"), [(CLEAN, -0.4757), (ATTACKED, -25.536)])
def test_items_below_zero(counts: list[int], exact: float) -> None:
    """Wilson and Hilferty's cube root is too near one, by 7 % of the logarithm here."""
    oracle, n = GRR(1.0, 16), sum(counts)
    log_p = log_p_of_items(oracle.estimate(counts, n), noise_of_none(oracle, n))
    assert exact - 0.01 <= log_p <= 0.9 * exact


@pytest.mark.parametrize(("beta", "bound"), [(0.005, -41.118), (0.01, -148.22)])
def test_pairs_of_a_set(beta: float, bound: float) -> None:
    """Expected numbers where a share beta supports five of 100 items that nobody holds, by hand."""
    oracle, n, t = OUE(1.0, 100), 50_000, 5
    honest, all_of_them = set_laws(oracle, t)[0], np.eye(t + 1)[t]
    observed = n * ((1 - beta) * honest + beta * all_of_them)
    assert log_p_of_pairs(oracle, 0.0, observed) == pytest.approx(bound, abs=0.01)


@pytest.mark.parametrize("oracle", UNARY, ids=lambda oracle: oracle.protocol)
def test_divergence_is_the_least_over_all_holders(oracle: FrequencyOracle) -> None:
    """Against 10,001 shares of users who hold an item, also where none do or all."""
    laws, rng = set_laws(oracle, 4), np.random.default_rng(2)
    shares = np.linspace(0, 1, 10_001)[:, None]
    mixtures = (1 - shares) * laws[0] + shares * laws[1]
    odd = [rng.dirichlet(np.ones(5)), *np.eye(5)[[0, 4]]]
    observed = np.array([rng.multinomial(3000, law) for law in (*laws, *mixtures[::2500], *odd)])
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = observed[:, None] * np.log(observed[:, None] / (3000 * mixtures))
    least = np.nan_to_num(terms).sum(axis=-1).min(axis=1)
    assert divergence(observed, laws) == pytest.approx(least, abs=2e-3)
    assert (divergence(observed, laws) <= least + 1e-9).all()


@pytest.mark.parametrize("n", [12, 30])
def test_bound_of_the_divergence_is_above_its_tail(n: int) -> None:
    """All histograms of n reports over three items, by enumeration, for users of any share."""
    oracle = OUE(1.0, 30)
    laws = set_laws(oracle, 3)
    each = np.array([k for k in product(range(n + 1), repeat=4) if sum(k) == n])
    log_p, log_ways = (
        log_p_of_hits(set_laws(oracle, each.shape[-1] - 1), each),
        log_factorials(n)[n] - log_factorials(n)[each].sum(axis=1),
    )
    for share in (0.0, 0.3, 1.0):
        chances = np.exp(log_ways + each @ np.log((1 - share) * laws[0] + share * laws[1]))
        order = np.argsort(log_p)
        tails = np.cumsum(chances[order])
        shown = log_p[order] < -1e-9
        assert (np.log(tails[shown]) <= log_p[order][shown] + 1e-9).all()


@pytest.mark.parametrize("oracle", [*UNARY, OUE(4.0, 40)], ids=lambda oracle: oracle.protocol)
def test_p_value_of_a_set_is_valid_for_any_users(oracle: FrequencyOracle) -> None:
    """Of 60 p-values of popular and rare sets none is below 1e-4, before any price: each of two
    tests is conservative. One that is below in a tenth of the rounds passes once in 500.
    """
    rng = np.random.default_rng(1)
    for seed in range(20):
        round = play(oracle, rng.dirichlet(np.full(40, 0.1)), 20_000, seed=seed)
        order, z = np.argsort(-round.truth), round.estimates
        for items in (order[:2], order[:5], order[-8:]):
            observed = hits_of(Sample(oracle, round.data), items=items)
            tests = log_p_of_pairs(oracle, np.maximum(z[items], 0).sum(), observed)
            assert min(
                tests, log_p_of_hits(set_laws(oracle, observed.shape[-1] - 1), observed)
            ) > math.log(1e-4)


@pytest.mark.parametrize("m", [0, 1000])
def test_sizes_and_sum_and_canaries(m: int) -> None:
    oracle = OUE(1.0, 40)
    round = play(oracle, np.arange(40) < 30, 20_000, MGA([3, 4], model="sampled"), m=m)
    n, z, sizes = 20_000 + m, round.estimates, Sample(oracle, round.data).size_counts()
    log_p = [
        log_p_of_sizes(sizes, oracle.laws.size_law().probabilities()),
        log_p_of_sum(oracle, z, n) or 0.0,
        log_p_of_canaries(oracle, z, n, range(30, 40)) or 0.0,
    ]
    assert max(log_p) < -20 if m else min(log_p) > math.log(1e-3)
    assert log_p_of_canaries(oracle, z, n, ()) is None
    assert log_p_of_sum(GRR(1.0, 40), z, n) is None


def test_named_targets_pay_no_price_of_a_search() -> None:
    """An eighth of a percent of the reports support five of 100 items: too few to be searched."""
    targets = (20, 30, 35, 40, 50)
    round = play(OUE(1.0, 100), np.ones(100), 60_000, MGA(targets), m=75)
    certain = [round.unmixed(targets=each)[1].attack == "near_certain" for each in ((), targets)]
    assert certain == [False, True]


@pytest.mark.parametrize("oracle", UNARY, ids=lambda oracle: oracle.protocol)
def test_least_share_is_most_of_the_malicious_reports_of_a_set(oracle: FrequencyOracle) -> None:
    """Expected numbers of reports that support k of five targets, 5 % all of them."""
    laws, n = set_laws(oracle, 5), 100_000
    honest = 0.7 * laws[0] + 0.3 * laws[1]
    observed = np.rint(n * (0.95 * honest + 0.05 * np.eye(6)[5])).astype(np.int64)
    assert 0.5 * 0.05 * n < least_of_set(oracle, observed) < 0.05 * n
    assert least_of_set(oracle, np.rint(n * honest).astype(np.int64)) == 0


def test_sizes_of_clean_rounds_show_no_share() -> None:
    """A share above 1e-4 shows in .55 % of rounds: more than 15 of 1,000 with probability 2e-4.

    Bounds of three standard deviations for each size, which show one in 3.8 %, are missed once in
    10^5.
    """
    law = OUE(1.0, 70).laws.size_law().probabilities()
    rounds = np.random.default_rng(1).multinomial(60_000, law, size=1_000)
    assert np.mean([least_number(law[None], sizes) > 6 for sizes in rounds]) <= 0.015


@pytest.mark.parametrize("oracle", [GRR(1.0, 60), OUE(1.0, 60)], ids=lambda o: o.protocol)
def test_p_values_of_clean_rounds_are_valid_and_no_share_shows(oracle: FrequencyOracle) -> None:
    """More than 24 of 200 p-values are below .05 with probability 3e-5. A bound of the share above
    0 is allowed once in some 200 rounds. Rates of .19 and .06 are missed once in 100.
    """
    rng, n, shares, log_p = np.random.default_rng(4), 20_000, [], []
    for seed in range(200):
        z = play(oracle, rng.dirichlet(np.full(60, 0.3)), n, seed=seed, tallied=True).estimates
        shares.append(least_by_shift(oracle, z, n))
        of_items = log_p_of_items(z, noise_of_none(oracle, n))
        log_p.append([of_items, log_p_of_sum(oracle, z, n) or 0.0])
    assert np.count_nonzero(shares) <= 4
    assert ((np.array(log_p) < math.log(0.05)).sum(axis=0) <= 24).all()


@pytest.mark.statistical
def test_sum_under_linear_hashing_is_valid_with_few_full_reports() -> None:
    """A valid p-value is below 1e-4 in one of 200 rounds with a probability of .02, at most."""
    oracle, f = frequency_oracle("llh", 6.0, 100), np.repeat([1 / 40, 0.0], [40, 60])
    log_p = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        tally = tally_sampler(oracle).population_tally(f, 50_000, rng)
        estimates = oracle.estimate(tally.counts(oracle), 50_000)
        log_p.append(log_p_of_sum(oracle, estimates, 50_000) or 0.0)
    assert min(log_p) > math.log(1e-4)
