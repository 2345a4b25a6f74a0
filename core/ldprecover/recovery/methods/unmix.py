"""The method unmix: separates an attack from the genuine frequencies, without knowledge of it.

It cannot see malicious users who lie about their item and then follow the protocol; nor which items
the surplus of an attack is on, if malicious reports support the others as honest ones do; nor a
spike as large as a popular item.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ldprecover.certificate import Certificate
from ldprecover.certificate.evidence import RoundEvidence
from ldprecover.crafting import crafter_of
from ldprecover.crafting.crafter import DISPLACED_LAW
from ldprecover.items import indices_named
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import NEAR_CERTAIN, SHARED, Conclusions
from ldprecover.recovery.contract import Method, Recovery, RecoveryInputs
from ldprecover.recovery.unmixing import (
    History,
    NoisyEstimates,
    Unmixed,
    estimates_of_counts,
    estimates_of_histogram,
    filter_reports,
    history_of,
    unmix,
)
from ldprecover.recovery.unmixing.evidence import (
    LEVEL,
    evidence_of,
    noise_of_none,
)
from ldprecover.recovery.unmixing.filters.report_filters import unfit as unfit_for_filters
from ldprecover.recovery.unmixing.least_share import least_by_shift
from ldprecover.recovery.unmixing.model.posterior import projection
from ldprecover.types import FloatArray

_SUSPECT = 0.5  # probability above which an item is a suspect, and a round attacked
# Noise in units of a mean frequency, below which estimates are projected, and below which an attack
# needs evidence: what is left is the shape of the data, which follows no law.
_NO_NOISE, _FAINT = 0.05, 0.2
_CONFIDENCE = 0.975  # of the proven share: beta is the larger of two bounds
_LEAST_ITEMS = 16  # with fewer there is too little to learn from the others
_MANY = 2000  # with more, even a law close to theirs is far less likely than one with an attack
_MOST_FURTHER = 0.5
_SEVERAL = (
    "Several sets of items are attacked: the intervals allow for one more attack like the smallest "
    "of these."
)
_ASSUMED = "The frequencies assume an attack that the reports do not prove."
_DOUBT = (
    "An earlier round holds evidence of an attack itself, which is then carried on: leave it out "
    "in doubt."
)


def _history(inputs: RecoveryInputs, notes: list[str]) -> History | None:
    """Return the frequencies by earlier rounds, pooled by precision; note doubts that they are
    clean. None without any.
    """
    rounds = [
        RecoveryInputs(oracle, tally.frequencies(oracle), n=tally.n)
        for oracle, tally in inputs.history
    ]
    if not rounds:
        return None
    if max(evidence_of(one).probability for one in rounds) > _SUSPECT:
        notes.append(_DOUBT)
    each = [estimates_of_counts(one.oracle, one.poisoned, one.number) for one in rounds]
    weights = np.array([1 / one.sd**2 for one in each])
    z = np.average([one.z for one in each], axis=0, weights=weights)
    return history_of(inputs.oracle, z, weights.sum(axis=0) ** -0.5)


def _estimates(inputs: RecoveryInputs) -> NoisyEstimates:
    """Return estimates from the reports that pass the filters, or from the counts alone.

    Raises ParameterError if there are no reports.
    """
    oracle = inputs.oracle
    if inputs.reports is not None and oracle.laws.report_sums is not None:
        return estimates_of_histogram(oracle, inputs.reports.tally(), inputs.targets)
    reason = unfit_for_filters(oracle)
    if inputs.reports is not None and reason is None:
        return filter_reports(inputs.reports, inputs.targets)
    why = f"No reports were filtered: {reason or 'they were not given, only their counts'}."
    return replace(estimates_of_counts(oracle, inputs.poisoned, inputs.number), notes=(why,))


def _recover(inputs: RecoveryInputs) -> Recovery:
    oracle, n, estimates = inputs.oracle, inputs.number, _estimates(inputs)
    evidence = evidence_of(inputs, estimates.log_p)
    is_proven = evidence.probability >= NEAR_CERTAIN
    noise = noise_of_none(oracle, n) * oracle.domain_size
    reason, history, notes = estimates.undecided, None, list(estimates.notes)
    if reason is None and oracle.domain_size < _LEAST_ITEMS:
        reason = f"Fewer than {_LEAST_ITEMS} items tell too little of each other"
    elif reason is None and noise < _NO_NOISE and (oracle.fixed_size == 1 or not is_proven):
        reason = (
            f"The noise is only {noise:.1g} of a mean frequency, and data then follow no law of "
            "few parameters"
        )
    if reason is not None:
        unmixed = projection(estimates.z, estimates.sd)
        notes.append(f"{reason}: these are the estimates, projected.")
    else:
        history = _history(inputs, notes)
        # Where the tests see most attacks and saw none, hypotheses alone need odds of 171.
        least_attack = 0.994 if evidence.word == "none_seen" else 0.9
        if not is_proven and (noise < _FAINT or oracle.domain_size > _MANY):
            least_attack = math.inf
        unmixed = unmix(
            oracle,
            estimates,
            targets=inputs.targets,
            canaries=inputs.canaries,
            history=history,
            least_attack=least_attack,
        )
    attacked = unmixed.assumes_attack or bool(estimates.dropped)
    if attacked and not is_proven:
        notes.append(_ASSUMED)
    honest = unmixed.honest * estimates.n / (estimates.honest_kept * n)
    eta = max(1 / honest - 1, 0.0) if attacked else 0.0
    beta = 0.0
    if evidence.p_value < LEVEL:
        shown = max(estimates.malicious / n, least_by_shift(oracle, inputs.poisoned, n))
        beta = min(max(shown, _proven(oracle, inputs.poisoned, n)), 1.0)
    total, of_item = estimates.further
    if total:
        notes.append(_SEVERAL)
    unclear = [item for item, probability in estimates.suspects.items() if not probability]
    if is_proven and unclear:
        # A set and all other items tell the same of the reports: the fewer items are named.
        others = [item for item in range(oracle.domain_size) if item not in unclear]
        named = min(others or unclear, unclear, key=len)
        notes.append(f"{SHARED} {indices_named(named)}: raised or framed.")
    conclusions = Conclusions(
        standard_deviations=unmixed.sd,
        lower=np.maximum(unmixed.lower - of_item, 0.0),
        upper=np.minimum(unmixed.upper / (1 - min(total, _MOST_FURTHER)), 1.0),
        attack=evidence.word,
        attack_probability=evidence.probability,
        unseen=evidence.unseen,
        beta=beta,
        suspects=_suspects(estimates, unmixed, evidence.probability),
        dropped=estimates.dropped,
        history_weight=None if history is None else unmixed.p_history,
    )
    return inputs.recovery(
        unmixed.frequencies,
        (*notes, *_notes(conclusions)),
        eta=eta,
        targets=inputs.targets,
        malicious=((1 + eta) * inputs.poisoned - unmixed.frequencies) / eta if eta else None,
        genuine=unmixed.frequencies.copy() if eta else estimates.z.copy(),
        conclusions=conclusions,
    )


def _proven(oracle: FrequencyOracle, poisoned: FloatArray, n: int) -> float:
    """Return the share of malicious reports that the counts prove."""
    counts = np.rint(n * (oracle.q + (oracle.p - oracle.q) * poisoned))
    evidence = RoundEvidence(oracle, counts, n, 1 - _CONFIDENCE)
    return Certificate(evidence, 0.0, _CONFIDENCE).least_malicious_share


def _suspects(
    estimates: NoisyEstimates, unmixed: Unmixed, attack: float
) -> tuple[tuple[int, float], ...]:
    """Return the items that reports probably raised, the likeliest first, with probabilities."""
    raised = unmixed.spikes.copy()
    by_filters = bool(estimates.dropped) and estimates.dropped_raised
    for item, probability in estimates.suspects.items():
        # The estimates show only what reports that pass have raised.
        raised[item] = probability if by_filters else min(probability, raised[item])
    pairs = [(item, attack * p) for item, p in enumerate(raised.tolist())]
    return tuple(sorted((pair for pair in pairs if pair[1] > _SUSPECT), key=lambda pair: -pair[1]))


def _notes(conclusions: Conclusions) -> Iterator[str]:
    if conclusions.attack == "possible" or any(p < NEAR_CERTAIN for _, p in conclusions.suspects):
        yield (
            "The reports do not tell whether an attack raised items or they are popular, and "
            "perhaps framed: canaries and an earlier clean round tell more."
        )
    if conclusions.history_weight is not None:
        yield "The earlier rounds are taken to be clean."


def _unfit(oracle: FrequencyOracle) -> str | None:
    has_law = crafter_of(oracle).displacements is not None
    return None if has_law else f"{oracle.protocol} lacks {DISPLACED_LAW}"


METHOD = Method(
    name="unmix",
    summary="What users hold, an attack added and noise told apart by empirical Bayes; nothing "
    "need be known",
    uses={"n", "reports", "targets", "history", "canaries"},
    recover=_recover,
    needs={"counts", "n"},
    better_with={"history", "reports"},
    long=True,
    cost="Fourier transforms: 0.1 to 1 s for up to 1,000 items, 1 s for 10,000, 7 s by SS and LLH. "
    "Filters add 0.3 s per 100,000 reports",
    unfit=_unfit,
)
