"""The conditional-probability detector: drops reports more probably malicious than not."""

import math
from functools import partial

import numpy as np

from ldprecover.crafting import EncodingCrafter, crafter_of
from ldprecover.errors import ParameterError
from ldprecover.estimation.simplex import project_simplex
from ldprecover.items import indices_named
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.contract import AUTO, Method, Recovery, RecoveryInputs
from ldprecover.recovery.methods.detection import drop
from ldprecover.types import BoolArray, FloatArray, Reports


def _recover(inputs: RecoveryInputs) -> Recovery:
    """Return the estimate from the reports z with P(malicious | z) <= 1/2 (after Cao et al., USENIX
    Security 2021).

    P(malicious | z) = b P_Y(z) / (b P_Y(z) + (1-b) sum_v f(v) P(z | v)), with b = eta/(1+eta), P_Y
    the crafted reports for the one target, and f the projection of the poisoned frequencies.
    """
    targets = inputs.targets
    if len(targets) != 1:
        raise ParameterError(f"{METHOD.name} is defined for one target, not {len(targets)}")
    if inputs.request.eta == AUTO:
        raise ParameterError(
            f"{METHOD.name} needs eta as a number: crafted reports for one target leave too little "
            "trace in the sum"
        )
    eta = float(inputs.request.eta)
    suspicious = partial(
        _more_probably_crafted, target=targets[0], eta=eta, f=project_simplex(inputs.poisoned)
    )
    note = (
        f"Reports for the target, {indices_named(targets)}, are dropped where they are more "
        "probably crafted "
        f"than honest, if there is one crafted report to {1 / eta:.4g} honest ones."
        if eta
        else "With eta = 0 no report is taken as malicious."
    )
    return drop(inputs, suspicious, [note], targets=targets)


def _more_probably_crafted(
    oracle: FrequencyOracle, reports: Reports, *, target: int, eta: float, f: FloatArray
) -> BoolArray:
    """Return which reports z have P(malicious | z) > 1/2."""
    on_target = oracle.supports(reports, np.array([target]))[:, 0]
    suspects = reports[on_target]
    # b P_Y > (1-b) P_X is eta P_Y > P_X.
    if not eta:
        return np.zeros_like(on_target)
    log_likelihood = oracle.laws.log_likelihood
    assert log_likelihood is not None  # else `_unfit` has said why not
    log_ratio = crafter_of(oracle).log_likelihood(suspects, target) - log_likelihood(suspects, f)
    on_target[on_target] = math.log(eta) + log_ratio > 0
    return on_target


def _unfit(oracle: FrequencyOracle) -> str | None:
    if oracle.laws.log_likelihood is None:
        return f"{oracle.protocol} lacks a likelihood of its reports"
    if isinstance(crafter_of(oracle), EncodingCrafter):
        return f"{oracle.protocol} lacks a likelihood of crafted reports"
    return None


METHOD = Method(
    name="conditional-probability",
    summary="Drop reports that are more probably crafted for the one target than honest (Cao et "
    "al.)",
    uses={"eta", "targets", "reports"},
    recover=_recover,
    needs={"reports", "targets"},
    cost="O(nd), one pass over the reports",
    unfit=_unfit,
)
