"""The share of malicious reports, estimated from the sum of the estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ldprecover.errors import ParameterError
from ldprecover.laws import SIZES, required
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.contract import AUTO, MAX_ETA, RecoveryInputs
from ldprecover.types import FloatArray

_SEEN = 4.0  # standard errors by which a share must differ from 0 to be stated as seen
_COARSEST = 0.025  # largest standard error of beta: 4 of them are a tenth of all reports


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


def eta_of(inputs: RecoveryInputs, malicious_sum: float) -> tuple[float, list[str]]:
    """Return the assumed eta, or for "auto" the estimated one, and the notes on it.

    Raises ParameterError if it cannot be estimated, or the estimate is not a possible share.
    """
    if inputs.request.eta != AUTO:
        return float(inputs.request.eta), []
    if inputs.n is None:
        raise ParameterError("eta auto needs the number of reports")
    share = estimate_share(inputs.oracle, inputs.poisoned, inputs.n, malicious_sum)
    total = float(inputs.poisoned.sum())
    if share.beta < -_SEEN * share.standard_error or share.beta > MAX_ETA / (1 + MAX_ETA):
        raise ParameterError(
            f"eta cannot be estimated: the estimates sum to {total:.4g}, which no share of "
            f"malicious reports that alone would sum to {malicious_sum:.4g} explains; the reports "
            "are not those of the malicious model"
        )
    visible = share.beta > _SEEN * share.standard_error
    verdict = "" if visible else f", within {_SEEN:g} standard errors of no malicious report"
    note = (
        f"eta = {share.eta:.4g} is estimated: the estimates sum to {total:.4g}, malicious reports "
        f"alone would to {malicious_sum:.4g}, so a share {share.beta:.4g} of all reports is "
        f"malicious, with standard error {share.standard_error:.2g}{verdict}. It is right only if "
        "the malicious model is."
    )
    return share.eta, [note]
