"""Models of the malicious frequencies f~_Y: what an attacker's reports would be estimated as.

If a share pi(v) of the malicious reports supports item v, f~_Y(v) is (pi(v) - q)/(p - q) in
expectation, and sums to (k - qd)/(p - q), where k = sum pi is the mean number of items a report
supports. `paper` and `exact` assume k = 1, so that the sum is S = (1 - qd)/(p - q) (paper, V-C):
GRR reports always support one item; OUE and OLH reports crafted to support many do not, and no OLH
report can be made to over a large domain. `padded` and `searched` are the crafted reports of Cao et
al. (USENIX Security 2021).
"""

import functools
import math
from collections.abc import Callable

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.protocols import GRR, OLH, OUE, FrequencyOracle
from ldprecover.types import FloatArray

__all__ = [
    "MALICIOUS_MODELS",
    "SEARCH",
    "custom",
    "exact_targeted",
    "expected_hits",
    "padded_targeted",
    "paper_targeted",
    "searched_targeted",
    "untargeted",
]

SEARCH = 1_000
"""Seeds that each malicious user tries in the model searched, as Cao et al. have it."""

_MOST_TARGETS = 200  # for which expected_hits is computed


def untargeted(oracle: FrequencyOracle, poisoned: FloatArray) -> FloatArray:
    """Return f'_Y: S spread evenly over D1 = {v : f~_Z(v) > 0}, zero elsewhere (paper, V-D).

    Where no estimate is positive there is nothing to spread it over, and it is zero everywhere.
    """
    suspected = poisoned > 0  # D1
    malicious = np.zeros(oracle.domain_size)
    if suspected.any():
        malicious[suspected] = oracle.malicious_sum / np.count_nonzero(suspected)
    return malicious


def paper_targeted(oracle: FrequencyOracle, targets: tuple[int, ...]) -> FloatArray:
    """Return f*_Y as printed: -qd/(|D'|(p-q)) on each item of D' = D \\ T, the rest of S on T (paper, V-D).

    A target gets (S + qd/(p-q))/r = 1/(r(p-q)). The printed total over D' counts all d items where
    D' has d - r; `exact_targeted` counts d - r.
    """
    d, r, gap = oracle.domain_size, len(targets), oracle.p - oracle.q
    malicious = np.full(d, -oracle.q * d / ((d - r) * gap))
    malicious[list(targets)] = 1 / (r * gap)
    return malicious


def exact_targeted(oracle: FrequencyOracle, targets: tuple[int, ...]) -> FloatArray:
    """Return f~_Y of reports that each support one target drawn evenly: pi is 1/r on T and 0 elsewhere.

    It sums to S, as the printed form does.
    """
    return _expected(oracle, targets, on=1 / len(targets), off=0.0)


def padded_targeted(oracle: FrequencyOracle, targets: tuple[int, ...]) -> FloatArray:
    """Return f~_Y of OUE reports with ones on all targets and on random others, L = floor(p + (d-1)q) ones in all.

    pi is 1 on T and (L - r)/(d - r) elsewhere, or 0 where r >= L. Raises ParameterError for another protocol.
    """
    if not isinstance(oracle, OUE):
        raise ParameterError(f"malicious_model padded is of oue reports; {oracle.protocol} has no bits to pad")
    d, r = oracle.domain_size, len(targets)
    ones = math.floor(oracle.honest_support_size)
    return _expected(oracle, targets, on=1.0, off=max(ones - r, 0) / (d - r))


def searched_targeted(oracle: FrequencyOracle, targets: tuple[int, ...]) -> FloatArray:
    """Return f~_Y of OLH reports with the best of 1,000 random seeds: the one with most targets in one bucket.

    pi is c/r on T, c = `expected_hits`, and 1/g elsewhere. Raises ParameterError for another
    protocol, and for more than 200 targets.
    """
    if not isinstance(oracle, OLH):
        raise ParameterError(f"malicious_model searched is of olh reports; {oracle.protocol} has no seeds to search")
    r = len(targets)
    if r > _MOST_TARGETS:
        raise ParameterError(f"malicious_model searched takes at most {_MOST_TARGETS} targets, not {r}")
    return _expected(oracle, targets, on=expected_hits(r, oracle.hash_range, SEARCH) / r, off=oracle.q)


def custom(oracle: FrequencyOracle, support: FloatArray | None) -> FloatArray:
    """Return f~_Y of reports of which a share support[v] supports v. Raises ParameterError for one that cannot be."""
    if support is None:
        raise ParameterError("malicious_model custom needs support, the share of malicious reports for each item")
    if isinstance(oracle, GRR) and not math.isclose(support.sum(), 1, abs_tol=1e-6):
        raise ParameterError(f"support must sum to 1, for a grr report supports one item; it sums to {support.sum():g}")
    return (support - oracle.q) / (oracle.p - oracle.q)


@functools.lru_cache(maxsize=64)
def expected_hits(r: int, g: int, search: int) -> float:
    """Return the mean, over `search` random seeds, of the most of r items that one seed puts in one of g buckets.

    P(no bucket holds more than k) is the coefficient of x^r in (sum_{j<=k} Poisson_{r/g}(j) x^j)^g over
    Poisson_r(r): r balls in g urns are g independent Poisson numbers, given their sum. The best of
    s seeds is at most k with that to the power s. O(r^3 log g).
    """
    mean = 0.0
    total = math.exp(r * math.log(r) - r - math.lgamma(r + 1))  # Poisson_r(r)
    law = np.array([math.exp(j * math.log(r / g) - r / g - math.lgamma(j + 1)) for j in range(r + 1)])
    for k in range(r):
        at_most = _power(np.where(np.arange(r + 1) <= k, law, 0.0), g)[r] / total
        mean += 1 - min(at_most, 1.0) ** search
    return mean


def _power(series: FloatArray, exponent: int) -> FloatArray:
    """Return a power of a polynomial, cut off after its own degree."""
    size = series.size
    result = np.zeros(size)
    result[0] = 1
    while exponent:
        if exponent & 1:
            result = np.convolve(result, series)[:size]
        series = np.convolve(series, series)[:size]
        exponent >>= 1
    return result


def _expected(oracle: FrequencyOracle, targets: tuple[int, ...], *, on: float, off: float) -> FloatArray:
    support = np.full(oracle.domain_size, off)  # pi
    support[list(targets)] = on
    return (support - oracle.q) / (oracle.p - oracle.q)


MALICIOUS_MODELS: dict[str, Callable[[FrequencyOracle, tuple[int, ...]], FloatArray] | None] = {
    "paper": paper_targeted,
    "exact": exact_targeted,
    "padded": padded_targeted,
    "searched": searched_targeted,
    "custom": None,
}
"""Models of an attack on known targets, but for `custom`, which is given the shares themselves.

Without targets `untargeted` is the only other one: paper and exact mean it, padded and searched are refused.
"""
