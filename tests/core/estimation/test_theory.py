"""Lemmas 1 and 2, Theorem 1, and the Berry-Esseen bounds against exact distributions."""

from itertools import combinations
from typing import Any, Literal

import numpy as np
import pytest
from scipy import stats
from tests.core.estimation.normal_laws import NormalLaw, genuine, malicious, normal_law
from tests.core.protocols.listed import listed

from ldprecover import GRR, OLH, OUE, FrequencyOracle, ParameterError, frequency_oracle
from ldprecover.estimation.theory import worst_change
from ldprecover.protocols import PROTOCOLS

SMALL = [GRR(0.5, 4), GRR(3, 4), OUE(0.5, 4), OUE(2, 4), OLH(0.5, 4, 3), OLH(2, 4, 9)]
small_oracles = pytest.mark.parametrize(
    "oracle", SMALL, ids=lambda o: f"{o.protocol}-eps{o.epsilon:g}"
)


def sum_pmf(groups: list[tuple[int, float]]) -> np.ndarray:
    """Return the exact law of a sum of independent binomials (number, probability)."""
    pmf = np.ones(1)
    for number, probability in groups:
        pmf = np.convolve(pmf, stats.binom.pmf(np.arange(number + 1), number, probability))
    return pmf


def estimate_law(
    oracle: FrequencyOracle, groups: list[tuple[int, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact law of the count, and the frequency estimated from each count."""
    pmf, n = sum_pmf(groups), sum(number for number, _ in groups)
    return pmf, (np.arange(pmf.size) / n - oracle.q) / (oracle.p - oracle.q)


def moments(oracle: FrequencyOracle, groups: list[tuple[int, float]]) -> tuple[float, float]:
    """Return mean and variance of the frequency estimated from the exact law of the count."""
    pmf, values = estimate_law(oracle, groups)
    mean = (pmf * values).sum()
    return float(mean), float((pmf * (values - mean) ** 2).sum())


def cdf_distance(
    oracle: FrequencyOracle, groups: list[tuple[int, float]], law: NormalLaw, v: int
) -> float:
    """Return the greatest distance between the exact cdf of the estimate and the law's normal cdf.

    The exact cdf is a staircase and the normal cdf rises, so the greatest distance is at a step,
    just before it or at it.
    """
    pmf, values = estimate_law(oracle, groups)
    normal = stats.norm.cdf(values, law.mean[v], np.sqrt(law.variance[v]))
    at = np.cumsum(pmf)
    before = at - pmf
    return float(max(np.abs(normal - at).max(), np.abs(normal - before).max()))


@small_oracles
@pytest.mark.parametrize("m", [1, 7, 200])
def test_malicious_law_matches_the_exact_binomial(oracle: FrequencyOracle, m: int) -> None:
    support = np.array([0.003, 0.3, 0.5, 0.97])
    assert_exact(
        oracle, normal_law(oracle, m, malicious(support, m)), [[(m, pi)] for pi in support]
    )


def test_bounds_fall_with_the_square_root_of_n(oracle: FrequencyOracle) -> None:
    """The rate of Theorems 4 and 5: a hundred times the reports, a tenth of the error."""
    d = oracle.domain_size
    f = np.full(d, 1 / d)
    for users in ("fixed", "sampled"):
        few, many = (
            normal_law(oracle, n, genuine(oracle, f, n, users)).error for n in (10**4, 10**6)
        )
        np.testing.assert_allclose(many, few / 10, rtol=1e-9)
    few, many = (
        normal_law(oracle, m, malicious(np.full(d, 0.25), m)).error for m in (10**4, 10**6)
    )
    np.testing.assert_allclose(many, few / 10, rtol=1e-9)


def test_moments_are_of_one_report() -> None:
    """With moments of the mean in their place the rate would be counted twice, or not at all.

    A fair coin has rho = sigma^3, so the bound is 0.33554 * 1.415 / sqrt(m): 0.0475 at m = 100,
    just over the exact distance 0.0398 of Binomial(100, 1/2) from its normal law.
    """
    law = normal_law(GRR(1, 2), 100, malicious(np.full(2, 0.5), 100))
    assert law.error == pytest.approx([0.33554 * 1.415 / 10] * 2)
    assert cdf_distance(GRR(1, 2), [(100, 0.5)], law, 0) == pytest.approx(0.0398, abs=5e-5)


def test_certain_support_has_no_variance() -> None:
    law = normal_law(OUE(1, 3), 50, malicious(np.array([0, 1, 0.5]), 50))
    assert law.variance[:2].tolist() == law.error[:2].tolist() == [0, 0]
    assert law.variance[2] > 0


@pytest.mark.parametrize("items", [1, 2, 4, 5])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_worst_change_is_of_the_extreme_reports(protocol: str, items: int) -> None:
    """Of all reports and all sets of this many of five items; HR and LLH support no fewer."""
    own, beta = {"ss": 3, "olh": 3, "llh": 3}.get(protocol), 0.1
    oracle = frequency_oracle(protocol, 1.0, 5, own)
    supports, _ = listed(oracle)
    hits = np.array([supports[:, each].sum(axis=1) for each in combinations(range(5), items)])
    changes = beta * ((hits - items * oracle.q) / (oracle.p - oracle.q) - 0.3)
    worst = worst_change(oracle, beta, items, 0.3)
    assert worst.rise == pytest.approx(changes.max())
    is_bound = protocol in ("hr", "llh") and items > 3
    assert worst.fall >= -changes.min() if is_bound else worst.fall == pytest.approx(-changes.min())
    anywhere = worst_change(oracle, beta, items)
    assert anywhere.rise == pytest.approx(worst.rise + 0.03)
    assert anywhere.fall == pytest.approx(worst.fall + 0.07)


@pytest.mark.parametrize(
    "arguments",
    [
        (-0.1, 1),
        (1.1, 1),
        (0.1, 0),
        (0.1, 13),
        (0.1, True),
        (0.1, 1.5),
        (0.1, 1, 2.0),
        (0.1, 1, -1.0),
    ],
)
def test_worst_change_rejects_bad_arguments(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ParameterError):
        worst_change(GRR(1.0, 12), *arguments)


@small_oracles
@pytest.mark.parametrize("users", ["fixed", "sampled"])
def test_laws_match_the_exact_distributions(
    oracle: FrequencyOracle, users: Literal["fixed", "sampled"]
) -> None:
    f, support = np.array([0.0, 0.1, 0.3, 0.6]), np.array([1.0, 0.5, 0.2, 0.0])
    for n, m in ((10, 3), (200, 40)):
        groups = genuine_groups(oracle, f, n, users)
        reports = genuine(oracle, f, n, users)
        assert_exact(oracle, normal_law(oracle, n, reports), groups)
        reports += malicious(support, m)
        poisoned = [[*each, (m, pi)] for each, pi in zip(groups, support, strict=True)]
        assert_exact(oracle, normal_law(oracle, n + m, reports), poisoned)


def genuine_groups(
    oracle: FrequencyOracle, f: np.ndarray, n: int, users: str
) -> list[list[tuple[int, float]]]:
    """Return, for each item, the numbers of reports that support it with equal probabilities."""
    p, q = oracle.p, oracle.q
    if users == "sampled":
        return [[(n, q + share * (p - q))] for share in f]
    return [[(round(n * share), p), (n - round(n * share), q)] for share in f]


def assert_exact(
    oracle: FrequencyOracle, law: NormalLaw, groups_of_items: list[list[tuple[int, float]]]
) -> None:
    """Assert mean and variance of each item, and that the bound of the normal law's error holds."""
    for v, groups in enumerate(groups_of_items):
        mean, variance = moments(oracle, groups)
        assert law.mean[v] == pytest.approx(mean, abs=1e-9)
        assert law.variance[v] == pytest.approx(variance)
        assert cdf_distance(oracle, groups, law, v) <= law.error[v]
