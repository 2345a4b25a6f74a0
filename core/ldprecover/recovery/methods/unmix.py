"""Un-mixing as a method: told nothing of the attack, it tells what it added from what users hold,
as far as it shows.

What it cannot tell: malicious users who lie about their item and then follow the protocol; which
items the surplus of an attack is on, where reports support others as honest ones do; a spike as
large as a popular item.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.crafting.crafter import DISPLACED_LAW, ENCODED_LAW
from ldprecover.errors import ParameterError
from ldprecover.laws.distributions import chi_squared_normal
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Conclusions
from ldprecover.recovery.contract import Method, Recovery, RecoveryInputs
from ldprecover.recovery.unmixing import (
    LEAST_ITEMS,
    History,
    KnownItems,
    NoisyEstimates,
    Unmixed,
    estimates_of_counts,
    filter_reports,
    history_of,
    unmix,
)
from ldprecover.recovery.unmixing.filters.report_filters import unfit as unfit_for_filters
from ldprecover.types import FloatArray

_NORMAL = 1.959964  # standard deviations either side of a normal law's mean that hold 95 %
_SUSPECT = 0.5
_ROUNDED = 1.1
_DISAGREE = 4.75  # normal quantile, of one in 1e6 sets of earlier rounds that differ by noise alone
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class _Pooled:
    """One estimate of earlier rounds, weighted by their precision, and how far these are from it.

    `disagreement` is a normal quantile: of chi-squared of the rounds against the pooled estimate; 0
    for one round.
    """

    oracle: FrequencyOracle
    z: FloatArray
    sd: FloatArray
    disagreement: float

    @classmethod
    def of(cls, rounds: tuple[tuple[FrequencyOracle, Tally], ...]) -> "_Pooled":
        found = [
            estimates_of_counts(oracle, oracle.estimate(tally.counts(oracle), tally.n), tally.n)
            for oracle, tally in rounds
        ]
        precision = sum((1 / each.sd**2 for each in found), np.zeros(()))
        z = sum((each.z / each.sd**2 for each in found), np.zeros(())) / precision
        disagreement = 0.0
        if len(found) > 1:
            score = sum(float((((each.z - z) / each.sd) ** 2).sum()) for each in found)
            freedom = (len(found) - 1) * z.size
            # Deviations are rounded to steps of a tenth.
            disagreement = chi_squared_normal(score, freedom) if score > _ROUNDED * freedom else 0.0
        return cls(rounds[0][0], z, 1 / np.sqrt(precision), disagreement)

    def history(self) -> History:
        """Return what these rounds say of the frequencies, none of them taken to be attacked."""
        return history_of(self.oracle, self.z, self.sd)

    def doubts(self) -> Iterator[str]:
        """Yield sentences on what speaks against these rounds being clean; none is a proof, nor is
        silence.
        """
        attacked = unmix(self.oracle, self.z, self.sd).p_attack
        if attacked > _SUSPECT:
            yield (
                f"The earlier rounds themselves look attacked, with probability {attacked:.2f}: if "
                "they were, the "
                "attack is carried on. Recover them first, and leave them out in doubt."
            )
        if self.disagreement > _DISAGREE:
            yield (
                "The earlier rounds differ from each other by more than their noise: frequencies "
                "drift, or one of the "
                "rounds was attacked."
            )


def _measured(inputs: RecoveryInputs) -> NoisyEstimates:
    """Return what the reports that pass the screens tell, or the counts where there are no reports
    to screen.

    Raises ParameterError for frequencies that no counts give.
    """
    oracle, z = inputs.oracle, inputs.poisoned
    reason = unfit_for_filters(oracle)
    if inputs.reports is not None and reason is None:
        return filter_reports(inputs.reports)
    n = inputs.n if inputs.n is not None else _counted(inputs)
    share = oracle.q + (oracle.p - oracle.q) * z
    if share.min() < -_ROUNDING or share.max() > 1 + _ROUNDING:
        raise ParameterError(f"unmix: no counts of {oracle.protocol} reports give such frequencies")
    why = f"No reports were screened: {reason or 'they were not given, only their counts'}."
    return replace(estimates_of_counts(oracle, z, n), notes=(why,))


def _counted(inputs: RecoveryInputs) -> int:
    assert inputs.reports is not None  # the contract asks for their number
    n = inputs.reports.tally().n
    if not n:
        raise ParameterError("unmix: there are no reports")
    return n


def _recover(inputs: RecoveryInputs) -> Recovery:
    measured, oracle = _measured(inputs), inputs.oracle
    small = oracle.domain_size < LEAST_ITEMS
    pooled = _Pooled.of(inputs.history) if inputs.history and not small else None
    history = None if pooled is None else pooled.history()
    found = unmix(
        oracle,
        measured.z,
        measured.sd,
        known=KnownItems(inputs.targets or measured.suspects, not inputs.targets, inputs.canaries),
        history=history,
        progress=inputs.progress,
    )
    concluded = _conclusions(inputs, measured, found, history, small=small)
    beta = concluded.beta or 0.0
    eta = (
        beta / (1 - beta) if (concluded.attack_probability or 0.0) > _SUSPECT and beta < 1 else 0.0
    )
    return Recovery(
        method=METHOD.name,
        eta=eta,
        targets=() if small else inputs.targets,
        malicious_sum=oracle.malicious_sum,
        poisoned=inputs.poisoned,
        malicious=_malicious(inputs.poisoned, found.frequencies, eta),
        genuine=found.frequencies.copy() if eta else measured.z.copy(),
        recovered=found.frequencies,
        notes=(
            *measured.notes,
            *_notes(concluded, small=small),
            *(pooled.doubts() if pooled is not None else ()),
        ),
        conclusions=concluded,
    )


def _malicious(poisoned: FloatArray, genuine: FloatArray, eta: float) -> FloatArray:
    """Return what malicious reports would estimate, by the paper's Equation 1."""
    return ((1 + eta) * poisoned - genuine) / eta if eta else np.zeros_like(poisoned)


def _conclusions(
    inputs: RecoveryInputs,
    measured: NoisyEstimates,
    found: Unmixed,
    history: History | None,
    *,
    small: bool,
) -> Conclusions:
    """Return what is concluded: of dropped reports that they were malicious, of the others what
    un-mixing says.
    """
    half = _NORMAL * found.sd
    lower, upper = (np.clip(found.frequencies + way * half, 0.0, 1.0) for way in (-1, 1))
    errors = Conclusions(standard_deviations=found.sd, lower=lower, upper=upper)
    if small:
        return errors
    gone = sum(each.reports for each in measured.dropped)
    beta, low, high = _shares(measured, gone, found.beta)
    likely = {int(v): float(found.spikes[v]) for v in np.flatnonzero(found.spikes > _SUSPECT)}
    likely |= dict.fromkeys(measured.shared, 1.0)
    return replace(
        errors,
        attack_probability=1.0 if gone else found.p_attack,
        beta=beta,
        beta_low=low,
        beta_high=high,
        suspects=tuple(sorted(likely.items(), key=lambda item: (-item[1], item[0]))),
        dropped=measured.dropped,
        history_weight=None if history is None else found.p_history,
    )


def _shares(
    measured: NoisyEstimates, gone: int, of_kept: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Return the share of malicious reports among all, and its interval, from that among those
    kept.

    The kept honest reports are a known share of all honest ones, but for chance.
    """
    if not gone:
        return of_kept
    n, kept = gone + measured.n, measured.honest_kept
    chance = _NORMAL * math.sqrt((1 - kept) / (kept * n))
    beta, low, high = (1 - (1 - share) * measured.n / (kept * n) for share in of_kept)
    low, high = min(low - chance, beta), max(high + chance, beta)
    return max(beta, 0.0), max(low, 0.0), min(max(high, 0.0), 1.0)


def _notes(concluded: Conclusions, *, small: bool) -> tuple[str, ...]:
    if small:
        return (
            (
                f"Fewer than {LEAST_ITEMS} items tell too little of each other: these are the "
                "estimates, projected."
            ),
        )
    notes = []
    if (concluded.attack_probability or 0.0) > _SUSPECT:
        notes.append(
            "The share of malicious reports is what shows of it: reports that honest users could "
            "as well have sent, "
            "and lies told honestly, are not in it."
        )
    if concluded.history_weight is not None:
        notes.append("The earlier rounds are taken to be clean.")
    return tuple(notes)


def _unfit(oracle: FrequencyOracle) -> str | None:
    crafter = oracle.crafter
    if crafter is None or crafter.encoded_others is None:
        return f"{oracle.protocol} lacks {ENCODED_LAW}"
    return f"{oracle.protocol} lacks {DISPLACED_LAW}" if crafter.displacements is None else None


METHOD = Method(
    name="unmix",
    summary="What users hold, an attack added and noise told apart by empirical Bayes; nothing "
    "need be known",
    uses=frozenset({"n", "reports", "targets", "history"}),
    recover=_recover,
    needs=frozenset({"counts", "n"}),
    better_with=frozenset({"history", "reports"}),
    long=True,
    cost="Some thousand densities of d items each, by fast Fourier transforms: 0.2 s for 100 "
    "items, 1 s for 1,000",
    unfit=_unfit,
)
