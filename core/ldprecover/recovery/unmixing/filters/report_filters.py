"""Drops reports that honest users would hardly send, and estimates from the rest without bias.

Nothing need be known about an attack. Known are the laws of honest reports, whatever their users
hold: how many items they support, how often two items together, and how many items of any set.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.items import indices_named
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.unmixing.estimates import NoisyEstimates, why_undecided
from ldprecover.recovery.unmixing.evidence import log_p_of_set, log_p_of_sizes
from ldprecover.recovery.unmixing.filters.debias import law_of_sizes, unbiased, unbiased_by_sizes
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.raised import RaisedSet, additions
from ldprecover.recovery.unmixing.filters.rules import (
    MOST_ITEMS,
    DroppedSet,
    hits_of,
    summary_and_sizes,
    tally_of_sizes,
)
from ldprecover.recovery.unmixing.filters.set_search import found_sets
from ldprecover.recovery.unmixing.least_share import least_number, least_of_set
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.reports.sample import Sample
from ldprecover.reports.source import ReportSource
from ldprecover.reports.tally import Tally
from ldprecover.types import BoolArray, FloatArray, Int64Array

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
    eight sets; or reports of sizes that are too frequent, without such a set, or where fewer honest
    reports have them and no others share the sets. With the estimates come what malicious reports
    may have added to the `targets`, or else to the sets. Two passes over clean reports, at most
    eight; memory does not grow with their number. They must be of an oracle that is not `unfit`.

    None is dropped if the others would not tell items apart. Raises ParameterError if there are
    no reports.
    """
    oracle, law = source.oracle, source.oracle.laws.size_law().probabilities()
    summary, sizes = np.split(source.total(summary_and_sizes), [-law.size])
    tally = Tally(summary, int(sizes.sum()))
    if not tally.n:
        raise ParameterError("there are no reports to filter")
    z = tally.frequencies(oracle)
    sets, log_p = found_sets(source, z, sizes)
    observed, passing = _counted(source, sets)
    if sets:
        holders, price = np.maximum(z[sets[0].items], 0).sum(), sets[0].price(oracle)
        log_p = float(log_p_of_set(oracle, holders, observed[0], price=price))
    # Under a fixed size, reports that pass the first set miss numbers of the items of the others.
    whole = observed if oracle.fixed_size is None else observed[:1]
    malicious = max([0.0, *(least_of_set(oracle, each) for each in whole)])
    if oracle.fixed_size is None:
        log_p = min(log_p, log_p_of_sizes(sizes, law))
        malicious = max(malicious, least_number(law[None], sizes))
    tested = list(zip(sets, observed, strict=True))
    estimates, notes = None, tuple[str, ...]()
    undecided = why_undecided(oracle, [each.items for each in sets])
    if undecided is not None:
        tested, estimates = [], unbiased_by_sizes(oracle, tally, np.ones(law.size, np.bool_))
    dropping = [each for each, _ in tested if each.bins.any()]
    if dropping and passing.n:
        estimates = unbiased(oracle, passing, dropping)
        numbers = [(each, int(hits[each.bins].sum())) for each, hits in tested]
        dropped = [Dropped("shared items", _text(each), n) for each, n in numbers if n]
        if estimates is not None:
            estimates = replace(estimates, dropped=tuple(dropped))
            others, passes = _by_sizes(source, tally, sizes)
            keeps_more = bool(others.dropped) and others.honest_kept > estimates.honest_kept
            if keeps_more and not _still_shared(source, sets, z, passes):
                estimates = others
        else:
            shared = np.sort(np.concatenate([each.items for each in dropping])).tolist()
            note = (
                f"Many reports share {indices_named(shared)}, but then most of the users would "
                "hold one of these, so no report was dropped for it."
            )
            notes, dropping = (note,), []
    if estimates is None:
        estimates, passes = _by_sizes(source, tally, sizes)
        if estimates.dropped:
            undropped = [each for each, _ in tested if not each.bins.any()]
            tested = _still_shared(source, undropped, z, passes)
    raising = [
        (each.items, RaisedSet.of(oracle, hits))
        for each, hits in tested
        if each in dropping or (each.items.size > _FEW and not each.bins.any())
    ]
    # Items that hardly fall without the dropped reports were not raised: others of the set were.
    is_visible = z - estimates.z >= _VISIBLE * estimates.sd
    dropped_items = [item for each in dropping for item in each.items.tolist()]
    suspects = {
        item: float(raised.is_certain and (is_visible[item] or item not in dropped_items))
        for items, raised in raising
        for item in items.tolist()
    }
    further = (0.0, 0.0)
    certain = [(items, raised) for items, raised in raising if raised.is_certain]
    if certain and len(raising) > 1:
        total, t = min((raised.fits[0].raised, items.size) for items, raised in certain)
        further = total, total / t
    if targets and undecided is None:
        raising = []
        if len(targets) <= min(MOST_ITEMS, oracle.domain_size // 2):
            hits = source.total(partial(hits_of, items=np.array(targets)))
            raising = [(np.array(targets), RaisedSet.of(oracle, hits))]
    return replace(
        estimates,
        suspects=dict(sorted(suspects.items())),
        additions=tuple(additions(oracle, estimates, raising)),
        notes=(*notes, *estimates.notes),
        log_p=min(math.log(3) + log_p, 0.0),  # of sizes, pairs and all numbers of items
        malicious=malicious,
        further=further,
        undecided=undecided or estimates.undecided,
    )


def _still_shared(
    source: ReportSource, sets: Sequence[DroppedSet], z: FloatArray, sizes: BoolArray
) -> list[tuple[DroppedSet, Int64Array]]:
    """Return the sets that reports of these sizes share, with how many of them support k items."""
    oracle = source.oracle
    of_sizes = list[tuple[DroppedSet, Int64Array]]()
    observed, _ = _counted(source, sets, sizes)
    for each, hits in zip(sets, observed, strict=True):
        holders, price = np.maximum(z[each.items], 0).sum(), each.price(oracle)
        if -log_p_of_set(oracle, holders, hits, price=price) > THRESHOLDS.suspicious:
            of_sizes.append((each, hits))
    return of_sizes


def _counted(
    source: ReportSource, sets: Sequence[DroppedSet], sizes: BoolArray | None = None
) -> tuple[list[Int64Array], Tally]:
    """Return how many reports that pass the sets before it support k items of each set, and the
    tally of those that pass all sets; of some `sizes` alone.
    """
    ends = np.cumsum([each.bins.size for each in sets])
    if not sets:
        return [], Tally.empty(source.oracle.summary_size)
    parts = source.total(partial(_hits_and_passing, sets=sets, sizes=sizes))
    *observed, passing = np.split(parts, ends)
    return observed, Tally(passing[:-1], int(passing[-1]))


def _hits_and_passing(
    sample: Sample, *, sets: Sequence[DroppedSet], sizes: BoolArray | None
) -> Int64Array:
    parts = []
    if sizes is not None:
        sample = sample[sizes[sample.sizes()]]
    for each in sets:
        hits = np.count_nonzero(sample.supports(each.items), axis=1)
        parts.append(sample.bincount(hits, each.bins.size))
        sample = sample[~each.bins[hits]]
    return np.concatenate([*parts, sample.tally().summary, [sample.n]])


def _by_sizes(
    source: ReportSource, tally: Tally, sizes: Int64Array
) -> tuple[NoisyEstimates, BoolArray]:
    """Return the estimates without the reports of sizes that are too frequent, and the others."""
    oracle, law = source.oracle, source.oracle.laws.size_law().probabilities()
    bad, _ = excess_bins(sizes, law[None], THRESHOLDS.size_excess)
    every = unbiased_by_sizes(oracle, tally, np.ones(law.size, np.bool_))
    if not bad.any() or law[bad].sum() > THRESHOLDS.honest_loss:
        return every, ~bad
    removed = source.total(partial(tally_of_sizes, sizes=bad))
    _, p, q = law_of_sizes(oracle, ~bad)
    # Reports of no item or all tell nothing: p = q but for rounding.
    if removed.n == tally.n or p - q < _LEAST_GAP:
        reason = "Nearly all reports have sizes that are too frequent"
        return replace(every, undecided=reason), ~bad
    text = f"reports whose number of supported items is {_numbers_as_text(bad & (sizes > 0))}"
    dropped = Dropped("frequent sizes", f"{text}, which too many do", removed.n)
    return replace(unbiased_by_sizes(oracle, tally - removed, ~bad), dropped=(dropped,)), ~bad


def _text(dropped: DroppedSet) -> str:
    items = indices_named(np.sort(dropped.items).tolist())
    return f"reports that support {_numbers_as_text(dropped.bins)} of {items}, which too many do"


def _numbers_as_text(chosen: BoolArray) -> str:
    """Return the positions that are set as text, such as "1, 3"."""
    return ", ".join(map(str, np.flatnonzero(chosen).tolist()))
