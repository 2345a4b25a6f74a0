"""Detection: drops the reports that match the targets, and estimates from the rest."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.estimation.simplex import project_simplex
from ldprecover.items import items_in_words
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.contract import Method, Option, Recovery, RecoveryInputs
from ldprecover.reports.sample import Sample
from ldprecover.reports.tally import Tally
from ldprecover.types import BoolArray, Reports

Suspicion = Callable[[FrequencyOracle, Reports], BoolArray]
"""A picklable function that flags malicious reports, each for itself."""


def drop(
    inputs: RecoveryInputs,
    suspicious: Suspicion,
    notes: list[str],
    *,
    targets: tuple[int, ...] = (),
    projected: bool = True,
) -> Recovery:
    """Return the recovery by dropping the suspicious reports; the others' estimate is `genuine`.

    One pass counts the dropped reports; the others' counts are those behind the frequencies less
    these. If `n` is not the number of the reports that were read, a second pass counts all.
    Raises ParameterError if there are no reports, or all of them are dropped.
    """
    name, oracle, source = inputs.request.method, inputs.oracle, inputs.reports
    assert source is not None  # the contract requires them
    dropped = source.total(partial(_dropped, suspicious=suspicious))
    total = source.n or 0
    remaining = total - dropped.n
    if not remaining:
        raise ParameterError(
            f"{name}: all {dropped.n} reports would be dropped, and nothing is left to estimate "
            "from"
        )
    notes = [*notes, f"Dropped {dropped.n} of {total} reports ({dropped.n / total:.3g})."]
    if total == inputs.n:
        # The counts that give these frequencies: the inverse of the estimator.
        counts = np.rint(oracle.laws.honest_support(inputs.poisoned) * total)
    else:
        counts = source.tally().counts(oracle).astype(np.float64)
        if inputs.n is not None:
            notes.append(
                "The reports that were read are not those of the poisoned frequencies: more or "
                "fewer had come."
            )
    counts_dropped = dropped.counts(oracle)
    genuine = oracle.estimate(counts - counts_dropped, remaining)
    malicious = oracle.estimate(counts_dropped, dropped.n) if dropped.n else np.zeros_like(genuine)
    return inputs.recovery(
        project_simplex(genuine) if projected else genuine.copy(),
        notes,
        eta=dropped.n / remaining,
        targets=targets,
        malicious=malicious,
        genuine=genuine,
    )


def _dropped(sample: Sample, *, suspicious: Suspicion) -> Tally:
    return sample[suspicious(sample.oracle, sample.reports)].tally()


def _matches(
    oracle: FrequencyOracle, reports: Reports, *, targets: tuple[int, ...], match: str
) -> BoolArray:
    """Return which reports support any or all of the targets."""
    supported = oracle.supports(reports, np.array(targets))
    return np.asarray(supported.any(axis=1) if match == "any" else supported.all(axis=1))


def _recover(inputs: RecoveryInputs) -> Recovery:
    """Return the estimate from the reports that do not match the targets (paper, VI-A)."""
    oracle, targets, options = inputs.oracle, inputs.targets, inputs.request.options
    size, match, projected = oracle.fixed_size, str(options["match"]), bool(options["project"])
    if match == "all" and size is not None and len(targets) > size:
        raise ParameterError(
            f"detection: a {oracle.protocol} report supports {items_in_words(size)}, so none "
            f"matches all {len(targets)} targets"
        )
    matched = "any target" if match == "any" else "all targets"
    notes = [f"Reports that support {matched} are taken as malicious{_honest_too(inputs, match)}."]
    if not projected:
        notes.append("Not projected: the result need not be a distribution.")
    suspicious = partial(_matches, targets=targets, match=match)
    return drop(inputs, suspicious, notes, targets=targets, projected=projected)


def _honest_too(inputs: RecoveryInputs, match: str) -> str:
    """Return the sentence on honest reports of other items that match the targets by chance."""
    hits = inputs.oracle.laws.hits
    law = None if hits is None else hits.nonholder_law(np.array(inputs.targets))
    if law is None:
        return ""
    share = float(1 - law[0] if match == "any" else law[-1])
    return f"; of honest reports of the other items a share {share:.3g} does so too"


METHOD = Method(
    name="detection",
    summary="Drop reports that support the targets, estimate from the rest (paper, VI-A)",
    uses={"targets", "reports"},
    recover=_recover,
    needs={"reports", "targets"},
    gives="frequencies",
    cost="O(nd), one pass over the reports",
    options=(
        Option(
            "match",
            default="any",
            meaning="Targets that a dropped report supports: any of them, or all",
            choices=("any", "all"),
        ),
        Option(
            "project",
            default=1,
            low=0,
            high=1,
            meaning="1 projects the estimate on the simplex, 0 does not",
        ),
    ),
)
