"""The method unmix: separates an attack from the genuine frequencies, without knowledge of it.

It cannot see malicious users who lie about their item and then follow the protocol; nor which items
the surplus of an attack is on, if malicious reports support the others as honest ones do; nor a
spike as large as a popular item.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.crafting.crafter import DISPLACED_LAW, ENCODED_LAW
from ldprecover.distributions import chi_squared_normal
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import NEAR_CERTAIN, POSSIBLE, Conclusions
from ldprecover.recovery.contract import Method, Recovery, RecoveryInputs
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
from ldprecover.recovery.unmixing.filters.report_filters import unfit as unfit_for_filters

_NORMAL = 1.959964  # standard deviations either side of a normal law's mean that hold 95 %
_SUSPECT = 0.5  # probability above which an item is a suspect, and a round attacked
_ROUNDED = 1.1  # factor of chi-squared that the rounding of deviations to 10 % can cause
_DISAGREE = 4.75  # normal quantile, of one in 1e6 sets of earlier rounds that differ by noise alone
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


def _recover(inputs: RecoveryInputs) -> Recovery:
    estimates, oracle = _estimates(inputs), inputs.oracle
    if oracle.domain_size < LEAST_ITEMS:
        projected = unmix(oracle, estimates.z, estimates.sd)
        note = (
            f"Fewer than {LEAST_ITEMS} items tell too little of each other: these are the "
            "estimates, projected."
        )
        return inputs.recovery(
            projected.frequencies,
            (*estimates.notes, note),
            genuine=estimates.z.copy(),
            conclusions=_errors(projected),
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
    )
    conclusions = _conclusions(inputs, estimates, unmixed)
    beta = conclusions.beta or 0.0
    attacked = (conclusions.attack_probability or 0.0) > _SUSPECT
    eta = beta / (1 - beta) if attacked and beta < 1 else 0.0
    return inputs.recovery(
        unmixed.frequencies,
        (*estimates.notes, *_notes(conclusions, inputs), *doubts),
        eta=eta,
        targets=inputs.targets,
        malicious=((1 + eta) * inputs.poisoned - unmixed.frequencies) / eta if eta else None,
        genuine=unmixed.frequencies.copy() if eta else estimates.z.copy(),
        conclusions=conclusions,
    )


def _errors(unmixed: Unmixed) -> Conclusions:
    return Conclusions(standard_deviations=unmixed.sd, lower=unmixed.lower, upper=unmixed.upper)


def _conclusions(
    inputs: RecoveryInputs, estimates: NoisyEstimates, unmixed: Unmixed
) -> Conclusions:
    """Return the conclusions: dropped reports count as malicious, the others by un-mixing."""
    number_dropped = sum(each.reports for each in estimates.dropped)
    beta, low, high = _shares(estimates, number_dropped, unmixed.beta)
    raised = unmixed.spikes.copy()
    by_filters = bool(number_dropped) and inputs.oracle.laws.report_sums is None
    for item, probability in estimates.suspects.items():
        # The estimates show only what reports that pass have raised.
        raised[item] = probability if by_filters else min(probability, raised[item])
    likely = {int(v): float(raised[v]) for v in np.flatnonzero(raised > _SUSPECT)}
    return replace(
        _errors(unmixed),
        attack_probability=1.0 if number_dropped else unmixed.p_attack,
        beta=beta,
        beta_low=low,
        beta_high=high,
        suspects=tuple(sorted(likely.items(), key=lambda item: (-item[1], item[0]))),
        dropped=estimates.dropped,
        history_weight=unmixed.p_history if inputs.history else None,
    )


def _shares(
    estimates: NoisyEstimates, number_dropped: int, of_passing: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Return the visible share of malicious reports among all, and its range, from the rest's.

    The honest reports that pass the filters are a known share of all honest ones, but for chance.
    """
    if not number_dropped:
        return of_passing
    n, honest_kept = number_dropped + estimates.n, estimates.honest_kept
    chance = _NORMAL * math.sqrt((1 - honest_kept) / (honest_kept * n))
    beta, low, high = (1 - (1 - share) * estimates.n / (honest_kept * n) for share in of_passing)
    low, high = min(low - chance, beta), max(high + chance, beta)
    return max(beta, 0.0), max(low, 0.0), min(max(high, 0.0), 1.0)


def _notes(conclusions: Conclusions, inputs: RecoveryInputs) -> Iterator[str]:
    probability = conclusions.attack_probability or 0.0
    if probability > _SUSPECT:
        yield (
            "The share of malicious reports is an estimate of those that are visible: reports that "
            "honest users could as well have sent, and lies told honestly, are not in it."
        )
    if any(
        POSSIBLE <= p < NEAR_CERTAIN for p in (probability, *(p for _, p in conclusions.suspects))
    ):
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
