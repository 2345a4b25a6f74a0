"""Frequencies of a tally, their standard errors and intervals."""

import math

import numpy as np
import pytest

from ldprecover import GRR, Estimates, FrequencyOracle, ParameterError, Tally, frequency_oracle
from ldprecover.estimation.estimates import noise_note
from ldprecover.reports import tally_sampler


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


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["oue", "grr", "hr", "llh"])
def test_sum_has_its_largest_standard_error(protocol: str, rng: np.random.Generator) -> None:
    """Items that nobody holds and held by all; 300 rounds of each, within 4 standard errors."""
    oracle, n = frequency_oracle(protocol, 1.0, 16), 500
    sums = []
    for shares in (np.full(16, 1 / 16), np.eye(16)[0], np.eye(16)[5]):
        tallies = [tally_sampler(oracle).population_tally(shares, n, rng) for _ in range(300)]
        estimates = [Estimates.of(oracle, tally) for tally in tallies]
        sums.append(np.std([each.sum for each in estimates]))
    error = estimates[0].sum_standard_error
    assert error is not None
    assert max(sums) == pytest.approx(error, rel=4 / math.sqrt(600), abs=1e-9)


def test_intervals_are_normal() -> None:
    oracle = GRR(1, 4)
    estimates = Estimates.of(oracle, Tally(np.array([10, 20, 30, 40]), 100))
    low, high = estimates.interval(0.95)
    np.testing.assert_allclose(
        high - estimates.frequencies, 1.959963985 * estimates.standard_errors
    )
    np.testing.assert_allclose(estimates.frequencies - low, 1.959963985 * estimates.standard_errors)


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


def test_intervals_cover_population_and_users(rng: np.random.Generator) -> None:
    """At epsilon 4 half of the variance is sampling; 2,000 rounds, within 4 standard errors of 95
    %.
    """
    oracle, n, rounds = GRR(4, 4), 500, 2_000
    f = np.array([0.4, 0.3, 0.2, 0.1])
    users_in, population_in, narrow_in = 0, 0, 0
    for _ in range(rounds):
        user_items = rng.multinomial(n, f)
        estimates = Estimates.of(oracle, tally_sampler(oracle).honest_tally(user_items, rng))
        low, high = estimates.interval()
        users_in += low[0] <= user_items[0] / n <= high[0]
        narrow_in += low[0] <= f[0] <= high[0]
        low, high = estimates.interval(of="population")
        population_in += low[0] <= f[0] <= high[0]
    tolerance = 4 * np.sqrt(0.95 * 0.05 / rounds) + 0.005  # the law is binomial, not normal
    assert users_in / rounds == pytest.approx(0.95, abs=tolerance)
    assert population_in / rounds == pytest.approx(0.95, abs=tolerance)
    assert narrow_in / rounds < 0.9
    with pytest.raises(ParameterError, match="users or population"):
        estimates.interval(of="people")  # type: ignore[arg-type]


def _round(
    shares: np.ndarray, protocol: str, epsilon: float, n: int, rng: np.random.Generator
) -> Estimates:
    oracle = frequency_oracle(protocol, epsilon, shares.size)
    return Estimates.of(oracle, tally_sampler(oracle).population_tally(shares, n, rng))


def _zipf(d: int) -> np.ndarray:
    shares = 1 / np.arange(1, d + 1)
    return np.asarray(shares / shares.sum())


@pytest.mark.parametrize("protocol", ["grr", "oue", "olh"])
def test_notes_that_noise_hides_the_items(protocol: str, rng: np.random.Generator) -> None:
    """5,000 users of 102 items at epsilon 0.2: a standard error of 14 points and more."""
    estimates = _round(_zipf(102), protocol, 0.2, 5_000, rng)
    noise = 100 * np.median(estimates.standard_errors)
    (note,) = estimates.notes
    assert note.startswith(
        f"The noise exceeds what tells the items apart: noise {noise:.0f} points"
    )


@pytest.mark.parametrize("d", [10, 100, 10_000])
@pytest.mark.parametrize("protocol", ["oue", "olh"])
def test_has_no_note_where_items_stand_out(protocol: str, d: int, rng: np.random.Generator) -> None:
    """The popular ones of 10,000 stand out, though the spread over all items is below the noise."""
    assert not _round(_zipf(d), protocol, 0.5, 1_000_000, rng).notes


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
