"""Laws beside scipy's."""

import numpy as np
import pytest
from scipy import stats

from ldprecover.distributions import (
    binomial_law,
    binomial_threshold,
    chi_squared_normal,
    chi_squared_quantile,
    poisson_quantile,
    skewed_quantile,
    split_law,
    upper_means,
)
from ldprecover.protocols.laws import IndependentSizes


@pytest.mark.parametrize("freedom", [3, 10, 40, 400])
@pytest.mark.parametrize("level", [0.9, 0.999, 1 - 1e-6])
def test_chi_squared_quantile_errs_outwards(freedom: int, level: float) -> None:
    assert 0.99 < chi_squared_quantile(level, freedom) / stats.chi2.ppf(level, freedom) < 1.08


@pytest.mark.parametrize("skewness", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("level", [0.9, 0.999, 1 - 1e-6])
def test_the_skewed_quantile_is_close(level: float, skewness: float) -> None:
    assert skewed_quantile(level, skewness) == pytest.approx(
        stats.pearson3.ppf(level, skewness), rel=0.05
    )


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (10, 0.01), (489, 0.38), (5000, 0.5)])
def test_the_binomial_law_is_scipys(n: int, p: float) -> None:
    assert binomial_law(n, p) == pytest.approx(
        stats.binom.pmf(np.arange(n + 1), n, p), rel=1e-9, abs=1e-300
    )


@pytest.mark.parametrize(("n", "p"), [(100, 0.3), (100_000, 0.001), (3, 0.9)])
@pytest.mark.parametrize("rate", [0.5, 0.01, 1e-9])
def test_binomial_threshold_is_the_first_within_the_rate(n: int, p: float, rate: float) -> None:
    least = binomial_threshold(n, p, rate)
    assert stats.binom.sf(least - 1, n, p) <= rate < stats.binom.sf(least - 2, n, p)


def test_size_law_is_a_convolution() -> None:
    law = IndependentSizes(5, 0.5, 0.25).probabilities()
    assert law == pytest.approx(np.convolve([0.5, 0.5], stats.binom.pmf(np.arange(5), 4, 0.25)))


@pytest.mark.parametrize("mean", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("level", [0.5, 0.999])
def test_the_poisson_quantile_is_scipys(mean: float, level: float) -> None:
    assert poisson_quantile(level, mean) == stats.poisson.ppf(level, mean) or mean == 0


@pytest.mark.parametrize("freedom", [3, 40])
def test_chi_squared_normal_inverts_the_quantile(freedom: int) -> None:
    value = chi_squared_quantile(0.999, freedom)
    assert chi_squared_normal(value, freedom) == pytest.approx(stats.norm.ppf(0.999))


def test_upper_means_are_exact_roots() -> None:
    counts, n, budget = np.array([0.0, 1.0, 500.0, 999.0, 1000.0, 1200.0]), 1000.0, 4.0
    limits = upper_means(counts, n, budget)
    assert limits[-2:].tolist() == [1.0, 1.0]
    assert limits[0] == pytest.approx(1 - np.exp(-budget / n))
    x, r = counts[1:4] / n, limits[1:4]
    divergence = x * np.log(x / r) + (1 - x) * np.log((1 - x) / (1 - r))
    np.testing.assert_allclose(n * divergence, budget, rtol=1e-6)
    assert (n * divergence >= budget).all()


@pytest.mark.parametrize(("n", "others"), [(1, 5), (4, 9), (6, 0)])
def test_split_law_is_hypergeometric(n: int, others: int) -> None:
    law = split_law(n, others)
    assert law.shape == (n + 1, others + 1)
    k, rest = np.indices(law.shape)
    np.testing.assert_allclose(law, stats.hypergeom.pmf(k, n + others, n, k + rest), rtol=1e-12)
