"""Comparisons of what was drawn with its law, which a right law fails once in 10^9 for each number
compared.
"""

import math

import numpy as np

from ldprecover.laws.distributions import chi_squared_quantile
from ldprecover.types import FloatArray, Int64Array

RATE = 1e-9
_LEAST_EXPECTED = 100.0  # of a bin of a chi-squared test
_SKEWED = 1.2  # what the skewness of counts of so many adds to its quantile so far out


def bernstein(probability: float, n: int) -> float:
    """Return how far n independent bits of this probability are together off their mean at most."""
    return bernstein_of(n * probability * (1 - probability))


def bernstein_of(variance: float) -> float:
    """Return the same of independent bits whose sum has this variance: t with t^2 = 2 L (v + t/3)
    (Bernstein).
    """
    least = math.log(2 / RATE)
    return least / 3 + math.sqrt(least**2 / 9 + 2 * least * max(variance, 0.0))


def assert_counts(counts: Int64Array, probabilities: FloatArray, n: int) -> None:
    """Assert that of n independent reports as many have each property as its probability says."""
    off = np.abs(counts - n * probabilities)
    allowed = np.array([bernstein(float(p), n) for p in probabilities])
    certain = (probabilities <= 0) | (probabilities >= 1)
    assert (off <= np.where(certain, 1e-6, allowed)).all(), (
        f"{counts} of {n}, not in the shares {probabilities}"
    )


def assert_close(found: float, expected: float) -> None:
    """Assert that two numbers are the same but for rounding."""
    assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9), f"{found}, not {expected}"


def assert_follows(observed: Int64Array, law: FloatArray) -> None:
    """Assert by Pearson's chi-squared that so many of each value were drawn from the law; rare
    values are joined.
    """
    assert not observed[law <= 0].any(), "values that the law does not have"
    expected = law * observed.sum()
    often = expected >= _LEAST_EXPECTED
    pairs = [*zip(observed[often].tolist(), expected[often].tolist(), strict=True)]
    rare = (float(observed[~often].sum()), float(expected[~often].sum()))
    if rare[1] >= _LEAST_EXPECTED or not pairs:
        pairs.append(rare)
    else:
        pairs[-1] = (pairs[-1][0] + rare[0], pairs[-1][1] + rare[1])
    score = sum((found - e) ** 2 / e for found, e in pairs)
    freedom = max(1, len(pairs) - 1)
    most = _SKEWED * chi_squared_quantile(1 - RATE, freedom)
    assert score <= most, (
        f"chi-squared {score:.4g}, which is at most {most:.4g} with {freedom} degrees of freedom"
    )
