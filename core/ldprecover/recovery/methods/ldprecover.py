"""LDPRecover, and LDPRecover* where the targets are known."""

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.estimation.simplex import project_simplex
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.contract import AUTO, MAX_ETA, Method, Recovery, RecoveryInputs
from ldprecover.recovery.malicious_models import (
    MALICIOUS_MODELS,
    SEARCH,
    custom,
    estimate_share,
    exact_targeted,
)
from ldprecover.types import FloatArray

_SAME = 1e-9  # difference of frequencies that is rounding
_SEEN = 4.0  # standard errors by which a share must differ from 0 to be stated as seen
_WITHOUT_TARGETS = ("paper", "exact")


def _recover(inputs: RecoveryInputs) -> Recovery:
    """Return the result of Algorithm 1 (paper, V-D): subtract the assumed f~_Y, then refine."""
    oracle = inputs.oracle
    malicious, notes = _malicious(inputs)
    targets = () if inputs.request.malicious_model == "custom" else inputs.targets
    # The sum of the model; for f'_Y the printed S, as f'_Y is 0 if no estimate is positive.
    total = float(malicious.sum()) if malicious.any() else oracle.malicious_sum
    eta, eta_notes = _eta(inputs, total)
    return subtract(inputs, eta, malicious, targets, notes + eta_notes)


def _eta(inputs: RecoveryInputs, malicious_sum: float) -> tuple[float, list[str]]:
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


def subtract(
    inputs: RecoveryInputs,
    eta: float,
    malicious: FloatArray,
    targets: tuple[int, ...],
    notes: list[str],
) -> Recovery:
    """Return the projection of (1 + eta) f~_Z - eta f~_Y; a note says if f~_Y had no effect."""
    poisoned, notes = inputs.poisoned, list(notes)
    with np.errstate(over="ignore"):  # the projection raises for numbers that are not finite
        scaled = (1 + eta) * poisoned
        genuine = scaled - eta * malicious  # f~_X~ = (1 + eta) f~_Z - eta f~_Y
    recovered = project_simplex(genuine)
    # Without targets f~_Y has no effect for GRR, nor for OUE and OLH over all but tiny domains,
    # unless the positive estimates sum to less than 1/(1 + eta): D0 is projected to zero either
    # way, and on D1 the two vectors differ by a constant. Compared here, not inferred.
    if np.abs(recovered - project_simplex(scaled)).max() <= _SAME:
        notes.append(
            "The result equals the projection of (1 + eta) times the poisoned frequencies on the "
            "simplex: the assumed malicious frequencies changed nothing, and the attack was not "
            "removed."
        )
        if poisoned.size == 2 and eta > 0:
            notes.append(
                "Of two items that multiplies the difference, the mean of numbers, by 1 + eta, up "
                "to 1, whether or not anybody attacked."
            )
    return inputs.recovery(
        recovered, notes, eta=eta, targets=targets, malicious=malicious, genuine=genuine
    )


def _malicious(inputs: RecoveryInputs) -> tuple[FloatArray, list[str]]:
    """Return the malicious frequencies that the request assumes, and the notes on them."""
    oracle, targets, name = inputs.oracle, inputs.targets, inputs.request.malicious_model
    model = MALICIOUS_MODELS[name]
    if model is None:
        note = (
            "Malicious model custom: each item is taken to be supported by the given share of the "
            "malicious reports."
        )
        return custom(oracle, inputs.support), [note]
    if targets:
        malicious = model(oracle, targets)
        notes = [f"LDPRecover*, malicious model {name}: {_REPORTS[name]}."]
        if name == "paper":
            excess = np.ptp(malicious) / np.ptp(exact_targeted(oracle, targets))
            notes.append(
                f"The printed equations lower the targets against the other items {excess:.3g} "
                "times as far as these reports raise them; the model exact lowers them as far."
            )
        return malicious, notes
    if name not in _WITHOUT_TARGETS:
        raise ParameterError(f"malicious_model {name} needs targets")
    positive = np.count_nonzero(inputs.poisoned > 0)
    note = (
        "Without targets: the frequencies of the malicious reports are taken to be equal for the "
        f"{positive} of {oracle.domain_size} items with a positive estimate, and their sum "
        f"{oracle.malicious_sum:.6g}."
        if positive
        else "Without targets, and no estimate is positive: the malicious frequencies are taken as "
        "zero."
    )
    notes = [note]
    if name != "paper":
        notes.append(
            f"Without targets the malicious models {' and '.join(_WITHOUT_TARGETS)} are the same."
        )
    return _untargeted(oracle, inputs.poisoned), notes


def _untargeted(oracle: FrequencyOracle, poisoned: FloatArray) -> FloatArray:
    """Return f'_Y: S spread evenly over D1 = {v : f~_Z(v) > 0}, zero elsewhere (paper, V-D).

    If no estimate is positive, it is zero everywhere.
    """
    suspected = poisoned > 0  # D1
    malicious = np.zeros(oracle.domain_size)
    if suspected.any():
        malicious[suspected] = oracle.malicious_sum / np.count_nonzero(suspected)
    return malicious


_ONE_TARGET = "each malicious report is taken to support one target alone"
_REPORTS = {
    "paper": _ONE_TARGET,
    "exact": _ONE_TARGET,
    "padded": "each malicious report is taken to support all targets, and random others up to an "
    "honest report's size",
    "searched": f"each malicious report is taken to be the best of {SEARCH} random seeds for the "
    "targets",
    "solved": "each malicious report is taken to support all targets, or as many as a report can "
    "without supporting every item",
}


METHOD = Method(
    name="ldprecover",
    summary="LDPRecover (paper, Algorithm 1); with targets, LDPRecover*",
    uses={"eta", "targets", "malicious_model", "support", "n"},
    recover=_recover,
)
