"""Harmony: numbers as two items."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldprecover import (
    ParameterError,
    RecoveryRequest,
    RoundParameters,
    Tally,
    frequency_oracle,
    recover,
)
from ldprecover.estimation.means import ITEMS, Mean, round_numbers

EPSILON = 0.5
ORACLE = frequency_oracle("grr", EPSILON, 2)
SCALE = (math.exp(EPSILON) + 1) / (math.exp(EPSILON) - 1)


def reports(numbers: np.ndarray, seed: int) -> Tally:
    rng = np.random.default_rng(seed)
    return Tally.of(ORACLE, ORACLE.perturb(round_numbers(numbers, rng), rng))


def test_only_grr_over_two_items_is_for_numbers() -> None:
    assert RoundParameters("grr", EPSILON, ITEMS).is_for_numbers
    assert not RoundParameters("grr", EPSILON, ("1", "-1")).is_for_numbers
    assert not RoundParameters("oue", EPSILON, ITEMS).is_for_numbers


def test_rounding_is_unbiased_and_keeps_the_ends() -> None:
    """The mean of n draws at x is within 6 of its standard deviations sqrt((1-x^2)/n) of x; false
    alarm 2e-9.
    """
    assert round_numbers([-1.0, 1.0] * 50).tolist() == [0, 1] * 50
    n, x = 200_000, 0.3
    mean = 2 * round_numbers(np.full(n, x), np.random.default_rng(1)).mean() - 1
    assert abs(mean - x) < 6 * math.sqrt((1 - x**2) / n)


@pytest.mark.parametrize("numbers", [[1.5], [math.nan], [-1.0000001], 0.5, ["x"], [[0.5]], None])
def test_numbers_outside_minus_one_to_one_are_rejected(numbers: object) -> None:
    with pytest.raises(ParameterError, match="from -1 to 1"):
        round_numbers(numbers)  # type: ignore[arg-type]


def test_mean_is_unbiased_and_its_standard_error_exact() -> None:
    """Over 400 rounds of n = 2,000: standardised means have mean 0 and variance 1.

    The numbers are all 0.4, where the standard error is exact up to the estimate in it. The mean of
    400 standard normals is within 6/sqrt(400), their variance within 1 +- 6 sqrt(2/399): false
    alarm below 1e-8.
    """
    x, n, rounds = 0.4, 2_000, 400
    means = [Mean.of(ORACLE, reports(np.full(n, x), seed)) for seed in range(rounds)]
    z = np.array([(mean.value - x) / mean.standard_error for mean in means])
    assert abs(z.mean()) < 6 / math.sqrt(rounds)
    assert abs(z.var(ddof=1) - 1) < 6 * math.sqrt(2 / (rounds - 1))
    low, high = means[0].interval(0.95)
    assert high - low == pytest.approx(2 * 1.959964 * means[0].standard_error)


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_the_mean_is_the_scaled_mean_of_the_reports(plus: int, n: int) -> None:
    tally = Tally(np.array([n - min(plus, n), min(plus, n)]), n)
    mean = Mean.of(ORACLE, tally)
    assert mean.value == pytest.approx(SCALE * (2 * min(plus, n) / n - 1))
    assert mean.standard_error >= math.sqrt((SCALE**2 - 1) / n) * (1 - 1e-12)


def test_invalid_means_are_rejected() -> None:
    with pytest.raises(ParameterError, match="the number of reports, must be"):
        Mean.of(ORACLE, Tally.empty(2))
    with pytest.raises(ParameterError, match="the 2 items"):
        Mean.of(frequency_oracle("grr", EPSILON, 3), Tally.empty(3))
    with pytest.raises(ParameterError, match="confidence"):
        Mean.of(ORACLE, Tally(np.array([1, 1]), 2)).interval(1)


def test_poisoned_mean_shifts_as_predicted_and_is_recovered() -> None:
    """The shift is beta(c - mu): within 6 standard errors, false alarm 2e-9; a recovered mean lies
    in [-1, 1].
    """
    n, m, mu = 95_000, 5_000, -0.2
    honest = reports(np.full(n, mu), 7)
    poisoned = honest + Tally(np.array([0, m]), m)
    beta = m / (n + m)
    mean = Mean.of(ORACLE, poisoned)
    assert abs(mean.value - (mu + beta * (SCALE - mu))) < 6 * mean.standard_error
    frequencies = ORACLE.estimate(poisoned.counts(ORACLE), poisoned.n)
    for targets in ((), (1,)):
        recovered = recover(
            ORACLE,
            frequencies,
            RecoveryRequest("ldprecover", eta=m / n, targets=targets, malicious_model="exact"),
        ).recovered
        assert -1 <= recovered[1] - recovered[0] <= 1
    # Told the target and the true eta, LDPRecover* is back at the mean: the exact model is exact
    # here.
    assert abs(recovered[1] - recovered[0] - mu) < 6 * mean.standard_error * (1 + m / n)
