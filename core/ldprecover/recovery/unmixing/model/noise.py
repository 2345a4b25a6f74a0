"""The noise of unbiased estimates, given which items the users hold."""

import math

import numpy as np

from ldprecover.types import FloatArray

_STEP = math.log(1.1)
_LEAST = 0.1  # of q: malicious reports are taken to be nine tenths of all at the most
_CLEAR = 4  # standard deviations above 0 from which on an item is held by some users


def noise_sd(
    z: FloatArray, n: int, p: float, q: float, c0: float, *, fixed_size: bool = False
) -> FloatArray:
    """Return the standard deviation of the noise in each of the d estimates z of n reports.

    It is that of the perturbation alone, given what each user holds. `p` and `q` are what z was
    made with, `c0` the share of the reports that support an item which next to nobody holds; it is
    taken to be from q/10 to q. `fixed_size` says that every report supports the same number of
    items, so that all counts have one sum.

    Deviations are rounded to powers of 1.1 times that of frequency 0: few are distinct.
    """
    d = z.size
    c0 = min(max(c0, _LEAST * q), q)
    r = d / (d - 1) if fixed_size else 1.0
    none = c0 * (1 - c0)
    base = math.sqrt(none * r / n) / (p - q)
    # V = [c0(1-c0) + z (p(1-p) - q(1-q))] r/n/(p-q)^2, z clipped into [0, 1]. What may be noise is
    # taken for 0: were its own noise the measure of an estimate's noise, low and high ones would
    # not fit one law.
    held = np.where(z > _CLEAR * base, np.minimum(z, 1.0), 0.0)
    variance = np.maximum(none + held * (p * (1 - p) - q * (1 - q)), _LEAST * none)
    levels = np.round(np.log(np.sqrt(variance / none)) / _STEP)
    sd: FloatArray = base * np.exp(_STEP * levels)
    return sd
