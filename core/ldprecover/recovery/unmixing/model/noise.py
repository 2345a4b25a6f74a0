"""The noise of unbiased estimates, given which items the users hold."""

import math

import numpy as np

from ldprecover.types import FloatArray

_STEP = math.log(1.1)  # deviations are rounded to powers of 1.1: few are distinct
_LEAST = 0.1  # least c0 in units of q: at most nine tenths of all reports are malicious
_CLEAR = 4  # standard deviations above 0 beyond which an item is certainly held by some users


def noise_sd(
    z: FloatArray, n: int, p: float, q: float, c0: float, *, fixed_size: bool = False
) -> FloatArray:
    """Return the standard deviation of the noise in each of the d estimates z of n reports.

    It is that of the perturbation alone, given what each user holds. z was estimated with `p` and
    `q`. `c0` is the share of reports that support an item which hardly anybody holds; it is clipped
    to [q/10, q]. `fixed_size` says that every report supports the same number of items, so that the
    counts have a fixed sum. Deviations are rounded to powers of 1.1 times that of frequency 0.
    """
    d = z.size
    c0 = min(max(c0, _LEAST * q), q)
    r = d / (d - 1) if fixed_size else 1.0
    none = c0 * (1 - c0)
    base = math.sqrt(none * r / n) / (p - q)
    # V = [c0(1-c0) + z (p(1-p) - q(1-q))] r/n/(p-q)^2, z clipped into [0, 1]. What may be noise is
    # taken as 0: otherwise the noise of an estimate would depend on its own value.
    frequency = np.where(z > _CLEAR * base, np.minimum(z, 1.0), 0.0)
    variance = np.maximum(none + frequency * (p * (1 - p) - q * (1 - q)), _LEAST * none)
    return base * rounded(np.sqrt(variance / none))


def rounded(factors: FloatArray) -> FloatArray:
    """Return factors of deviations, rounded to powers of 1.1: then few deviations are distinct."""
    powers: FloatArray = np.exp(_STEP * np.round(np.log(factors) / _STEP))
    return powers
