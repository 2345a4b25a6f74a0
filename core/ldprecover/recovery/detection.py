"""Detection: drop the reports that match the targets, and estimate from the rest."""

from collections.abc import Callable

import numpy as np

from ldprecover._types import BoolArray, Reports
from ldprecover.errors import ParameterError
from ldprecover.protocols import GRR
from ldprecover.recovery.base import Knowledge, Method, Recovery
from ldprecover.recovery.reports import split, supported
from ldprecover.recovery.simplex import project_simplex

__all__ = ["METHODS", "drop"]


def drop(
    name: str,
    knowledge: Knowledge,
    suspicious: Callable[[Reports], BoolArray],
    notes: list[str],
    *,
    targets: tuple[int, ...] = (),
    projected: bool = True,
) -> Recovery:
    """Return the recovery by dropping the suspicious reports: genuine is what the others estimate.

    Raises ParameterError where there are no reports, or none is left.
    """
    oracle = knowledge.oracle
    if knowledge.reports is None:
        raise ParameterError(f"{name} needs the reports themselves")
    kept, dropped = split(oracle, knowledge.reports, suspicious)
    if not kept.n:
        raise ParameterError(f"{name}: all {dropped.n} reports would be dropped, and nothing is left to estimate from")
    genuine = oracle.estimate(kept.counts, kept.n)
    total = kept.n + dropped.n
    malicious = oracle.estimate(dropped.counts, dropped.n) if dropped.n else np.zeros_like(genuine)
    notes = [*notes, f"Dropped {dropped.n} of {total} reports ({dropped.n / total:.3g})."]
    counted = oracle.estimate((kept + dropped).counts, total)
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


def _method(reading: str, projected: bool) -> Method:
    name = f"detection-{reading}" + ("" if projected else "-unprojected")

    def recover(knowledge: Knowledge) -> Recovery:
        """Return the estimate from the reports that do not match the targets (paper, VI-A)."""
        oracle, targets = knowledge.oracle, knowledge.targets
        if reading == "all" and isinstance(oracle, GRR) and len(targets) > 1:
            raise ParameterError(f"{name}: a grr report supports one item, so none matches all {len(targets)} targets")
        columns = np.array(targets)
        match = np.any if reading == "any" else np.all

        def suspicious(reports: Reports) -> BoolArray:
            matched: BoolArray = match(supported(oracle, reports, columns), axis=1)
            return matched

        matched = "any target" if reading == "any" else "all targets"
        note = (
            f"Reports that support {matched} are taken as malicious; of honest reports of the other items "
            f"a share {_honest_share(knowledge, reading):.3g} does so too."
        )
        notes = [note]
        if not projected:
            notes.append("Not projected: the result need not be a distribution.")
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


def _honest_share(knowledge: Knowledge, reading: str) -> float:
    """Return P(an honest report of an item that is no target supports any or all targets)."""
    q, r = knowledge.oracle.q, len(knowledge.targets)
    if isinstance(knowledge.oracle, GRR):
        return r * q
    return 1 - (1 - q) ** r if reading == "any" else q**r


METHODS = tuple(_method(reading, projected) for reading in ("any", "all") for projected in (True, False))
