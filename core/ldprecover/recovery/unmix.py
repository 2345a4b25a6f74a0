"""Un-mixing as a method: told nothing of the attack, it tells what it added from what users hold, as far as it shows.

What it cannot tell: malicious users who lie about their item and then follow the protocol; which items the surplus
of an attack is on, where reports support others as honest ones do; a spike as large as a popular item.
"""

from dataclasses import replace

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.base import Knowledge, Method, Recovery
from ldprecover.recovery.conclusions import Conclusions
from ldprecover.recovery.unmixing import LEAST_ITEMS, Measured, Past, Unmixed, measured_of_counts, past_of, unmix
from ldprecover.tally import Tally
from ldprecover.types import FloatArray

__all__ = ["METHOD"]

_NORMAL = 1.959964  # standard deviations either side of a normal law's mean that hold 95 %
_SUSPECT = 0.5
_ROUNDING = 1e-9


def pooled_past(rounds: tuple[tuple[FrequencyOracle, Tally], ...]) -> Past:
    """Return what earlier, clean rounds say of the frequencies: one estimate of each, weighted by its precision."""
    total = precision = np.zeros(())
    for oracle, tally in rounds:
        measured = measured_of_counts(oracle, oracle.estimate(tally.counts(oracle), tally.n), tally.n)
        total = total + measured.z / measured.sd**2
        precision = precision + 1 / measured.sd**2
    return past_of(rounds[0][0], total / precision, 1 / np.sqrt(precision))


def _measured(knowledge: Knowledge) -> Measured:
    """Return what the counts tell. Raises ParameterError for frequencies that no counts give."""
    oracle, z = knowledge.oracle, knowledge.poisoned
    n = knowledge.n if knowledge.n is not None else _counted(knowledge)
    share = oracle.q + (oracle.p - oracle.q) * z
    if share.min() < -_ROUNDING or share.max() > 1 + _ROUNDING:
        raise ParameterError(f"unmix: no counts of {oracle.protocol} reports give such frequencies")
    return measured_of_counts(oracle, z, n)


def _counted(knowledge: Knowledge) -> int:
    assert knowledge.reports is not None  # the contract asks for their number
    n = knowledge.reports.tally().n
    if not n:
        raise ParameterError("unmix: there are no reports")
    return n


def _recover(knowledge: Knowledge) -> Recovery:
    measured, oracle = _measured(knowledge), knowledge.oracle
    small = oracle.domain_size < LEAST_ITEMS
    past = pooled_past(knowledge.history) if knowledge.history and not small else None
    found = unmix(oracle, measured.z, measured.sd, targets=knowledge.targets or measured.suspects, history=past)
    attacked = found.p_attack > _SUSPECT
    beta = found.beta[0]
    eta = beta / (1 - beta) if attacked else 0.0
    return Recovery(
        method=METHOD.name,
        eta=eta,
        targets=() if small else knowledge.targets,
        malicious_sum=oracle.malicious_sum,
        poisoned=knowledge.poisoned,
        malicious=_malicious(knowledge.poisoned, found.frequencies, eta),
        genuine=found.frequencies.copy() if eta else measured.z.copy(),
        recovered=found.frequencies,
        notes=(*measured.notes, *_notes(knowledge, found, small=small)),
        conclusions=_conclusions(measured, found, past, small=small),
    )


def _malicious(poisoned: FloatArray, genuine: FloatArray, eta: float) -> FloatArray:
    """Return what malicious reports would estimate, by the paper's Equation 1."""
    return ((1 + eta) * poisoned - genuine) / eta if eta else np.zeros_like(poisoned)


def _conclusions(measured: Measured, found: Unmixed, past: Past | None, *, small: bool) -> Conclusions:
    half = _NORMAL * found.sd
    lower, upper = (np.clip(found.frequencies + way * half, 0.0, 1.0) for way in (-1, 1))
    errors = Conclusions(standard_deviations=found.sd, lower=lower, upper=upper)
    if small:
        return errors
    order = np.argsort(-found.spikes, kind="stable")
    beta, low, high = found.beta
    return replace(
        errors,
        attack_probability=found.p_attack,
        beta=beta,
        beta_low=low,
        beta_high=high,
        suspects=tuple((int(v), float(found.spikes[v])) for v in order if found.spikes[v] > _SUSPECT),
        dropped=measured.dropped,
        history_weight=None if past is None else found.p_history,
    )


def _notes(knowledge: Knowledge, found: Unmixed, *, small: bool) -> tuple[str, ...]:
    if small:
        return (f"Fewer than {LEAST_ITEMS} items tell too little of each other: these are the estimates, projected.",)
    notes = [f"The probability that reports were made to raise items is {found.p_attack:.2f}."]
    if found.p_attack > _SUSPECT:
        beta, low, high = found.beta
        notes.append(f"The share of malicious reports that fits best is {beta:.3f}, and {low:.3f} to {high:.3f} fit.")
    if knowledge.history:
        weight = f"with probability {found.p_history:.2f}"
        notes.append(f"The earlier rounds, which are taken to be clean, are a guide to this one {weight}.")
    return tuple(notes)


def _unfit(oracle: FrequencyOracle) -> str | None:
    try:
        oracle.displacements()
    except ParameterError as error:
        return str(error)
    return None


METHOD = Method(
    name="unmix",
    summary="What users hold, an attack added and noise told apart by empirical Bayes; nothing need be known",
    uses=frozenset({"n", "targets", "history"}),
    recover=_recover,
    needs=frozenset({"counts", "n"}),
    better_with=frozenset({"history"}),
    cost="Some thousand densities of d items each, by fast Fourier transforms: 0.2 s for 100 items, 1 s for 1,000",
    unfit=_unfit,
)
