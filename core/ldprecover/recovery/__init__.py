"""Recovery from poisoning: one module a method, one contract, one table."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from numpy.typing import ArrayLike

from ldprecover._checks import finite_vector
from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.items import target_indices
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery import (
    conditional,
    detection,
    diffstats,
    fiad,
    kmeans,
    ldprecover,
    likelihood,
    post_processing,
    unmix,
)
from ldprecover.recovery.base import (
    AUTO,
    DEFAULT_ETA,
    MAX_ETA,
    NEEDS,
    Knowledge,
    Method,
    Option,
    Recovery,
)
from ldprecover.recovery.checking import recovered_by
from ldprecover.recovery.conclusions import Conclusions, Dropped
from ldprecover.recovery.malicious import MALICIOUS_MODELS
from ldprecover.recovery.reports import ReportSource
from ldprecover.recovery.share import MaliciousShare, estimate_share
from ldprecover.recovery.simplex import noise_exceeds_signal, project_simplex
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
    "Knowledge",
    "MaliciousShare",
    "Method",
    "Option",
    "Recovery",
    "ReportSource",
    "estimate_share",
    "project_simplex",
    "recover",
]

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        ldprecover.METHOD,
        *post_processing.METHODS,
        *detection.METHODS,
        conditional.METHOD,
        diffstats.METHOD,
        fiad.METHOD,
        *kmeans.METHODS,
        *likelihood.METHODS,
        unmix.METHOD,
    )
}


def recover(
    oracle: FrequencyOracle,
    frequencies: ArrayLike,
    *,
    method: str = "ldprecover",
    eta: float | str = DEFAULT_ETA,
    targets: Iterable[int] = (),
    malicious_model: str = "paper",
    n: int | None = None,
    reports: "Reports | Callable[[], Iterable[Reports]] | ReportSource | None" = None,
    support: ArrayLike | None = None,
    options: Mapping[str, object] | None = None,
    history: Iterable[tuple[FrequencyOracle, Tally]] = (),
    canaries: Iterable[int] = (),
    progress: Callable[[float], None] | None = None,
) -> Recovery:
    """Return what `method` recovers from poisoned, unbiased and unclipped frequencies of the d
    items.

    `eta`, `targets`, `malicious_model` and `support` are assumptions about the attack, explained at
    `Knowledge`; one that is given and not used is checked all the same, and a note says so. `n` is
    the number of reports, `reports` the reports themselves, packed: an array, a function that
    returns an iterator over arrays and is called for each pass, or a ReportSource of the same
    oracle, which can have them measured in other processes. `history` are earlier rounds over the
    same items, each its oracle and its tally, that are known to be clean. `options` are the
    method's own. `canaries` are the items that nobody holds. `progress` is called with the share
    that is done of what a long method does once it has read the reports. What is needed, promised
    and paid is in METHODS. Raises ParameterError, with the reason, for what a method cannot do, and
    ContractError, which names the method, where it raises or returns what it may not.
    """
    if not isinstance(method, str) or method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    chosen = METHODS[method]
    knowledge = Knowledge(
        oracle,
        finite_vector(frequencies, "frequencies"),
        eta,
        target_indices(targets, oracle.domain_size),
        malicious_model,
        n=n,
        reports=_source(oracle, reports),
        support=None if support is None else finite_vector(support, "support"),
        options=chosen.checked({} if options is None else options),
        history=history,  # type: ignore[arg-type]  # it checks what it is given
        canaries=tuple(canaries),
        progress=progress,
    )
    refusal = chosen.refusal(oracle, knowledge.gives)
    if refusal is not None:
        raise ParameterError(refusal)
    recovery = recovered_by(chosen, knowledge)
    said = [chosen.unused(knowledge), _drowned(knowledge, recovery)]
    notes = [note for note in said if note is not None]
    return replace(recovery, notes=(*recovery.notes, *notes)) if notes else recovery


def _drowned(knowledge: Knowledge, recovery: Recovery) -> str | None:
    """Return the sentence on a round too small for its noise, of a method that does not state its
    own errors.
    """
    if knowledge.n is None or recovery.conclusions is not None:
        return None
    if not noise_exceeds_signal(
        knowledge.poisoned, float(knowledge.oracle.variance(0.0, knowledge.n))
    ):
        return None
    return (
        "The noise of so few reports exceeds what tells the items apart: 1/d for every item is "
        "expected to be nearer "
        "to their frequencies than the projection of the estimates is."
    )


def _source(
    oracle: FrequencyOracle,
    reports: "Reports | Callable[[], Iterable[Reports]] | ReportSource | None",
) -> ReportSource | None:
    if not isinstance(reports, ReportSource):
        return None if reports is None else ReportSource(oracle, reports)
    if reports.oracle != oracle:
        raise ParameterError(f"reports are of the oracle {reports.oracle}, not of {oracle}")
    return reports
