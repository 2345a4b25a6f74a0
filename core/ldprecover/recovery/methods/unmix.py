"""The method unmix: separates an attack from the genuine frequencies, without knowledge of it.

It cannot see malicious users who lie about their item and then follow the protocol; nor which items
the surplus of an attack is on, if malicious reports support the others as honest ones do; nor a
spike as large as a popular item.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.crafting.crafter import DISPLACED_LAW, ENCODED_LAW
from ldprecover.distributions import chi_squared_normal
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import NEAR_CERTAIN, Conclusions
from ldprecover.recovery.contract import Method, Recovery, RecoveryInputs
from ldprecover.recovery.simplex import project_simplex
from ldprecover.recovery.unmixing import (
    LEAST_ITEMS,
    History,
    KnownItems,
    NoisyEstimates,
    Unmixed,
    estimates_of_counts,
    estimates_of_histogram,
    filter_reports,
    history_of,
    unmix,
)
from ldprecover.recovery.unmixing.evidence import (
    Evidence,
    log_p_of_canaries,
    log_p_of_items,
    log_p_of_sum,
    noise_of_none,
    reach,
)
from ldprecover.recovery.unmixing.filters.report_filters import unfit as unfit_for_filters
from ldprecover.recovery.unmixing.least_share import least_by_shift
from ldprecover.recovery.unmixing.model.posterior import projection

_SUSPECT = 0.5  # probability above which an item is a suspect, and a round attacked
_ROUNDED = 1.1  # factor of chi-squared that the rounding of deviations to 10 % can cause
_DISAGREE = 4.75  # normal quantile, of one in 1e6 sets of earlier rounds that differ by noise alone
# Noise in units of a mean frequency, below which estimates are projected, and below which an attack
# needs evidence: what is left is the shape of the data, which follows no law.
_NO_NOISE, _FAINT = 0.05, 0.2
_FEW = 32
_ASSUMED = "The frequencies assume an attack that the reports do not prove."
_ROUNDING = 1e-9  # by which a share may exceed [0, 1]


def _history(
    rounds: tuple[tuple[FrequencyOracle, Tally], ...],
) -> tuple[History | None, list[str]]:
    """Return the frequencies by earlier rounds, pooled by precision, and doubts that these are
    clean; None without any.
    """
    if not rounds:
        return None, []
    each = [
        estimates_of_counts(oracle, oracle.estimate(tally.counts(oracle), tally.n), tally.n)
        for oracle, tally in rounds
    ]
    precision = sum((1 / one.sd**2 for one in each), np.zeros(()))
    z = sum((one.z / one.sd**2 for one in each), np.zeros(())) / precision
    oracle, sd, doubts = rounds[0][0], 1 / np.sqrt(precision), []
    attacked = unmix(oracle, z, sd).p_attack
    if attacked > _SUSPECT:
        doubts.append(
            f"The earlier rounds themselves look attacked, with probability {attacked:.2f}: if "
            "they were, the attack is carried on. Recover them first, and leave them out in doubt."
        )
    score = sum(float((((one.z - z) / one.sd) ** 2).sum()) for one in each)
    freedom = (len(each) - 1) * z.size  # 0 for one round, which agrees with itself
    if score > _ROUNDED * freedom > 0 and chi_squared_normal(score, freedom) > _DISAGREE:
        doubts.append(
            "The earlier rounds differ from each other by more than their noise: frequencies "
            "drift, or one of the rounds was attacked."
        )
    return history_of(oracle, z, sd), doubts


def _estimates(inputs: RecoveryInputs) -> NoisyEstimates:
    """Return estimates from the reports that pass the filters, or from the counts alone.

    Raises ParameterError for frequencies that no counts give.
    """
    oracle, z = inputs.oracle, inputs.poisoned
    is_histogram = oracle.laws.report_sums is not None and not oracle.assigned_seeds
    if inputs.reports is not None and is_histogram:
        return estimates_of_histogram(oracle, inputs.reports.tally(), inputs.targets)
    reason = unfit_for_filters(oracle)
    if inputs.reports is not None and reason is None:
        return filter_reports(inputs.reports, inputs.targets)
    share = oracle.q + (oracle.p - oracle.q) * z
    if share.min() < -_ROUNDING or share.max() > 1 + _ROUNDING:
        raise ParameterError(f"unmix: no counts of {oracle.protocol} reports give such frequencies")
    why = f"No reports were filtered: {reason or 'they were not given, only their counts'}."
    return replace(estimates_of_counts(oracle, z, _number_of_reports(inputs)), notes=(why,))


def _number_of_reports(inputs: RecoveryInputs) -> int:
    if inputs.n is not None:
        return inputs.n
    assert inputs.reports is not None  # the contract requires n or the reports
    n = inputs.reports.tally().n
    if not n:
        raise ParameterError("unmix: there are no reports")
    return n


def evidence_of(inputs: RecoveryInputs, log_p: float | None = None) -> Evidence:
    """Return the evidence of an attack in all n reports; `log_p` is that of their joint law."""
    oracle, z, n = inputs.oracle, inputs.poisoned, _number_of_reports(inputs)
    kinds = {
        "items": log_p_of_items(z, noise_of_none(oracle, n)),
        "sum": log_p_of_sum(oracle, z, n),
        "reports": log_p,
        "canaries": log_p_of_canaries(oracle, z, n, inputs.canaries),
    }
    at_hand = {kind: value for kind, value in kinds.items() if value is not None}
    reached = reach(oracle, z, n, len(at_hand), reads_reports=log_p is not None)
    return Evidence(at_hand, reached)


def _recover(inputs: RecoveryInputs) -> Recovery:
    estimates, oracle = _estimates(inputs), inputs.oracle
    evidence = evidence_of(inputs, estimates.log_p)
    is_proven = evidence.probability >= NEAR_CERTAIN
    noise = noise_of_none(oracle, _number_of_reports(inputs)) * oracle.domain_size
    note = None
    if oracle.domain_size < LEAST_ITEMS:
        note = (
            f"Fewer than {LEAST_ITEMS} items tell too little of each other: these are the "
            "estimates, projected."
        )
    elif noise < _NO_NOISE and (oracle.fixed_size == 1 or not is_proven):
        note = (
            f"The noise is only {noise:.1g} of a mean frequency, and data then follow no law of "
            "few parameters: these are the estimates, projected."
        )
    if note is not None:
        projected = projection(estimates.z, estimates.sd)
        conclusions = _conclusions(inputs, estimates, projected, evidence)
        return inputs.recovery(
            projected.frequencies,
            (*estimates.notes, note),
            genuine=estimates.z.copy(),
            conclusions=replace(conclusions, history_weight=None),
        )
    history, doubts = _history(inputs.history)
    unmixed = unmix(
        oracle,
        estimates.z,
        estimates.sd,
        known_items=KnownItems(
            inputs.targets or tuple(estimates.suspects),
            not inputs.targets,
            estimates.balance,
            estimates.additions,
            inputs.canaries,
        ),
        history=history,
        unfiltered=(
            inputs.poisoned,
            estimates_of_counts(oracle, inputs.poisoned, _number_of_reports(inputs)).sd,
        ),
        may_be_concealed=bool(estimates.dropped) and oracle.laws.report_sums is not None,
        honest_only=not is_proven and noise < _FAINT,
    )
    if oracle.domain_size < _FEW and history is None and not unmixed.assumes_attack:
        both = (unmixed.frequencies + project_simplex(estimates.z)) / 2
        low, high = np.minimum(unmixed.lower, both), np.maximum(unmixed.upper, both)
        unmixed = replace(unmixed, frequencies=both, lower=low, upper=high)
    conclusions = _conclusions(inputs, estimates, unmixed, evidence)
    attacked = unmixed.assumes_attack or bool(estimates.dropped)
    honest = unmixed.honest * estimates.n / (estimates.honest_kept * _number_of_reports(inputs))
    eta = max(1 / honest - 1, 0.0) if attacked else 0.0
    assumed = [_ASSUMED] if attacked and not is_proven else []
    return inputs.recovery(
        unmixed.frequencies,
        (*estimates.notes, *assumed, *_notes(conclusions, inputs), *doubts),
        eta=eta,
        targets=inputs.targets,
        malicious=((1 + eta) * inputs.poisoned - unmixed.frequencies) / eta if eta else None,
        genuine=unmixed.frequencies.copy() if eta else estimates.z.copy(),
        conclusions=conclusions,
    )


def _conclusions(
    inputs: RecoveryInputs, estimates: NoisyEstimates, unmixed: Unmixed, evidence: Evidence
) -> Conclusions:
    """Return the conclusions; the share of malicious reports is the least one that shows."""
    oracle, n = inputs.oracle, _number_of_reports(inputs)
    number_dropped = sum(each.reports for each in estimates.dropped)
    raised = unmixed.spikes.copy()
    by_filters = bool(number_dropped) and oracle.laws.report_sums is None
    for item, probability in estimates.suspects.items():
        # The estimates show only what reports that pass have raised.
        raised[item] = probability if by_filters else min(probability, raised[item])
    raised *= evidence.probability
    likely = {int(v): float(raised[v]) for v in np.flatnonzero(raised > _SUSPECT)}
    return Conclusions(
        standard_deviations=unmixed.sd,
        lower=unmixed.lower,
        upper=unmixed.upper,
        attack=evidence.word,
        attack_probability=evidence.probability,
        beta=min(max(estimates.malicious / n, least_by_shift(oracle, inputs.poisoned, n)), 1.0),
        suspects=tuple(sorted(likely.items(), key=lambda item: (-item[1], item[0]))),
        dropped=estimates.dropped,
        history_weight=unmixed.p_history if inputs.history else None,
    )


def _notes(conclusions: Conclusions, inputs: RecoveryInputs) -> Iterator[str]:
    probability = conclusions.attack_probability or 0.0
    if probability > _SUSPECT:
        yield (
            "The share of malicious reports is the least one that shows: reports that honest users "
            "could as well have sent, and lies told honestly, are not in it."
        )
    if conclusions.attack == "possible" or any(p < NEAR_CERTAIN for _, p in conclusions.suspects):
        lacking = [] if inputs.canaries else ["canaries"]
        lacking += [] if inputs.history else ["an earlier clean round"]
        advice = f": {' or '.join(lacking)} would decide" if lacking else ""
        yield (
            "The reports do not tell whether an attack raised items or they are popular, and "
            f"perhaps framed{advice}."
        )
    if conclusions.history_weight is not None:
        yield "The earlier rounds are taken to be clean."


def _unfit(oracle: FrequencyOracle) -> str | None:
    crafter = oracle.crafter
    if crafter is None or crafter.encoded_others is None:
        return f"{oracle.protocol} lacks {ENCODED_LAW}"
    return f"{oracle.protocol} lacks {DISPLACED_LAW}" if crafter.displacements is None else None


METHOD = Method(
    name="unmix",
    summary="What users hold, an attack added and noise told apart by empirical Bayes; nothing "
    "need be known",
    uses={"n", "reports", "targets", "history", "canaries"},
    recover=_recover,
    needs={"counts", "n"},
    better_with={"history", "reports"},
    long=True,
    cost="Some thousand densities of d items each, by fast Fourier transforms: 0.2 s for 100 "
    "items, 1 s for 1,000",
    unfit=_unfit,
)
