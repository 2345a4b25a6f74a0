"""The laws of every protocol, by all its reports: the exact sums that estimates and proofs use."""

import numpy as np
import pytest
from tests.core.protocols.listed import listed

from ldprecover import FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.estimation.estimates import partial_sum_variance
from ldprecover.protocols import PROTOCOLS
from ldprecover.protocols.laws import HitLaw, IndependentSizes, Laws
from ldprecover.testing.tolerances import assert_follows

D = 6
OWN = {"ss": 3, "olh": 3, "llh": 3}
HISTOGRAMS = ("hr", "llh")


@pytest.fixture(params=PROTOCOLS)
def oracle(request: pytest.FixtureRequest) -> FrequencyOracle:
    return frequency_oracle(request.param, 1.3, D, OWN.get(request.param))


def variance(values: np.ndarray, law: np.ndarray) -> float:
    return float(law @ values**2 - (law @ values) ** 2)


def test_items_are_supported_with_p_and_q(oracle: FrequencyOracle) -> None:
    supports, law = listed(oracle)
    p_and_q = np.where(np.eye(D, dtype=bool), oracle.p, oracle.q)
    np.testing.assert_allclose(law @ supports, p_and_q, rtol=1e-12)
    laws, f = oracle.laws, np.arange(D) / 15
    np.testing.assert_allclose(laws.honest_support(f), f @ law @ supports, rtol=1e-12)
    assert laws.mean_size == pytest.approx(law[0] @ supports.sum(axis=1))


def test_sizes_have_their_law(oracle: FrequencyOracle) -> None:
    supports, law = listed(oracle)
    sizes = supports.sum(axis=1)
    if oracle.protocol in HISTOGRAMS:
        assert oracle.laws.sizes is None
        with pytest.raises(ParameterError, match="lacks a law of the number of items"):
            oracle.laws.size_law()
        return
    size_law = oracle.laws.size_law()
    for each in law:
        expected = np.bincount(sizes, each, D + 1)
        np.testing.assert_allclose(size_law.probabilities(), expected, atol=1e-15)
        assert size_law.variance == pytest.approx(variance(sizes, each), abs=1e-12)
    simulated = size_law.draw(10_000, np.random.default_rng(1))
    assert_follows(np.bincount(simulated, minlength=D + 1), size_law.probabilities())


@pytest.mark.parametrize("items", [[2], [1, 4], [0, 1, 2, 5]])
def test_hits_have_their_laws(oracle: FrequencyOracle, items: list[int]) -> None:
    """Of users who hold another item; given whether that is supported; and of the sum."""
    supports, law = listed(oracle)
    hits, r = supports[:, items].sum(axis=1), len(items)
    others = [v for v in range(D) if v not in items]
    expected = np.array([np.bincount(hits, law[v], r + 1) for v in others])
    hit_law = oracle.laws.hits
    assert hit_law is not None
    nonholder = hit_law.nonholder_law(np.array(items))
    if nonholder is not None:
        np.testing.assert_allclose(expected, np.tile(nonholder, (len(others), 1)), atol=1e-12)
        np.testing.assert_array_equal(oracle.laws.hits_of_others(np.array(items)), nonholder)
    is_alike = (np.ptp(expected, axis=0) < 1e-12).all()
    assert (nonholder is None) is (not is_alike if r < 3 else oracle.protocol in HISTOGRAMS)
    for own in (True, False):
        conditional_law = hit_law.other_items_law(r, own)
        assert (conditional_law is None) is (oracle.protocol in ("grr", *HISTOGRAMS))
        for v in others:
            if conditional_law is None:
                continue
            conditional = np.bincount(hits, law[v] * (supports[:, v] == own), r + 1)
            np.testing.assert_allclose(conditional_law, conditional / conditional.sum(), atol=1e-12)
    f, n = np.arange(1, D + 1) / 21, 10
    means = law @ hits
    if r > 1 and oracle.protocol in HISTOGRAMS:
        with pytest.raises(ParameterError, match="law of the sum of several estimates"):
            partial_sum_variance(oracle, r, 0.5, n)
        return
    noise = f @ np.array([variance(hits, each) for each in law])
    expected_variance = noise / n / (oracle.p - oracle.q) ** 2
    assert partial_sum_variance(oracle, r, f[items].sum(), n) == pytest.approx(expected_variance)
    assert means[items].min() > means[others].max()


def test_several_items_are_supported_together_within_the_bound(oracle: FrequencyOracle) -> None:
    supports, law = listed(oracle)
    joint = oracle.laws.joint_support
    if joint is None:
        return
    for z in range(1, 5):
        together = law @ supports[:, list(range(z))].all(axis=1)
        assert together.max() <= joint.bound(z) * (1 + 1e-9)
        if z < 3 or oracle.protocol not in ("llh", "olh"):
            assert together.max() == pytest.approx(joint.bound(z)) or oracle.protocol == "olh"


def test_likelihood_is_that_of_the_report(oracle: FrequencyOracle) -> None:
    """Up to a factor for each seed, under any frequencies."""
    items, rng = np.arange(D), np.random.default_rng(1)
    reports, likelihood = oracle.perturb(np.repeat(items, 100), rng), oracle.laws.log_likelihood
    assert likelihood is not None
    supports, law = listed(oracle)
    index = {each.tobytes(): i for i, each in enumerate(supports)}
    of_report = law[:, [index[each.tobytes()] for each in oracle.supports(reports)]]
    actual = np.exp([likelihood(reports, each) for each in np.eye(D)])
    factor = actual / of_report
    np.testing.assert_allclose(factor, np.tile(factor[0], (D, 1)), rtol=1e-9)
    if oracle.protocol not in ("olh", *HISTOGRAMS):
        np.testing.assert_allclose(factor, 1, rtol=1e-9)
    f = np.arange(1, D + 1) / 21
    np.testing.assert_allclose(np.exp(likelihood(reports, f)), f @ actual, rtol=1e-9)
    ratio = oracle.laws.likelihood_ratio
    of_items = law[:, None, :] / law[None]
    wrong = supports.T[:, None] & ~supports.T[None]
    assert ratio == pytest.approx(of_items[wrong].max())
    assert of_items[wrong].min() == pytest.approx(ratio) or oracle.protocol in ("oue", "sue")


@pytest.mark.parametrize("d", [2, 11])
@pytest.mark.parametrize("protocol", HISTOGRAMS)
def test_sums_over_all_reports(protocol: str, d: int) -> None:
    oracle = frequency_oracle(protocol, 1.3, d)
    supports = oracle.supports(np.arange(oracle.summary_size, dtype="<u4"))
    weights = np.where(supports.T, np.exp(1.3), 1.0)
    law = weights / weights.sum(axis=1, keepdims=True)
    rng, laws, n = np.random.default_rng(1), oracle.laws, 400
    frequencies, values = rng.normal(size=d), rng.normal(size=oracle.summary_size)
    report_law, means, moments = (
        laws.report_law(frequencies),
        laws.item_means(values),
        laws.largest_sum_moments(n),
    )
    assert report_law is not None
    assert means is not None
    assert moments is not None
    np.testing.assert_allclose(report_law, frequencies @ law, rtol=0, atol=1e-12)
    np.testing.assert_allclose(means, law @ values, rtol=0, atol=1e-12)
    sums = oracle.estimate(supports.astype(float), 1).sum(axis=1)
    np.testing.assert_allclose(law @ sums, 1, atol=1e-9)
    variances, thirds = law @ (sums - 1) ** 2, np.abs(law @ (sums - 1) ** 3)
    skewness = thirds.max() / variances.min() ** 1.5 / np.sqrt(n)
    assert moments == pytest.approx((variances.max() / n, skewness))


def test_sum_moments_of_a_law_of_sizes_are_its_own(oracle: FrequencyOracle) -> None:
    if oracle.protocol in HISTOGRAMS:
        return
    supports, law = listed(oracle)
    sums = oracle.estimate(supports.astype(float), 1).sum(axis=1)
    expected = pytest.approx((variance(sums, law[0]) / 400, 0.0), abs=1e-12)
    assert oracle.laws.largest_sum_moments(400) == expected
    assert oracle.laws.report_law(np.full(D, 1 / D)) is None or oracle.protocol == "grr"
    assert IndependentSizes(1, 0.4, 0.2).probabilities() == pytest.approx([0.6, 0.4])


def test_one_item_has_a_law_where_no_more_is_known() -> None:
    assert HitLaw(0.6, 0.2).nonholder_law(np.array([3])) == pytest.approx([0.8, 0.2])
    assert HitLaw(0.6, 0.2).nonholder_law(np.array([3, 4])) is None
    with pytest.raises(ParameterError, match="toy lacks a law of how many of several items"):
        Laws("toy", 5, 0.6, 0.2).hits_of_others(np.array([1]))
