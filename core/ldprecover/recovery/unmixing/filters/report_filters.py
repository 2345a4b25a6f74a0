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
from ldprecover.recovery.unmixing.estimates import NoisyEstimates
from ldprecover.recovery.unmixing.evidence import log_p_of_sizes
from ldprecover.recovery.unmixing.filters.debias import law_of_sizes, unbiased, unbiased_by_sizes
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.raised import RaisedSet, additions
from ldprecover.recovery.unmixing.filters.rules import (
    DroppedSet,
    hits_by_item,
    summary_and_sizes,
    tally_of_sizes,
)
from ldprecover.recovery.unmixing.filters.set_search import shared_sets
from ldprecover.recovery.unmixing.least_share import least_number
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.reports.source import ReportSource
from ldprecover.reports.tally import Tally
from ldprecover.types import BoolArray, Int64Array

_FEW = 4  # items of a set that popular items make up by chance, with a framed one
_LEAST_GAP = 1e-9
_VISIBLE = 2.0  # standard deviations by which an item's estimate falls without the dropped reports


def unfit(oracle: FrequencyOracle) -> str | None:
    """Return why reports of this protocol and number of items are not filtered, or None."""
    if oracle.fixed_size == 1:
        return "each is one item, and tells no more than its count"
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

    None is dropped if the others would not tell items apart. Raises ParameterError if there are
    no reports.
    """
    oracle, law = source.oracle, source.oracle.laws.size_law().probabilities()
    summary, sizes = np.split(source.total(summary_and_sizes), [-law.size])
    tally = Tally(summary, int(sizes.sum()))
    if not tally.n:
        raise ParameterError("there are no reports to filter")
    sets = shared_sets(source, tally)
    least = [sum(each.malicious for each in sets.decided)]
    malicious = max(least + [each.malicious for each in sets.undecided])
    log_p = sets.log_p
    if oracle.fixed_size is None:
        log_p = min(log_p, log_p_of_sizes(sizes, law))
        malicious = max(malicious, least_number(law[None], sizes))
    estimates: NoisyEstimates | None = None
    notes: tuple[str, ...] = ()
    raising = [each for each in sets.undecided if each.items.size > _FEW]
    if sets.decided and sets.tally.n:
        estimates = unbiased(oracle, sets.tally, sets.decided)
        if estimates is None:
            shared = np.sort(np.concatenate([each.items for each in sets.decided])).tolist()
            note = (
                f"Many reports share {indices_named(shared)}, but then most of the users would "
                "hold one of these, so no report was dropped for it."
            )
            notes = (note,)
        else:
            raising = [*sets.decided, *raising]
            dropped = (Dropped("shared items", _text(each), each.dropped) for each in sets.decided)
            estimates = replace(estimates, dropped=tuple(dropped))
    if estimates is None:
        estimates = _by_sizes(source, tally, sizes)
    # Items that hardly fall without the dropped reports were not raised: others of the set were.
    fall = oracle.estimate(tally.counts(oracle), tally.n) - estimates.z
    is_visible = fall >= _VISIBLE * estimates.sd
    suspects = {
        item: float(each.raised.is_certain and (is_visible[item] or not each.is_decided))
        for each in raising
        for item in each.items.tolist()
    }
    raised, further = [each.raised for each in raising], (0.0, 0.0)
    decided = [each.raised for each in raising if each.is_decided]
    if decided and len(raising) > 1:
        total, t = min((each.fits[0].raised, each.items.size) for each in decided)
        further = total, total / t
    if targets:
        raised = []
        if len(targets) <= min(THRESHOLDS.pair_items, oracle.domain_size // 2):
            items, members = np.array(targets), np.ones(len(targets), np.bool_)
            hits = source.total(partial(hits_by_item, items=items, members=members))
            raised = [RaisedSet.of(oracle, items, hits[:, -1])]
    return replace(
        estimates,
        suspects=dict(sorted(suspects.items())),
        additions=tuple(additions(oracle, estimates, raised)),
        notes=(*notes, *estimates.notes),
        log_p=min(math.log(2) + log_p, 0.0),
        malicious=malicious,
        further=further,
    )


def _by_sizes(source: ReportSource, tally: Tally, sizes: Int64Array) -> NoisyEstimates:
    """Return the estimates without the reports of sizes that are too frequent."""
    oracle, law = source.oracle, source.oracle.laws.size_law().probabilities()
    bad, _ = excess_bins(sizes, law[None], THRESHOLDS.size_excess)
    every = unbiased_by_sizes(oracle, tally, np.ones(law.size, np.bool_))
    if not bad.any() or law[bad].sum() > THRESHOLDS.honest_loss:
        return every
    removed = source.total(partial(tally_of_sizes, sizes=bad))
    _, p, q = law_of_sizes(oracle, ~bad)
    # Reports of no item or all tell nothing: p = q but for rounding.
    if removed.n == tally.n or p - q < _LEAST_GAP:
        return replace(every, notes=("No report was filtered out: the others tell nothing.",))
    text = f"reports whose number of supported items is {_numbers_as_text(bad & (sizes > 0))}"
    dropped = Dropped("frequent sizes", f"{text}, which too many do", removed.n)
    return replace(unbiased_by_sizes(oracle, tally - removed, ~bad), dropped=(dropped,))


def _text(dropped: DroppedSet) -> str:
    items = indices_named(np.sort(dropped.items).tolist())
    return f"reports that support {_numbers_as_text(dropped.bins)} of {items}, which too many do"


def _numbers_as_text(chosen: BoolArray) -> str:
    """Return the positions that are set as text, such as "1, 3"."""
    return ", ".join(map(str, np.flatnonzero(chosen).tolist()))
