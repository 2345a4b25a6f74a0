"""Detection: drop the reports that match the targets, and estimate from the rest."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.items import items_in_words
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.base import Knowledge, Method, Recovery
from ldprecover.recovery.simplex import project_simplex
from ldprecover.tally import Tally
from ldprecover.types import BoolArray, Reports

__all__ = ["METHODS", "Suspicion", "drop"]

Suspicion = Callable[[FrequencyOracle, Reports], BoolArray]
"""Which of some reports are taken as malicious: picklable, and for each report alone."""


def drop(
    name: str,
    knowledge: Knowledge,
    suspicious: Suspicion,
    notes: list[str],
    *,
    targets: tuple[int, ...] = (),
    projected: bool = True,
) -> Recovery:
    """Return the recovery by dropping the suspicious reports: genuine is what the others estimate. One pass.

    Raises ParameterError where there are no reports, or all of them are dropped.
    """
    oracle = knowledge.oracle
    if knowledge.reports is None:
        raise ParameterError(f"{name} needs the reports themselves")
    split = knowledge.reports.total(partial(_split, suspicious=suspicious))
    kept, dropped = split.kept, split.dropped
    if not kept.n:
        raise ParameterError(f"{name}: all {dropped.n} reports would be dropped, and nothing is left to estimate from")
    genuine = oracle.estimate(kept.counts(oracle), kept.n)
    total = kept.n + dropped.n
    malicious = oracle.estimate(dropped.counts(oracle), dropped.n) if dropped.n else np.zeros_like(genuine)
    notes = [*notes, f"Dropped {dropped.n} of {total} reports ({dropped.n / total:.3g})."]
    counted = oracle.estimate((kept + dropped).counts(oracle), total)
    if not np.allclose(counted, knowledge.poisoned, rtol=1e-9, atol=1e-9 * (1 + abs(oracle.malicious_sum))):
        notes.append("The reports that were read are not those of the poisoned frequencies: more or fewer had come.")
    return Recovery(
        method=name,
        eta=dropped.n / kept.n,
        targets=targets,
        malicious_sum=oracle.malicious_sum,
        poisoned=knowledge.poisoned,
        malicious=malicious,
        genuine=genuine,
        recovered=project_simplex(genuine) if projected else genuine.copy(),
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class _Split:
    """The tallies of the reports that are kept and of those that are dropped."""

    kept: Tally
    dropped: Tally

    def __add__(self, other: "_Split") -> "_Split":
        return _Split(self.kept + other.kept, self.dropped + other.dropped)


def _split(oracle: FrequencyOracle, reports: Reports, *, suspicious: Suspicion) -> _Split:
    bad = suspicious(oracle, reports)
    return _Split(Tally.of(oracle, reports[~bad]), Tally.of(oracle, reports[bad]))


def _matches(oracle: FrequencyOracle, reports: Reports, *, targets: tuple[int, ...], reading: str) -> BoolArray:
    """Return which reports support any or all of the targets."""
    found = oracle.supported(reports, np.array(targets))
    return np.asarray(found.any(axis=1) if reading == "any" else found.all(axis=1))


def _method(reading: str, projected: bool) -> Method:
    name = f"detection-{reading}" + ("" if projected else "-unprojected")

    def recover(knowledge: Knowledge) -> Recovery:
        """Return the estimate from the reports that do not match the targets (paper, VI-A)."""
        oracle, targets = knowledge.oracle, knowledge.targets
        size = oracle.fixed_size
        if reading == "all" and size is not None and len(targets) > size:
            raise ParameterError(
                f"{name}: a {oracle.protocol} report supports {items_in_words(size)}, so none matches all "
                f"{len(targets)} targets"
            )
        matched = "any target" if reading == "any" else "all targets"
        notes = [f"Reports that support {matched} are taken as malicious{_honest_too(knowledge, reading)}."]
        if not projected:
            notes.append("Not projected: the result need not be a distribution.")
        suspicious = partial(_matches, targets=targets, reading=reading)
        return drop(name, knowledge, suspicious, notes, targets=targets, projected=projected)

    return Method(
        name=name,
        summary=f"Drop reports that support {reading} target{'' if reading == 'any' else 's'}, estimate from the rest"
        + ("" if projected else ", without projection"),
        uses=frozenset({"targets", "reports"}),
        recover=recover,
        needs=frozenset({"reports", "targets"}),
        gives="distribution" if projected else "frequencies",
        cost="O(nd), one pass over the reports",
    )


def _honest_too(knowledge: Knowledge, reading: str) -> str:
    """Return what is known of P(an honest report supports any or all targets, where its item is not a target)."""
    try:
        law = knowledge.oracle.others_law(np.array(knowledge.targets))
    except ParameterError:
        return ""
    share = float(1 - law[0] if reading == "any" else law[-1])
    return f"; of honest reports of the other items a share {share:.3g} does so too"


METHODS = tuple(_method(reading, projected) for reading in ("any", "all") for projected in (True, False))
