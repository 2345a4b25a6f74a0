"""Frequencies of a tally, their standard errors and intervals."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ldprecover import GRR, Estimates, FrequencyOracle, ParameterError, Tally, frequency_oracle
from ldprecover.estimation.estimates import noise_note


def test_estimates_of_a_tally_are_the_oracles(
    oracle: FrequencyOracle, rng: np.random.Generator
) -> None:
    tally = Tally.of(oracle, oracle.perturb(rng.integers(0, oracle.domain_size, 1000), rng))
    estimates = Estimates.of(oracle, tally)
    assert estimates.n == 1000
    np.testing.assert_array_equal(
        estimates.frequencies, oracle.estimate(tally.counts(oracle), 1000)
    )
    np.testing.assert_array_equal(
        estimates.standard_errors, oracle.standard_errors(estimates.frequencies, 1000)
    )
    assert estimates.sum == pytest.approx(estimates.frequencies.sum())


@pytest.mark.parametrize("protocol", ["oue", "grr", "hr"])
def test_sum_has_the_largest_standard_error_of_its_law(protocol: str) -> None:
    oracle = frequency_oracle(protocol, 1.0, 16)
    tally = Tally.of(oracle, oracle.perturb(np.arange(16), np.random.default_rng(1)))
    moments = oracle.laws.largest_sum_moments(16)
    assert moments is not None
    estimates = Estimates.of(oracle, tally)
    assert estimates.sum_standard_error == pytest.approx(math.sqrt(moments[0]), abs=1e-12)


def test_estimates_are_vectors_of_the_same_items() -> None:
    one = Estimates(
        frequencies=np.array([0.5, 0.5]),
        standard_errors=np.array([0.0, 1.0]),
        n=1,
        sum_standard_error=None,
    )
    assert (one.n, one.sum) == (1, 1.0)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"n": 0}, "the number of reports, must be"),
        ({"standard_errors": np.array([0.0, -1e-9])}, "standard_errors must be at least 0"),
        ({"standard_errors": np.array([0.0])}, "one for each frequency"),
    ]
    for change, words in changes:
        with pytest.raises(ParameterError, match=words):
            replace(one, **change)


def test_intervals_are_normal_for_users_and_population() -> None:
    """The variance of a sample's estimate is that of one report, supported or not: exact."""
    oracle, n = GRR(4, 4), 100
    estimates = Estimates.of(oracle, Tally(np.array([0, 20, 30, 50]), n))
    f, errors = estimates.frequencies, estimates.standard_errors
    assert f[0] < 0
    low, high = estimates.interval()
    np.testing.assert_allclose([high - f, f - low], np.tile(1.959963985 * errors, (2, 1)))
    support = oracle.q + np.maximum(f, 0) * (oracle.p - oracle.q)
    exact = np.sqrt(support * (1 - support) / n) / (oracle.p - oracle.q)
    low, high = estimates.interval(0.9, of="population")
    np.testing.assert_allclose([high - f, f - low], np.tile(1.644853627 * exact, (2, 1)))
    with pytest.raises(ParameterError, match="users or population"):
        estimates.interval(of="people")  # type: ignore[arg-type]


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 2, float("nan")])
def test_confidence_is_between_0_and_1(confidence: float) -> None:
    oracle = GRR(1, 2)
    with pytest.raises(ParameterError, match="confidence"):
        Estimates.of(oracle, Tally(np.array([1, 1]), 2)).interval(confidence)


def test_no_report_and_another_domain_are_rejected() -> None:
    with pytest.raises(ParameterError, match="the number of reports, must be"):
        Estimates.of(GRR(1, 2), Tally.empty(2))
    with pytest.raises(ParameterError, match="of 3 items, not of 2"):
        Estimates.of(GRR(1, 2), Tally(np.array([1, 1, 0]), 2))


def test_notes_that_noise_hides_the_items() -> None:
    """Without an item that stands out of the noise of d: once in 1,000 rounds one does."""
    d, errors = 100, np.full(100, 0.5)
    highest = stats.norm.isf(1e-3 / d)
    for height, is_hidden in ((highest - 1e-6, True), (highest + 1e-6, False)):
        f = np.full(d, 0.1 - height / 2 / (d - 1))
        f[7] = 0.1 + height / 2
        assert (noise_note(f, errors) is not None) is is_hidden
    # The spread, sqrt(a^2 - mean square of the errors), is below their median, 1, or not.
    for a, is_hidden in ((math.sqrt(8) - 1e-6, True), (math.sqrt(8) + 1e-6, False)):
        note = noise_note(np.array([a, -a, a, -a]), np.array([1.0, 1.0, 1.0, 5.0]))
        assert (note is not None) is is_hidden
    oracle = frequency_oracle("oue", 0.2, 102)
    tally = Tally(np.full(102, 2_250), 5_000)
    (note,) = Estimates.of(oracle, tally).notes
    assert note.startswith("The noise exceeds what tells the items apart: noise 14 points, spread")


def test_noise_and_spread_have_two_digits() -> None:
    f = np.array([0.28, 0.24, 0.26, 0.22])
    assert noise_note(f, np.full(4, 0.04)) == (
        "The noise exceeds what tells the items apart: noise 4 points, spread 0 points."
    )
    assert noise_note(f, np.full(4, 0.02)) == (
        "The noise exceeds what tells the items apart: noise 2 points, spread 1 points."
    )
    assert noise_note(f, np.full(4, 0.0123)) is None


def test_numbers_without_a_variance_have_no_note() -> None:
    assert noise_note(np.array([1.7e308, 1.7e308]), np.array([1.0, 1.0])) is None
