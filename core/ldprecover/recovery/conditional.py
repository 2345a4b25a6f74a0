"""The conditional-probability detector: drop each report that is more probably malicious than not."""

import math
from functools import partial

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.protocols import GRR, OLH, OUE, FrequencyOracle
from ldprecover.recovery.base import AUTO, Knowledge, Method, Recovery, indices_named
from ldprecover.recovery.detection import drop
from ldprecover.recovery.reports import support_sizes, supported
from ldprecover.recovery.simplex import project_simplex
from ldprecover.types import BoolArray, FloatArray, Reports

__all__ = ["METHOD"]


def _recover(knowledge: Knowledge) -> Recovery:
    """Return the estimate from the reports z with P(malicious | z) <= 1/2 (after Cao et al., USENIX Security 2021).

    P(malicious | z) = b P_Y(z) / (b P_Y(z) + (1-b) sum_v f(v) P(z | v)), with b = eta/(1+eta), P_Y the
    crafted reports for the one target, and f the projection of the poisoned frequencies.
    """
    targets = knowledge.targets
    if len(targets) != 1:
        raise ParameterError(f"{METHOD.name} is defined for one target, not {len(targets)}")
    if knowledge.eta == AUTO:
        raise ParameterError(
            f"{METHOD.name} needs eta as a number: crafted reports for one target leave too little trace in the sum"
        )
    eta = float(knowledge.eta)
    suspicious = partial(_more_probably_crafted, target=targets[0], eta=eta, f=project_simplex(knowledge.poisoned))
    note = (
        f"Reports for the target, {indices_named(targets)}, are dropped where they are more probably crafted "
        f"than honest, if there is one crafted report to {1 / eta:.4g} honest ones."
        if eta
        else "With eta = 0 no report is taken as malicious."
    )
    return drop(METHOD.name, knowledge, suspicious, [note], targets=targets)


def _more_probably_crafted(
    oracle: FrequencyOracle, reports: Reports, *, target: int, eta: float, f: FloatArray
) -> BoolArray:
    """Return which reports z have P(malicious | z) > 1/2."""
    on_target = supported(oracle, reports, np.array([target]))[:, 0]
    suspects = reports[on_target]
    # b P_Y > (1-b) P_X is eta P_Y > P_X.
    on_target[on_target] = math.log(eta) + _log_ratio(oracle, suspects, f) > 0 if eta else False
    return on_target


def _log_ratio(oracle: FrequencyOracle, suspects: Reports, f: FloatArray) -> FloatArray:
    """Return log(P_Y(z)/P_X(z)) of reports that support the target."""
    p, q, d = oracle.p, oracle.q, oracle.domain_size
    if isinstance(oracle, GRR):
        return np.asarray(-np.log(q + (p - q) * f[suspects]))
    held = oracle.supports(suspects).astype(np.float64) @ f  # the mass of the items it supports
    if isinstance(oracle, OLH):  # a random seed either way, and its bucket of the target
        return -np.log(p * held + (1 - p) / (oracle.hash_range - 1) * (1 - held))
    # OUE: L ones, L - 1 of them anywhere else; against d bits, one of them the user's own.
    sizes = support_sizes(oracle, suspects)
    ones = max(math.floor(oracle.honest_support_size), 1)
    crafted = -(math.lgamma(d) - math.lgamma(ones) - math.lgamma(d - ones + 1))
    honest = sizes * math.log(q) + (d - sizes) * math.log1p(-q)
    honest += np.log(p / q * held + (1 - p) / (1 - q) * (1 - held))
    return np.where(sizes == ones, crafted - honest, -np.inf)


def _unfit(oracle: FrequencyOracle) -> str | None:
    return None if isinstance(oracle, GRR | OUE | OLH) else f"crafted {oracle.protocol} reports are not known to it"


METHOD = Method(
    name="conditional-probability",
    summary="Drop reports that are more probably crafted for the one target than honest (Cao et al.)",
    uses=frozenset({"eta", "targets", "reports"}),
    recover=_recover,
    needs=frozenset({"reports", "targets"}),
    cost="O(nd), one pass over the reports",
    unfit=_unfit,
)
