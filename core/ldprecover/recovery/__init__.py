"""Recovery of the honest frequencies from a poisoned round, by one of METHODS."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from numpy.typing import ArrayLike

from ldprecover._checks import finite_vector
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import noise_note
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.checking import recovered_by
from ldprecover.recovery.conclusions import Conclusions, Dropped
from ldprecover.recovery.contract import (
    AUTO,
    DEFAULT_ETA,
    MAX_ETA,
    METHODS,
    NEEDS,
    Method,
    Option,
    Recovery,
    RecoveryInputs,
    RecoveryRequest,
)
from ldprecover.recovery.malicious_models import MALICIOUS_MODELS
from ldprecover.recovery.methods import BUILT_IN
from ldprecover.recovery.methods.auto import chosen_method
from ldprecover.recovery.reports import ReportSource
from ldprecover.recovery.share import MaliciousShare, estimate_share
from ldprecover.recovery.simplex import project_simplex
from ldprecover.types import Reports

__all__ = [
    "AUTO",
    "DEFAULT_ETA",
    "MALICIOUS_MODELS",
    "MAX_ETA",
    "METHODS",
    "NEEDS",
    "Conclusions",
    "Dropped",
    "MaliciousShare",
    "Method",
    "Option",
    "Recovery",
    "RecoveryInputs",
    "RecoveryRequest",
    "ReportSource",
    "chosen_method",
    "estimate_share",
    "project_simplex",
    "recover",
]

METHODS.update((method.name, method) for method in BUILT_IN)


def recover(
    oracle: FrequencyOracle,
    frequencies: ArrayLike,
    request: RecoveryRequest | str = AUTO,
    *,
    n: int | None = None,
    reports: "Reports | Callable[[], Iterable[Reports]] | ReportSource | None" = None,
    canaries: Iterable[int] = (),
    progress: Callable[[float], None] | None = None,
) -> Recovery:
    """Return what a method recovers from the poisoned, unbiased and unclipped frequencies.

    `frequencies` has d entries, one for each item. `request` names the method and states the
    assumptions about the attack; a str is short for the request with this method and the defaults.
    A note of the result names the assumptions that the method does not use. `n` is the number of
    reports. `reports` are the packed reports: an array, a function that returns an iterator over
    arrays and is called for each pass, or a ReportSource of the same oracle, which can measure them
    in other processes. `canaries` are the indices of the items that nobody holds. A long method
    calls `progress` with the share, from 0 to 1, that is done after it has read the reports.

    Raises ParameterError, with the reason, for a request that the method cannot serve, and
    ContractError, with the method's name, for a method that breaks its contract.

        recover(oracle, frequencies, "unmix", n=tally.n)
        recover(oracle, frequencies, RecoveryRequest("ldprecover", eta=0.1, targets=[3, 40]))
    """
    if not isinstance(request, RecoveryRequest):
        request = RecoveryRequest(request)
    method = METHODS[request.method]
    inputs = RecoveryInputs(
        oracle,
        finite_vector(frequencies, "frequencies"),
        request,
        n=n,
        reports=_source(oracle, reports),
        canaries=tuple(canaries),
        progress=progress,
    )
    refusal = method.refusal(oracle, inputs.available)
    if refusal is not None:
        raise ParameterError(refusal)
    recovery = recovered_by(method, inputs)
    notes = [
        note for note in (METHODS[recovery.method].unused(request), _noise_note(inputs)) if note
    ]
    return replace(recovery, notes=(*recovery.notes, *notes)) if notes else recovery


def _noise_note(inputs: RecoveryInputs) -> str | None:
    if inputs.n is None:
        return None
    return noise_note(inputs.poisoned, inputs.oracle.standard_errors(inputs.poisoned, inputs.n))


def _source(
    oracle: FrequencyOracle,
    reports: "Reports | Callable[[], Iterable[Reports]] | ReportSource | None",
) -> ReportSource | None:
    if not isinstance(reports, ReportSource):
        return None if reports is None else ReportSource(oracle, reports)
    if reports.oracle != oracle:
        raise ParameterError(f"reports are of the oracle {reports.oracle}, not of {oracle}")
    return reports
