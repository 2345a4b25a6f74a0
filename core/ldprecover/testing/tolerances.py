"""Comparisons of samples with their law; a right law fails once in 10^9 compared numbers."""

import math

import numpy as np

from ldprecover.distributions import chi_squared_quantile
from ldprecover.types import FloatArray, Int64Array

RATE = 1e-9
_LEAST_EXPECTED = 100.0  # of a bin of a chi-squared test
_SKEWED = 1.2  # allowance for the skewness of counts at a quantile this far out


def bernstein(probability: float, n: int) -> float:
    """Return the deviation from the mean that n independent bits of this probability do not exceed.

    They do once in 10^9. One that is off by 1.4 times as much is missed once in 100.
    """
    return bernstein_of(n * probability * (1 - probability))


def bernstein_of(variance: float) -> float:
    """Return the same for independent bits whose sum has this variance.

    It is t with t^2 = 2 L (v + t/3) (Bernstein).
    """
    least = math.log(2 / RATE)
    return least / 3 + math.sqrt(least**2 / 9 + 2 * least * max(variance, 0.0))


def assert_counts(counts: Int64Array, probabilities: FloatArray, n: int) -> None:
    """Assert that each property holds for its share of n independent reports."""
    off = np.abs(counts - n * probabilities)
    allowed = np.array([bernstein(float(p), n) for p in probabilities])
    certain = (probabilities <= 0) | (probabilities >= 1)
    assert (off <= np.where(certain, 1e-6, allowed)).all(), (
        f"{counts} of {n}, not in the shares {probabilities}"
    )


def assert_close(actual: float, expected: float) -> None:
    """Assert that two numbers are equal up to rounding."""
    assert math.isclose(actual, expected, rel_tol=1e-9, abs_tol=1e-9), f"{actual}, not {expected}"


def assert_follows(observed: Int64Array, law: FloatArray) -> None:
    """Assert by Pearson's chi-squared that n observed values follow the law; rare ones are joined.

    With 10 degrees of freedom a law that is off by sqrt(115/n) of itself is missed once in 100.
    """
    assert not observed[law <= 0].any(), "values of probability zero were drawn"
    expected = law * observed.sum()
    often = expected >= _LEAST_EXPECTED
    pairs = [*zip(observed[often].tolist(), expected[often].tolist(), strict=True)]
    rare = (float(observed[~often].sum()), float(expected[~often].sum()))
    if rare[1] >= _LEAST_EXPECTED or not pairs:
        pairs.append(rare)
    else:
        pairs[-1] = (pairs[-1][0] + rare[0], pairs[-1][1] + rare[1])
    score = sum((count - e) ** 2 / e for count, e in pairs)
    freedom = max(1, len(pairs) - 1)
    limit = _SKEWED * chi_squared_quantile(1 - RATE, freedom)
    assert score <= limit, (
        f"chi-squared {score:.4g}, which is at most {limit:.4g} with {freedom} degrees of freedom"
    )
