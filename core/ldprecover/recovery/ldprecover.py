"""LDPRecover, and LDPRecover* where the targets are known."""

import numpy as np

from ldprecover._types import FloatArray
from ldprecover.recovery.base import Knowledge, Method, Recovery
from ldprecover.recovery.malicious import MALICIOUS_MODELS, untargeted
from ldprecover.recovery.simplex import project_simplex

__all__ = ["METHOD"]

_SAME = 1e-9  # frequencies closer than this are told apart by rounding alone


def _recover(knowledge: Knowledge) -> Recovery:
    """Return Algorithm 1's answer (paper, V-D): subtract the assumed malicious frequencies, then refine."""
    oracle, poisoned, eta, targets = knowledge.oracle, knowledge.poisoned, knowledge.eta, knowledge.targets
    if targets:
        malicious = MALICIOUS_MODELS[knowledge.malicious_model](oracle, targets)
    else:
        malicious = untargeted(oracle, poisoned)
    with np.errstate(over="ignore"):  # the projection refuses what is not finite
        scaled = (1 + eta) * poisoned
        genuine = scaled - eta * malicious  # f~_X~ = (1 + eta) f~_Z - eta f~_Y
    recovered = project_simplex(genuine)
    notes = _targeted_notes(knowledge) if targets else _untargeted_notes(knowledge)
    # Without targets it is so for GRR always, and for OUE and OLH (but over tiny domains, where S > 0)
    # unless the attack leaves the positive estimates a sum below 1/(1 + eta): D0 is projected to
    # zero either way, and on D1 the two vectors differ by a constant. It is compared, not inferred.
    if np.abs(recovered - project_simplex(scaled)).max() <= _SAME:
        notes.append(
            "The result equals the projection of (1 + eta) times the poisoned frequencies on the simplex: "
            "the assumed malicious frequencies took no part in it, and no malicious mass was removed."
        )
    return Recovery(
        method=METHOD.name,
        eta=eta,
        targets=targets,
        malicious_sum=oracle.malicious_sum,
        poisoned=poisoned,
        malicious=malicious,
        genuine=genuine,
        recovered=recovered,
        notes=tuple(notes),
    )


def _untargeted_notes(knowledge: Knowledge) -> list[str]:
    oracle, positive = knowledge.oracle, int(np.count_nonzero(knowledge.poisoned > 0))
    notes = []
    if positive:
        notes.append(
            f"Without targets: the malicious sum, {oracle.malicious_sum:.6g}, is spread evenly over "
            f"D1, the {positive} of {oracle.domain_size} items with a positive estimate."
        )
    else:
        notes.append("Without targets, and no estimate is positive: the malicious frequencies are taken as zero.")
    if knowledge.malicious_model != "paper":
        notes.append(f"Without targets the malicious models {' and '.join(MALICIOUS_MODELS)} are the same.")
    return notes


def _targeted_notes(knowledge: Knowledge) -> list[str]:
    oracle, targets, model = knowledge.oracle, knowledge.targets, knowledge.malicious_model
    notes = [f"LDPRecover*, malicious model {model}: each malicious report is taken to support one target alone."]
    if model == "paper":
        excess = _gap(MALICIOUS_MODELS["paper"](oracle, targets)) / _gap(MALICIOUS_MODELS["exact"](oracle, targets))
        notes.append(
            f"The printed equations lower the targets against the other items {excess:.3g} times as far as "
            "such reports raise them; the model exact lowers them as far."
        )
    return notes


def _gap(malicious: FloatArray) -> float:
    """Return how far the model puts the targets above the other items: all that the projection sees of it."""
    return float(malicious.max() - malicious.min())


METHOD = Method(
    name="ldprecover",
    summary="LDPRecover (paper, Algorithm 1); with targets, LDPRecover*",
    uses=frozenset({"eta", "targets", "malicious_model"}),
    recover=_recover,
)
