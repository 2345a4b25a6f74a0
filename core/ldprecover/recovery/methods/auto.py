"""The method auto: un-mixing where it fits the round, else projection."""

from __future__ import annotations

import math
from dataclasses import replace

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Conclusions
from ldprecover.recovery.contract import AUTO, METHODS, Method, Recovery, RecoveryInputs
from ldprecover.recovery.methods import unmix
from ldprecover.recovery.unmixing.evidence import evidence_of

_PROJECTION = "norm-sub"
_LEAST_NOISE = 0.01  # of a mean frequency; with less, data fit no listed shape
_MOST_ITEMS = 10_000  # with more, un-mixing takes more than 100 MB of memory
_REPORTS_PER_ITEM = 10
"""Fewer reports leave the d estimates with hardly more degrees of freedom than reports. Chance then
looks like an attack: of 8 honest rounds of 50 reports over 102 items up to 5 have P > 0.9."""


def chosen_method(
    oracle: FrequencyOracle, available: frozenset[str], n: int | None = None
) -> tuple[Method, str]:
    """Return the method that auto runs with the `available` NEEDS, and the reason.

    It is the projection for fewer than 10 d reports, which do not tell an attack from chance, for n
    reports with next to no noise, because then the projection has next to no error, and for more
    than 10,000 items, by their cost.
    """
    reason = unmix.METHOD.refusal(oracle, available)
    if reason is None and oracle.domain_size > _MOST_ITEMS:
        reason = f"over more than {_MOST_ITEMS:,} items unmix takes more than 100 MB of memory"
    least = _REPORTS_PER_ITEM * oracle.domain_size
    if reason is None and n is not None and n < least:
        reason = (
            f"{n:,} reports over {oracle.domain_size:,} items are too few to tell an attack from "
            f"chance; unmix needs {least:,}"
        )
    if reason is None and n is not None:
        noise = math.sqrt(float(oracle.variance(0.0, n))) * oracle.domain_size
        if noise < _LEAST_NOISE:
            reason = f"the noise of {n:,} reports is only {noise:.1g} of a mean frequency"
    if reason is not None:
        return METHODS[_PROJECTION], reason
    return unmix.METHOD, f"it fits {oracle.protocol} over {oracle.domain_size} items"


def _recover(inputs: RecoveryInputs) -> Recovery:
    n = inputs.number if "n" in inputs.available else None
    method, reason = chosen_method(inputs.oracle, inputs.available, n)
    recovery = method.recover(inputs)
    if recovery.conclusions is None and n is not None:
        evidence = evidence_of(inputs)
        conclusions = Conclusions(
            attack=evidence.word,
            attack_probability=evidence.probability,
            unseen=evidence.unseen,
        )
        recovery = replace(recovery, conclusions=conclusions)
    notes = (f"{AUTO} chose {method.name}: {reason}.", *recovery.notes)
    return replace(recovery, method=method.name, notes=notes)


METHOD = Method(
    name=AUTO,
    summary="Un-mixing (unmix) where it fits the round, else projection (norm-sub); a note says "
    "which",
    uses=unmix.METHOD.uses,
    recover=_recover,
    better_with=unmix.METHOD.better_with | {"n"},
    long=True,
    cost="That of the method it chooses",
)
