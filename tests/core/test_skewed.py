"""Skewed laws beside scipy's."""

import pytest
from scipy import stats

from ldprecover._skewed import chi_squared_quantile, skewed_quantile, skewed_tail


@pytest.mark.parametrize("freedom", [3, 10, 40, 400])
@pytest.mark.parametrize("level", [0.9, 0.999, 1 - 1e-6])
def test_the_chi_squared_quantile_is_close_and_errs_outwards(freedom: int, level: float) -> None:
    assert 0.99 < chi_squared_quantile(level, freedom) / stats.chi2.ppf(level, freedom) < 1.08


@pytest.mark.parametrize("skewness", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("level", [0.9, 0.999, 1 - 1e-6])
def test_the_skewed_quantile_is_close(level: float, skewness: float) -> None:
    assert skewed_quantile(level, skewness) == pytest.approx(stats.pearson3.ppf(level, skewness), rel=0.05)


@pytest.mark.parametrize("skewness", [-1.0, -0.1, -1e-4, 0.0, 0.1, 1.0])
@pytest.mark.parametrize("z", [-3.0, -0.5, 0.0, 1.5, 3.0])
def test_the_skewed_tail_is_close(z: float, skewness: float) -> None:
    assert skewed_tail(z, skewness) == pytest.approx(stats.pearson3.sf(z, skewness), rel=0.25, abs=1e-3)
    assert skewed_tail(z, skewness) + skewed_tail(-z, -skewness) == pytest.approx(1)


@pytest.mark.parametrize("mean", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("least", [1e-3, 1e-6])
def test_far_out_the_tail_of_a_count_is_at_least_what_it_is(mean: float, least: float) -> None:
    """With half a count taken off. It may be some ten times too much, which is to err towards silence."""
    count = stats.poisson.isf(least, mean)
    exact = stats.poisson.sf(count - 1, mean)
    assert exact <= skewed_tail((count - 0.5 - mean) / mean**0.5, mean**-0.5) <= 50 * exact


def test_nothing_lies_beyond_the_end_of_the_law() -> None:
    assert skewed_tail(-3.0, 1.0) == 1
    assert skewed_tail(3.0, -1.0) == 0
