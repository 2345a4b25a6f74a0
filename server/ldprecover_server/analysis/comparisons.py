"""Comparisons of two windows of rounds: the verdicts of both, and then the changes."""

from functools import partial
from typing import Any

from ldprecover.errors import ParameterError
from ldprecover_interface.changes import ChangesRequest
from ldprecover_interface.verdicts import Verdict
from ldprecover_server.analysis import tasks
from ldprecover_server.analysis.analyses import Analyses, Analysis, AnalysisCaller, stored_verdict
from ldprecover_server.analysis.verdicts import verdict_of
from ldprecover_server.rounds import Window
from ldprecover_server.storage import NEAR_CERTAIN


async def compare(
    analyses: Analyses,
    before: Window,
    after: Window,
    request: ChangesRequest,
    caller: AnalysisCaller,
) -> dict[str, Any]:
    """Return fields of `Changed`: all but names and numbers. Raises as `Analyses.run` does."""
    if request.people == "same" and (before[-1].form or after[-1].form):
        raise ParameterError("people must be sample for a form: each answers a question by chance")
    sides = {"since": before, "round": after}
    verdicts = {name: await _verdict(analyses, side, caller) for name, side in sides.items()}
    is_attacked = any(each.attack in ("possible", NEAR_CERTAIN) for each in verdicts.values())
    options = request.model_dump(include={"malicious_share", "confidence", "people"})
    compute = partial(tasks.changes, is_attacked=is_attacked, **options)

    def look_up(window: Window, is_complete: bool) -> Analysis[dict[str, Any]]:
        return Analysis(compute, dict[str, Any], window, reads=False, history=[before])

    fields = await analyses.run(after, caller, look_up)
    return fields | {
        "confidence": request.confidence,
        "verdicts": verdicts,
        "words_from": "certificate" if is_attacked else "interval",
    }


async def _verdict(analyses: Analyses, window: Window, caller: AnalysisCaller) -> Verdict:
    """Return the verdict of all reports of a window, or of its round with a near certain attack."""
    n = sum(each.n for each in window)
    for each in window:
        stored = stored_verdict(each)
        if stored and (stored.attack == NEAR_CERTAIN or stored.reports == n):
            return stored
    result = await analyses.run(window, caller, analyses.look_up_verdict)
    labels = await caller.run(analyses.rounds.items, window[-1])
    return verdict_of(result, labels, n)
