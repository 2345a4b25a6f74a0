"""Distributions of numbers of reports and items, with limits of means, quantiles and tails.

Quantiles and tails of skewed distributions use the cube root of Wilson and Hilferty (1931): they
are close, or too far out.
"""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from ldprecover.types import ComplexArray, FloatArray, Int64Array

_WIDTH = 20  # standard deviations of a sum; the probability beyond is below 1e-80
_SYMMETRIC = 1e-3  # a law of smaller skewness is taken as normal
_NEWTON_STEPS = 6  # each iterate is a valid limit, since the divergence is convex
_OUTWARD = 1e-9  # of a limit's distance, for rounding
_TINY = 1e-300
_FAR = 30.0  # standard deviations, beyond which a tail is by its asymptotic series


def binomial_law(n: int, p: float) -> FloatArray:
    """Return P(X = k) for k from 0 to n, where X is Binomial(n, p) and 0 < p < 1."""
    k, log_factorial = np.arange(n + 1), log_factorials(n)
    log_law = (
        log_factorial[n]
        - log_factorial[k]
        - log_factorial[n - k]
        + k * math.log(p)
        + (n - k) * math.log1p(-p)
    )
    return np.exp(log_law)


def hypergeometric_law(d: int, r: int, k: int) -> FloatArray:
    """Return P(X = j) for j from 0 to r: how many of r of d items are among k random ones."""
    law = np.zeros(r + 1)
    for j in range(max(0, k - (d - r)), min(r, k) + 1):
        law[j] = math.exp(log_choose(r, j) + log_choose(d - r, k - j) - log_choose(d, k))
    return law


def split_law(n: int, others: int) -> FloatArray:
    """Return P(k, l): of k + l random elements of two sets, k are of the first, l of the second.

    The sets have n and `others` elements; the shape is (n + 1, others + 1).
    """
    log_factorial = log_factorials(n + others)
    k, rest = np.arange(n + 1)[:, None], np.arange(others + 1)

    def log_ways(n: int, k: Int64Array) -> FloatArray:
        return log_factorial[n] - log_factorial[k] - log_factorial[n - k]

    log_law = log_ways(n, k) + log_ways(others, rest) - log_ways(n + others, k + rest)
    return np.exp(log_law)


def log_factorials(n: int) -> FloatArray:
    """Return ln k! for k from 0 to n."""
    return np.append(0.0, np.cumsum(np.log(np.arange(1, n + 1))))


def log_choose(n: int, k: int) -> float:
    """Return the logarithm of the number of sets of k of n elements."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@lru_cache(maxsize=1024)
def binomial_threshold(n: int, p: float, rate: float) -> int:
    """Return the smallest t with P(Binomial(n, p) >= t) <= rate, for a rate of at least 1e-12."""
    if p <= 0:
        return 1
    low = max(0, math.floor(n * p))
    high = min(n, math.ceil(n * p + 60 + 40 * math.sqrt(n * p)))  # P(X > high) < 1e-12
    k = np.arange(low, high + 1)
    log_products = np.array([math.lgamma(x + 1) + math.lgamma(n - x + 1) for x in k])
    log_law = math.lgamma(n + 1) - log_products + k * math.log(p) + (n - k) * math.log1p(-p)
    tail = np.cumsum(np.exp(log_law)[::-1])[::-1]
    within = np.flatnonzero(tail <= rate)
    return int(k[within[0]]) if within.size else n + 1


def sum_law(law: FloatArray, n: int) -> tuple[int, FloatArray]:
    """Return the law of the sum of n independent numbers that are j with probability law[j].

    Returns the first value and the probabilities from it on: of all values, or of those within 20
    standard deviations of the mean plus 20 times the number of values. It is the n-th power of the
    characteristic function of the centred number, 1 + u with u known to all digits, so the
    probabilities are right within 1e-12.
    """
    j = np.arange(law.size)
    mean = float(law @ j)
    deviation = math.sqrt(max(float(law @ j**2) - mean**2, 0.0) * n)
    reach = math.ceil(_WIDTH * deviation + 20 * law.size)
    low, high = (
        max(0, math.floor(n * mean) - reach),
        min(n * (law.size - 1), math.ceil(n * mean) + reach),
    )
    size = high - low + 1
    angles = 2 * np.pi * np.arange(size // 2 + 1) / size
    u = np.zeros(angles.size, np.complex128)
    for value, share in enumerate(law):
        x = angles * (value - mean)
        u += share * (1j * np.sin(x) - 2 * np.sin(x / 2) ** 2)
    # log(1 + u) by its modulus and its argument: |1 + u|^2 = 1 + (2 Re u + |u|^2).
    with np.errstate(divide="ignore"):  # log of 0 where the characteristic function is 0
        modulus = np.log1p(np.maximum(2 * u.real + np.abs(u) ** 2, -1.0)) / 2
    argument = np.arctan2(u.imag, 1 + u.real)
    turned = n * argument + angles * (n * mean - low)
    spectrum = np.exp(n * modulus) * np.exp(-1j * turned)
    return low, np.maximum(np.fft.irfft(spectrum, size), 0.0)


def power(base: ComplexArray, exponent: int) -> ComplexArray:
    """Return the power of complex numbers by squaring, for an exponent of at least 1.

    numpy's own power takes ten times as long.
    """
    result: ComplexArray | None = None
    while True:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        base = base * base


def upper_means(counts: FloatArray, n: float, log_tail: float) -> FloatArray:
    """Return the largest mean probability r of n or more independent events, given their counts.

    The events may have different probabilities, and at most `counts` of them happened. Each limit
    is exceeded with probability exp(-log_tail) at most: it is the largest r with
    n KL(counts/n || r) <= log_tail (Hoeffding 1963, Theorem 1). It is 1 where counts >= n.

        upper_means(np.array([500.0]), 1000, np.log(40))  # array([0.5428...])
    """
    x, budget = np.minimum(counts / n, 1.0), log_tail / n
    # Start from the least of three limits by inequalities; the second and third are near 1.
    entropy = -x * np.log(np.where(x > 0, x, 1.0))
    limits = np.minimum(
        x + np.minimum(np.sqrt(2 * x * budget) + 2 * budget, np.sqrt(2 * (1 - x) * budget)),
        1 - (1 - x) * np.exp(-(budget + entropy) / np.where(x < 1, 1 - x, 1.0)),
    )
    far = limits < 1  # the others are 1, or round to it
    x, r = x[far], limits[far]
    for _ in range(_NEWTON_STEPS):
        gap = r - x
        hits = x * np.log1p(np.where(x > 0, -gap / r, 0.0))
        divergence = hits + (1 - x) * np.log1p(gap / (1 - r))
        beyond = np.maximum(divergence - budget, 0.0)
        if not beyond.any():
            break
        slope = gap / (r * (1 - r))
        r = r - beyond / np.maximum(slope, _TINY)
    limits[far] = np.minimum(x + (r - x) * (1 + _OUTWARD), 1.0)
    return limits


def poisson_quantile(level: float, mean: float) -> int:
    """Return the smallest k with P(Poisson(mean) <= k) >= level."""
    if not mean:
        return 0
    limit = math.ceil(mean + 40 * math.sqrt(mean) + 40)
    log_terms = np.cumsum(np.append(-mean, math.log(mean) - np.log(np.arange(1, limit + 1))))
    return int(np.searchsorted(np.cumsum(np.exp(log_terms)), level))


def chi_squared_normal(score: float, freedom: float) -> float:
    """Return the normal quantile at the level of a chi-squared value."""
    part = 2 / (9 * freedom)
    return (math.cbrt(score / freedom) - (1 - part)) / math.sqrt(part)


def chi_squared_quantile(level: float, freedom: float) -> float:
    """Return the chi-squared quantile; too large by 7 % at 3 degrees of freedom and 1 - 1e-6."""
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + NormalDist().inv_cdf(level) * math.sqrt(part)) ** 3)


def skewed_quantile(level: float, skewness: float) -> float:
    """Return the quantile of the gamma law of mean 0, variance 1 and this skewness (Pearson III).

    The skewness must be at least 0.
    """
    if skewness < _SYMMETRIC:
        return NormalDist().inv_cdf(level)
    freedom = 8 / skewness**2
    return (chi_squared_quantile(level, freedom) - freedom) / math.sqrt(2 * freedom)


def log_normal_tail(x: float) -> float:
    """Return ln P(Z >= x) of a standard normal Z, for any x."""
    if x < _FAR:
        return math.log(math.erfc(x / math.sqrt(2)) / 2)
    return -(x**2) / 2 - math.log(x * math.sqrt(2 * math.pi)) - 1 / x**2
