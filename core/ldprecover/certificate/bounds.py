"""Limits of means and frequencies from counts to which others may have added."""

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.types import FloatArray

_STEPS = 6  # of Newton's method; each iterate is a valid limit, since the divergence is convex
_OUTWARD = 1e-9  # of a limit's distance, for rounding
_TINY = 1e-300


def upper_means(counts: FloatArray, n: float, log_tail: float) -> FloatArray:
    """Return the largest mean probability r of n or more independent events, given their counts.

    The events may have different probabilities, and at most `counts` of them happened. Each limit
    is exceeded with probability exp(-log_tail) at most: it is the largest r with
    n KL(counts/n || r) <= log_tail (Hoeffding 1963, Theorem 1). It is 1 where counts >= n.

        upper_means(np.array([500.0]), 1000, np.log(40))  # array([0.5428...])
    """
    limits = np.ones(counts.shape)
    inside = counts < n
    x, budget = counts[inside] / n, log_tail / n
    # Start from the least of three limits by inequalities; the second and third are near 1.
    entropy = -x * np.log(np.where(x > 0, x, 1.0))
    r = np.minimum(
        x + np.minimum(np.sqrt(2 * x * budget) + 2 * budget, np.sqrt(2 * (1 - x) * budget)),
        1 - (1 - x) * np.exp(-(budget + entropy) / (1 - x)),
    )
    far = r < 1  # the others round to 1
    x_far, r_far = x[far], r[far]
    for _ in range(_STEPS):
        gap = r_far - x_far
        hits = x_far * np.log1p(np.where(x_far > 0, -gap / r_far, 0.0))
        divergence = hits + (1 - x_far) * np.log1p(gap / (1 - r_far))
        slope = gap / (r_far * (1 - r_far))
        r_far = r_far - np.maximum(divergence - budget, 0.0) / np.maximum(slope, _TINY)
    r[far] = r_far
    limits[inside] = np.minimum(x + (r - x) * (1 + _OUTWARD), 1.0)
    return limits


def frequency_limits(
    oracle: FrequencyOracle, supporting: FloatArray, others: FloatArray, n: float, log_tail: float
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper limits of the frequencies of items among n honest users.

    At most `supporting` honest reports support an item, and at most `others` do not.
    """
    p, q = oracle.p, oracle.q
    lower = (1 - q - upper_means(others, n, log_tail)) / (p - q)
    return lower, (upper_means(supporting, n, log_tail) - q) / (p - q)
