"""Laws, quantiles and tails beside scipy's, limits of means beside their definition."""

import math
from decimal import Decimal, localcontext
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from ldprecover.distributions import (
    binomial_law,
    binomial_threshold,
    chi_squared_normal,
    chi_squared_quantile,
    hypergeometric_law,
    log_choose,
    log_normal_tail,
    poisson_quantile,
    power,
    skewed_quantile,
    split_law,
    sum_law,
    upper_means,
)


@pytest.mark.parametrize("freedom", [3, 10, 40, 400])
@pytest.mark.parametrize("level", [0.9, 0.999, 1 - 1e-6])
def test_chi_squared_quantile_errs_outwards(freedom: int, level: float) -> None:
    quantile = chi_squared_quantile(level, freedom)
    assert 0.99 < quantile / stats.chi2.ppf(level, freedom) < 1.08
    assert chi_squared_normal(quantile, freedom) == pytest.approx(stats.norm.ppf(level))


@pytest.mark.parametrize("skewness", [0.0, 9e-4, 0.1, 1.0])
@pytest.mark.parametrize("level", [0.9, 0.999, 1 - 1e-6])
def test_skewed_quantile_is_close(level: float, skewness: float) -> None:
    expected = stats.pearson3.ppf(level, skewness)
    assert skewed_quantile(level, skewness) == pytest.approx(expected, rel=2e-3 + skewness / 20)


def test_small_skewness_is_none() -> None:
    normal = NormalDist().inv_cdf(0.9)
    assert skewed_quantile(0.9, 0.99e-3) == normal != skewed_quantile(0.9, 1e-3)


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (10, 0.01), (489, 0.38), (5000, 0.5)])
def test_binomial_law_is_scipys(n: int, p: float) -> None:
    expected = stats.binom.pmf(np.arange(n + 1), n, p)
    assert binomial_law(n, p) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("d", "r", "k"), [(9, 4, 3), (9, 4, 7), (9, 3, 5), (6, 6, 2), (5, 1, 4)])
def test_hypergeometric_law_is_scipys(d: int, r: int, k: int) -> None:
    expected = stats.hypergeom.pmf(np.arange(r + 1), d, r, k)
    np.testing.assert_allclose(hypergeometric_law(d, r, k), expected, rtol=1e-12)
    assert log_choose(d, k) == pytest.approx(math.log(math.comb(d, k)))


@pytest.mark.parametrize(
    ("n", "p"), [(100, 0.3), (100_000, 0.001), (3, 0.9), (10**5, 0.5), (2, 1e-9)]
)
@pytest.mark.parametrize("rate", [0.5, 0.01, 1e-12])
def test_binomial_threshold_is_the_first_within_the_rate(n: int, p: float, rate: float) -> None:
    least = binomial_threshold(n, p, rate)
    assert stats.binom.sf(least - 1, n, p) <= rate < stats.binom.sf(least - 2, n, p)


def test_binomial_threshold_may_equal_the_rate() -> None:
    assert [binomial_threshold(1, p, 0.5) for p in (0.5, 0.6, 0.0)] == [1, 2, 1]
    assert binomial_threshold(5, -1e-17, 0.1) == 1


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.3, 20.0, 400.0])
@pytest.mark.parametrize("level", [0.5, 0.999, 1 - 1e-9])
def test_poisson_quantile_is_scipys(mean: float, level: float) -> None:
    assert poisson_quantile(level, mean) == (stats.poisson.ppf(level, mean) if mean else 0)


@pytest.mark.parametrize("x", [-3.0, 0.0, 7.5, 29.99, 30.0, 37.0])
def test_log_normal_tail_is_scipys(x: float) -> None:
    assert log_normal_tail(x) == pytest.approx(stats.norm.logsf(x), abs=1e-5)


@pytest.mark.parametrize("exponent", [1, 2, 3, 4, 7, 64, 1001])
def test_power_is_numpys(exponent: int) -> None:
    base = np.exp(1j * np.arange(5)) * 0.999
    np.testing.assert_allclose(power(base, exponent), base**exponent, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 60, 5000])
@pytest.mark.parametrize("law", [[0.7, 0.3], [0.2, 0.0, 0.5, 0.3], [0.0, 0.0, 1.0]])
def test_sum_law_is_the_repeated_convolution(law: list[float], n: int) -> None:
    """Values beyond 20 standard deviations and 20 times the number of values are left out."""
    expected = np.ones(1)
    for _ in range(n):
        expected = np.convolve(expected, law)
    first, probabilities = sum_law(np.array(law), n)
    values = np.arange(first, first + probabilities.size)
    assert 0 <= first <= values[-1] < expected.size
    np.testing.assert_allclose(probabilities, expected[values], rtol=0, atol=1e-12)
    mean = values @ probabilities
    variance = float(n) * (np.arange(len(law)) ** 2 @ law - (np.arange(len(law)) @ law) ** 2)
    reach = math.ceil(20 * math.sqrt(abs(float(variance))) + 20 * len(law))
    assert first == max(0, math.floor(mean + 1e-9) - reach)
    assert values[-1] == min(expected.size - 1, math.ceil(mean - 1e-9) + reach)


def test_upper_means_are_the_roots_rounded_outward() -> None:
    """The exact root of n KL(x || r) = L; limits exceed it by less than 10^-8 of the distance."""
    counts, n = np.array([0.0, 1e-9, 1.0, 500.0, 999.0, 999.999, 1000.0, 1200.0]), 1000.0
    for budget in (1e-3, 4.0, 300.0, 30_000.0):
        limits = upper_means(counts, n, budget)
        assert limits[-2:].tolist() == [1.0, 1.0]
        for x, r in zip(counts[:-2] / n, limits[:-2], strict=True):
            root = _root(Decimal(float(x)), Decimal(budget) / Decimal(n))
            assert root <= Decimal(float(r)), (x, budget)
            assert Decimal(float(r)) - root <= (root - Decimal(float(x))) * Decimal(
                "1e-8"
            ) + Decimal("2e-16")


def _root(x: Decimal, budget: Decimal) -> Decimal:
    """Return the r above x with KL(x || r) = budget, by bisection."""
    low, high = x, Decimal(1)
    with localcontext(prec=50):
        for _ in range(90):
            r = (low + high) / 2
            hits = x * (x / r).ln() if x else 0
            is_below = hits + (1 - x) * ((1 - x) / (1 - r)).ln() < budget
            low, high = (r, high) if is_below else (low, r)
    return low


@pytest.mark.parametrize("x", [0, 3, 150, 290])
def test_upper_means_miss_with_their_error(x: int) -> None:
    """The exact probability of at most x of 300 events of the limit's probability is exp(-L) or
    less, and above exp(-1.3 L): Chernoff's bound is that close for so small an error.
    """
    budget = 30.0
    limit = float(upper_means(np.array([float(x)]), 300, budget)[0])
    assert budget <= -stats.binom.logcdf(x, 300, limit) * (1 + 1e-9) <= 1.3 * budget


@pytest.mark.parametrize(("n", "others"), [(1, 5), (4, 9), (6, 0), (0, 3)])
def test_split_law_is_hypergeometric(n: int, others: int) -> None:
    law = split_law(n, others)
    assert law.shape == (n + 1, others + 1)
    k, rest = np.indices(law.shape)
    np.testing.assert_allclose(law, stats.hypergeom.pmf(k, n + others, n, k + rest), rtol=1e-12)
