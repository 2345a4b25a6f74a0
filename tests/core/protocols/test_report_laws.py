"""The laws of single reports, where all of them can be listed."""

import numpy as np
import pytest
from scipy import stats

from ldprecover import frequency_oracle
from ldprecover.protocols import FrequencyOracle
from ldprecover.protocols.laws import IndependentSizes

D = 11


@pytest.fixture(params=["hr", "llh"])
def oracle(request: pytest.FixtureRequest) -> FrequencyOracle:
    return frequency_oracle(request.param, 1.3, D)


def law_by_item(oracle: FrequencyOracle) -> np.ndarray:
    """Return the probability of each report for a user of each item, from the supports."""
    supports = oracle.supports(np.arange(oracle.summary_size, dtype="<u4"))
    weights = np.where(supports.T, np.exp(oracle.epsilon), 1.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def test_report_law_is_linear_in_frequencies(oracle: FrequencyOracle) -> None:
    frequencies = np.random.default_rng(1).normal(size=D)
    law = oracle.laws.report_law(frequencies)
    assert law is not None
    np.testing.assert_allclose(law, frequencies @ law_by_item(oracle), rtol=0, atol=1e-12)


def test_item_means_are_those_of_the_law(oracle: FrequencyOracle) -> None:
    values = np.random.default_rng(1).normal(size=oracle.summary_size)
    means = oracle.laws.item_means(values)
    assert means is not None
    np.testing.assert_allclose(means, law_by_item(oracle) @ values, rtol=0, atol=1e-12)


def test_other_protocols_have_no_law_of_single_reports() -> None:
    laws = frequency_oracle("oue", 1, D).laws
    assert laws.report_law(np.full(D, 1 / D)) is None
    assert laws.item_means(np.ones(5)) is None


def test_sum_moments_are_the_largest_of_all_items(oracle: FrequencyOracle) -> None:
    laws, by_item, n = oracle.laws, law_by_item(oracle), 400
    supports = oracle.supports(np.arange(oracle.summary_size, dtype="<u4"))
    sums = oracle.estimate(supports.astype(float), 1).sum(axis=1)
    np.testing.assert_allclose(by_item @ sums, 1, atol=1e-9)
    variances, thirds = by_item @ (sums - 1) ** 2, by_item @ (sums - 1) ** 3
    moments = laws.largest_sum_moments(n)
    assert moments is not None
    variance, skewness = moments
    assert variance == pytest.approx(variances.max() / n)
    assert skewness >= np.abs(thirds / variances**1.5).max() / np.sqrt(n) - 1e-12


def test_sum_moments_of_a_law_of_sizes_are_its_own() -> None:
    oracle = frequency_oracle("oue", 1, D)
    variance = oracle.laws.size_law().variance / (400 * (oracle.p - oracle.q) ** 2)
    assert oracle.laws.largest_sum_moments(400) == (variance, 0.0)


def test_size_law_is_a_convolution() -> None:
    law = IndependentSizes(5, 0.5, 0.25).probabilities()
    assert law == pytest.approx(np.convolve([0.5, 0.5], stats.binom.pmf(np.arange(5), 4, 0.25)))
