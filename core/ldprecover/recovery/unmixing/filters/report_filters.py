"""Drops reports that honest users would hardly send, and estimates from the rest without bias.

Nothing need be known about an attack. Known are the laws of honest reports, whatever their users
hold: how many items they support, how often two items together, and how many items of any set.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.items import indices_named
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.reports import ReportSource
from ldprecover.recovery.unmixing.estimates import NoisyEstimates
from ldprecover.recovery.unmixing.evidence import log_p_of_sizes
from ldprecover.recovery.unmixing.filters.debias import unbiased, unbiased_by_sizes
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.raised import RaisedSet, additions
from ldprecover.recovery.unmixing.filters.rules import (
    DroppedSet,
    SizedTally,
    set_histogram,
    sized_tally,
    tally_of_sizes,
)
from ldprecover.recovery.unmixing.filters.set_search import shared_sets
from ldprecover.recovery.unmixing.least_share import least_number
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import BoolArray, FloatArray

_FEW = 4  # items of a set that popular items make up by chance, with a framed one
_VISIBLE = 2.0  # standard deviations by which an item's estimate falls without the dropped reports


def unfit(oracle: FrequencyOracle) -> str | None:
    """Return why reports of this protocol and number of items are not filtered, or None."""
    if oracle.fixed_size == 1:
        return "each is one item, and tells no more than its count"
    if oracle.assigned_seeds:
        return f"{oracle.protocol} reports with assigned seeds are not filtered"
    if oracle.laws.hits is None or oracle.laws.hits.other_items_law(1, True) is None:
        return (
            f"how many of several items an honest {oracle.protocol} report supports is not known, "
            "or tells nothing"
        )
    return None


def filter_reports(source: ReportSource, targets: tuple[int, ...] = ()) -> NoisyEstimates:
    """Return unbiased estimates from the reports that pass the filters, and what was dropped.

    Dropped are reports that support too many items of a set that too many reports share, for up to
    five sets; or, without such a set, reports of sizes that are too frequent. With the estimates
    come what malicious reports may have added to the `targets`, or else to the sets. Two passes
    over clean reports, at most 24; memory does not grow with their number. They must be of an
    oracle that is not `unfit`.

    None is dropped if all would be. Raises ParameterError if there are no reports.
    """
    oracle, first = source.oracle, source.total(sized_tally)
    if not first.tally.n:
        raise ParameterError("there are no reports to filter")
    law = oracle.laws.size_law().probabilities()
    sets = shared_sets(source, first.tally)
    log_p, malicious = sets.log_p, sets.malicious
    if oracle.fixed_size is None:
        log_p = min(log_p, log_p_of_sizes(first.sizes, law))
        malicious = max(malicious, least_number(law[None], first.sizes))
    undecided = tuple(each for each in sets.undecided if each.items.size > _FEW)
    estimates, raised = None, undecided
    notes: tuple[str, ...] = ()
    if sets.dropped and sets.tally.n:
        estimates = unbiased(oracle, sets.tally, sets.dropped)
        raised = (*sets.dropped, *undecided) if estimates else ()
        if estimates is None:
            shared = np.sort(np.concatenate([each.items for each in sets.dropped])).tolist()
            note = (
                f"Many reports share {indices_named(shared)}, but then most of the users would "
                "hold one of these, so no report was dropped for it."
            )
            notes = (note,)
        else:
            dropped = tuple(
                Dropped("shared items", _description(each), each.reports) for each in sets.dropped
            )
            estimates = replace(estimates, dropped=dropped)
    if estimates is None:
        estimates = _by_sizes(source, first, law)
        notes += estimates.notes
    suspects = {
        item: float(each.raised.is_certain) for each in raised for item in each.items.tolist()
    }
    if estimates.dropped:
        received = oracle.estimate(first.tally.counts(oracle), first.tally.n)
        for each in sets.dropped:
            for item in each.items.tolist():
                if received[item] - estimates.z[item] < _VISIBLE * estimates.sd[item]:
                    suspects[item] = 0.0  # others of the set were raised
    shares = [each.raised for each in raised]
    if targets:
        items = np.array(targets)
        shares = [RaisedSet.of(oracle, items, source.total(partial(set_histogram, items=items)))]
    return replace(
        estimates,
        suspects=dict(sorted(suspects.items())),
        additions=tuple(additions(oracle, estimates, shares)),
        notes=notes,
        log_p=min(math.log(2) + log_p, 0.0),
        malicious=malicious,
    )


def _by_sizes(source: ReportSource, first: SizedTally, law: FloatArray) -> NoisyEstimates:
    """Return the estimates without the reports of sizes that are too frequent."""
    oracle, tally = source.oracle, first.tally
    bad = excess_bins(first.sizes, law[None], THRESHOLDS.size_excess).bins
    if not bad.any() or law[bad].sum() > THRESHOLDS.honest_loss:
        return unbiased_by_sizes(oracle, tally, np.ones(law.size, np.bool_))
    removed = source.total(partial(tally_of_sizes, sizes=bad))
    if removed.n == tally.n:
        estimates = unbiased_by_sizes(oracle, tally, np.ones(law.size, np.bool_))
        return replace(estimates, notes=("No report was filtered out: all would be.",))
    text = f"reports whose number of supported items is {_numbers_as_text(bad & (first.sizes > 0))}"
    dropped = Dropped("frequent sizes", f"{text}, which too many do", removed.n)
    return replace(unbiased_by_sizes(oracle, tally - removed, ~bad), dropped=(dropped,))


def _description(dropped: DroppedSet) -> str:
    items = indices_named(np.sort(dropped.items).tolist())
    return f"reports that support {_numbers_as_text(dropped.bins)} of {items}, which too many do"


def _numbers_as_text(chosen: BoolArray) -> str:
    """Return the positions that are set as text, such as "1, 3 or 5 to 8"."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    runs = [
        str(a) if b == a + 1 else f"{a} to {b - 1}"
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
    return runs[0] if len(runs) == 1 else f"{', '.join(runs[:-1])} or {runs[-1]}"
