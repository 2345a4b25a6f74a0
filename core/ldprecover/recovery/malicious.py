"""Models of the malicious frequencies f~_Y: what an attacker's reports would be estimated as.

All assume that each malicious report supports one item, so that the malicious frequencies sum to
S = (1 - qd)/(p - q) (paper, V-C). GRR reports always do; OUE and OLH reports crafted to support
many items do not, and no OLH report can be made to over a large domain.
"""

from collections.abc import Callable

import numpy as np

from ldprecover._types import FloatArray
from ldprecover.protocols import FrequencyOracle

__all__ = ["MALICIOUS_MODELS", "exact_targeted", "paper_targeted", "untargeted"]


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
    """Return E f~_Y(v) = (pi(v) - q)/(p - q) for reports that each support one target drawn evenly.

    pi is 1/r on the r targets and 0 elsewhere. It sums to S, as the printed form does.
    """
    support = np.zeros(oracle.domain_size)  # pi
    support[list(targets)] = 1 / len(targets)
    return (support - oracle.q) / (oracle.p - oracle.q)


MALICIOUS_MODELS: dict[str, Callable[[FrequencyOracle, tuple[int, ...]], FloatArray]] = {
    "paper": paper_targeted,
    "exact": exact_targeted,
}
"""Models of an attack on known targets. Without targets `untargeted` is the only one, and both names mean it."""
