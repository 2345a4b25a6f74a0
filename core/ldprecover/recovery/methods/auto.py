"""The method auto: un-mixing where it fits the round, else projection."""

from dataclasses import replace

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.checking import recovered_by
from ldprecover.recovery.contract import AUTO, METHODS, Method, Recovery, RecoveryInputs
from ldprecover.recovery.methods import unmix
from ldprecover.recovery.unmixing import LEAST_ITEMS

_PROJECTION = "norm-sub"


def chosen_method(oracle: FrequencyOracle, available: frozenset[str]) -> tuple[Method, str]:
    """Return the method that auto runs with the `available` NEEDS, and the reason."""
    reason = unmix.METHOD.refusal(oracle, available)
    if reason is None and oracle.domain_size < LEAST_ITEMS:
        reason = f"unmix needs at least {LEAST_ITEMS} items, not {oracle.domain_size}"
    if reason is not None:
        return METHODS[_PROJECTION], reason
    return unmix.METHOD, f"it fits {oracle.protocol} over {oracle.domain_size} items"


def _recover(inputs: RecoveryInputs) -> Recovery:
    method, reason = chosen_method(inputs.oracle, inputs.available)
    request = replace(inputs.request, method=method.name)
    recovery = recovered_by(method, replace(inputs, request=request))
    return replace(recovery, notes=(f"{AUTO} chose {method.name}: {reason}.", *recovery.notes))


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
