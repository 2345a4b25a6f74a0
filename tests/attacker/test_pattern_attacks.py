"""MGA-A, APA, APA2 and Cancel: subsets of the targets, honest sizes, coins."""

import numpy as np
import pytest
from scipy import stats
from tests.randomness import rng

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError
from ldprecover_attacker import APA, APA2, MGAA, Attack, Cancel, SubsetAttack

TARGETS = tuple(range(5, 105, 10))
GRR_, OUE_, OLH_ = GRR(0.5, 102), OUE(0.5, 102), OLH(0.5, 102, 3)


def chi_square(observed: np.ndarray, law: np.ndarray) -> tuple[float, float]:
    """Return the statistic over values expected 10 times and more, and its 1 - 1e-9 quantile."""
    common = law * observed.sum() >= 10
    expected = law[common] * observed.sum()
    return float(((observed[common] - expected) ** 2 / expected).sum()), float(
        stats.chi2.isf(1e-9, common.sum())
    )


@pytest.mark.parametrize("make", [MGAA, APA])
def test_users_promote_half_the_targets_by_default(make: type[SubsetAttack]) -> None:
    labels = [str(i) for i in range(102)]
    assert [make(TARGETS[:r]).resolve(labels).each for r in (1, 2, 3, 10)] == [1, 1, 2, 5]
    assert make(["5", "7"], 2).resolve(labels) == make([5, 7], 2)


@pytest.mark.parametrize("make", [MGAA, APA])
def test_rejects_more_targets_per_user_than_targets(make: type[SubsetAttack]) -> None:
    with pytest.raises(
        ParameterError, match="each, a number of targets, must be from 1 to 10, not 11"
    ):
        make(TARGETS, 11).reports(OUE_, 5, rng())
    with pytest.raises(
        ParameterError, match="each, a number of targets, must be an integer from 1, not 0"
    ):
        make(TARGETS, 0)


def test_subsets_are_uniform() -> None:
    """Each of C(5, 2) = 10 subsets has a tenth of 20,000 users, to 6 sd (2e-8 in all).

    Shares of .118 are missed once in 100.
    """
    subsets = np.sort(MGAA([8, 3, 5, 1, 9], 2).subsets(20, 20_000, rng()), axis=1)
    kinds, counts = np.unique(subsets, axis=0, return_counts=True)
    assert len(kinds) == 10
    assert set(kinds.ravel().tolist()) == {1, 3, 5, 8, 9}
    assert np.abs(counts - 2_000).max() <= 6 * (20_000 * 0.09) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("oracle", "attack"),
    [
        (OUE_, APA(TARGETS)),
        pytest.param(OLH_, APA(TARGETS, search=300), marks=pytest.mark.statistical),
        (OUE(1.0, 490), APA(TARGETS)),
        (OUE_, APA2(TARGETS)),
        (OUE_, Cancel(TARGETS)),
    ],
    ids=repr,
)
def test_sizes_of_pattern_attacks_are_honest(oracle: FrequencyOracle, attack: Attack) -> None:
    """10,000 reports, chi-square: 1e-9; a law that is off by 12 % of itself is missed once in 100.

    A search of 300 OLH seeds finds all but the rarest sizes.
    """
    sizes = oracle.supports(attack.reports(oracle, 10_000, rng())).sum(axis=1)
    statistic, quantile = chi_square(
        np.bincount(sizes, minlength=oracle.domain_size + 1), oracle.laws.size_law().probabilities()
    )
    assert statistic <= quantile


def test_report_too_small_for_targets_has_some() -> None:
    oracle = OUE(2.0, 21)  # 2.9 items on average
    supports = oracle.supports(APA([0, 1], 2).reports(oracle, 2_000, rng()))
    sizes, hits = supports.sum(axis=1), supports[:, :2].sum(axis=1)
    assert (hits[sizes < 2] == sizes[sizes < 2]).all()
    assert (hits[sizes >= 2] == 2).all()
    assert {0, 1} <= set(sizes.tolist())


@pytest.mark.parametrize("oracle", [OUE(2.0, 21), OLH(2.0, 21, 9)], ids=repr)
def test_rejects_targets_beyond_an_honest_report(oracle: FrequencyOracle) -> None:
    with pytest.raises(
        ParameterError, match=r"apa cannot hide 3 targets .* each must be at most 2"
    ):
        APA([0, 1, 2], 3).reports(oracle, 5, rng())


@pytest.mark.slow
@pytest.mark.parametrize(("oracle", "rate"), [(OUE_, 0.5), (OUE_, 0.42), (OLH_, 0.5)], ids=repr)
def test_targets_of_apa2_are_independent_coins(oracle: FrequencyOracle, rate: float) -> None:
    """How many targets 10,000 reports support is Binomial(10, rate): chi-square, 1e-9 a case; a
    law that is off by 10 % of itself is missed once in 100.

    Eight and more together: of 1,000 OLH buckets none may hold nine or ten of the drawn
    targets.
    """
    supports = oracle.supports(
        APA2(TARGETS, rate=rate, search=1_000).reports(oracle, 10_000, rng())
    )
    hits = np.bincount(np.minimum(supports[:, TARGETS].sum(axis=1), 8), minlength=9)
    law = stats.binom(10, rate).pmf(np.arange(9))
    law[8] = stats.binom(10, rate).sf(7)
    statistic, quantile = chi_square(hits, law)
    assert statistic <= quantile
