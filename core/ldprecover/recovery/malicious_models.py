"""Models of the malicious frequencies f~_Y: what an attacker's reports would be estimated as.

If a share pi(v) of the malicious reports supports item v, f~_Y(v) is (pi(v) - q)/(p - q) in
expectation for a pure protocol, and sums to (k - qd)/(p - q), where k = sum pi is the mean number
of items a report supports. `paper` and `exact` assume k = 1, so that the sum is
S = (1 - qd)/(p - q) (paper, V-C): GRR reports always support one item; OUE and OLH reports crafted
to support many do not, and no OLH report can be made to over a large domain. `padded` and
`searched` are the crafted reports of Cao et al. (USENIX Security 2021), of the protocols that name
them as their `crafted_model`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldprecover.crafting import Strategy, crafter_of
from ldprecover.errors import ParameterError
from ldprecover.items import items_in_words
from ldprecover.protocols import PROTOCOLS, FrequencyOracle, frequency_oracle
from ldprecover.protocols.laws import SIZES, required
from ldprecover.types import FloatArray

SEARCH = 1_000
"""Seeds that each malicious user tries in the model searched (Cao et al.)."""

TargetedModel = Callable[[FrequencyOracle, tuple[int, ...]], FloatArray]
"""Returns f~_Y of an attack on some targets."""

_COARSEST = 0.025  # largest standard error of beta: 4 of them are a tenth of all reports
_MOST_TARGETS = 200  # in the model searched: the mean number of hits takes r transforms


def paper_targeted(oracle: FrequencyOracle, targets: tuple[int, ...]) -> FloatArray:
    """Return f*_Y as printed: -qd/(|D'|(p-q)) on each item of D' = D \\ T, the rest of S on T
    (paper, V-D).

    A target gets (S + qd/(p-q))/r = 1/(r(p-q)). The printed total over D' counts all d items where
    D' has d - r; `exact_targeted` counts d - r.
    """
    d, r, gap = oracle.domain_size, len(targets), oracle.p - oracle.q
    malicious = np.full(d, -oracle.q * d / ((d - r) * gap))
    malicious[list(targets)] = 1 / (r * gap)
    return malicious


def exact_targeted(oracle: FrequencyOracle, targets: tuple[int, ...]) -> FloatArray:
    """Return f~_Y of reports that each support one target drawn evenly: pi is 1/r on T and 0
    elsewhere.

    It sums to S, as the printed form does.
    """
    support = np.zeros(oracle.domain_size)  # pi
    support[list(targets)] = 1 / len(targets)
    return oracle.estimate(support, 1)


def _crafted(model: str, missing: str) -> TargetedModel:
    """Return the function that gives f~_Y of the reports that crafters of this model craft.

    It raises ParameterError for a protocol whose crafted reports are others, which is `missing`.
    """

    def crafted(oracle: FrequencyOracle, targets: tuple[int, ...]) -> FloatArray:
        crafter = crafter_of(oracle)
        if crafter.model != model:
            protocols = " and ".join(
                name for name in PROTOCOLS if _model_of(name, oracle.domain_size) == model
            )
            raise ParameterError(
                f"malicious_model {model} is of {protocols} reports; {oracle.protocol} has "
                f"{missing}"
            )
        r = len(targets)
        if model == "searched" and r > _MOST_TARGETS:
            raise ParameterError(
                f"malicious_model searched takes at most {_MOST_TARGETS} targets, not {r}"
            )
        included = np.zeros(oracle.domain_size)
        included[list(targets)] = 1.0
        return oracle.estimate(crafter.crafted_support(included, r, Strategy(search=SEARCH)), 1)

    return crafted


def custom(oracle: FrequencyOracle, support: FloatArray | None) -> FloatArray:
    """Return f~_Y of reports of which a share support[v] supports v. Raises ParameterError for one
    that cannot be.
    """
    if support is None:
        raise ParameterError(
            "malicious_model custom needs support, the share of malicious reports for each item"
        )
    size = oracle.fixed_size
    if size is not None and not math.isclose(support.sum(), size, abs_tol=1e-6):
        raise ParameterError(
            f"support must sum to {size}, for a {oracle.protocol} report supports "
            f"{items_in_words(size)}; it sums to {support.sum():g}"
        )
    return oracle.estimate(support, 1)


def _model_of(protocol: str, d: int) -> str | None:
    """Return the malicious model that a protocol's crafted reports follow."""
    return crafter_of(frequency_oracle(protocol, 1.0, d)).model


MALICIOUS_MODELS: dict[str, TargetedModel | None] = {
    "paper": paper_targeted,
    "exact": exact_targeted,
    # Bit vectors with ones on all targets and on random others, L = floor(p + (d-1)q) ones in all:
    # pi is 1 on T and (L - r)/(d - r) elsewhere, or 0 where r >= L.
    "padded": _crafted("padded", "no bits to pad"),
    # Hashed reports with the best of 1,000 random seeds: the one with most targets in one bucket.
    # pi is c/r on T, c the mean number of targets in that bucket, and 1/g elsewhere.
    "searched": _crafted("searched", "no seeds to search"),
    # Columns of a Hadamard matrix, or linear hash functions and buckets, that support all targets,
    # or most where none supports all. Drawn evenly, and never column or seed 0. pi is exact.
    "solved": _crafted("solved", "no equations to solve"),
    "custom": None,
}
"""Models of an attack on known targets, by name; `custom` takes the shares themselves.

Without targets, paper and exact are one model, of `methods.ldprecover`; padded, searched and solved
raise ParameterError.
"""


@dataclass(frozen=True)
class MaliciousShare:
    """beta = m/(n+m) by the estimates' sum, perhaps negative, and its error without an attack."""

    beta: float
    standard_error: float

    @property
    def eta(self) -> float:
        """m/n, and 0 if beta is not positive."""
        return max(self.beta, 0.0) / (1 - self.beta)


def estimate_share(
    oracle: FrequencyOracle, poisoned: FloatArray, n: int, malicious_sum: float
) -> MaliciousShare:
    """Return beta = (1 - sum f~_Z)/(1 - S), where malicious reports alone would sum to S.

    Honest reports sum to 1 in expectation, so that E sum f~_Z = 1 + beta(S - 1) exactly. Without an
    attack its standard error is sqrt(Var|S(z)|)/((p-q) sqrt(n) |1-S|), for independent bits with
    Var|S(z)| = p(1-p) + (d-1)q(1-q). Where it depends on the items of users it is the largest.

    Raises ParameterError if the sum tells nothing: all reports have one size, as GRR's have, or S
    is so near 1 that noise hides a tenth of all reports.
    """
    gap = abs(1 - malicious_sum)
    if oracle.fixed_size is not None or gap < 1e-9 * oracle.domain_size:
        raise ParameterError(
            f"eta cannot be estimated: {oracle.protocol} estimates sum to 1 with and without such "
            "malicious reports"
        )
    variance, _ = required(oracle.laws.largest_sum_moments(n), oracle.protocol, SIZES)
    error = math.sqrt(variance) / gap
    if error > _COARSEST:
        raise ParameterError(
            f"eta cannot be estimated: malicious reports sum to {malicious_sum:.4g} in this model, "
            "so near the 1 of honest ones that the share would have a standard error of "
            f"{error:.2g} from {n} reports"
        )
    return MaliciousShare(float((1 - poisoned.sum()) / (1 - malicious_sum)), error)
