"""Quantiles and tails of skewed laws, by the cube root of Wilson and Hilferty (1931): near, or else too far out."""

import math
from statistics import NormalDist

__all__ = ["chi_squared_quantile", "skewed_quantile", "skewed_tail"]

_SYMMETRIC = 1e-3  # a skewness below which a law is taken as normal


def chi_squared_quantile(level: float, freedom: float) -> float:
    """Return the chi-squared quantile; too large by 7 % at 3 degrees of freedom and 1 - 1e-6."""
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + NormalDist().inv_cdf(level) * math.sqrt(part)) ** 3)


def skewed_quantile(level: float, skewness: float) -> float:
    """Return the quantile of the gamma law of mean 0, variance 1 and this skewness, at least 0 (Pearson III)."""
    if skewness < _SYMMETRIC:
        return NormalDist().inv_cdf(level)
    freedom = 8 / skewness**2
    return (chi_squared_quantile(level, freedom) - freedom) / math.sqrt(2 * freedom)


def skewed_tail(z: float, skewness: float) -> float:
    """Return P(Z >= z) for the gamma law Z of mean 0, variance 1 and this skewness, which may be negative."""
    if abs(skewness) >= _SYMMETRIC:
        root = 6 / abs(skewness)
        cube = 1 + skewness * z / 2
        if cube <= 0:  # beyond the end of the law
            return 1.0 if skewness > 0 else 0.0
        z = math.copysign(1.0, skewness) * ((math.cbrt(cube) - 1) * root + 1 / root)
    return math.erfc(z / math.sqrt(2)) / 2
