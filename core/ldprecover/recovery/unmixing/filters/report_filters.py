"""Drops reports that honest users would hardly send, and estimates from the rest without bias.

Nothing need be known about an attack. Known are the laws of honest reports, whatever their users
hold: how many items they support, how often two items together, and how many items of any set.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.items import indices_named
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.reports import ReportSource
from ldprecover.recovery.unmixing.estimates import NoisyEstimates, estimates_of_counts
from ldprecover.recovery.unmixing.evidence import log_p_of_sizes
from ldprecover.recovery.unmixing.filters.debias import SetLaw, unbiased
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.mass_balance import (
    MassBalance,
    mass_balance,
    set_histogram,
)
from ldprecover.recovery.unmixing.filters.rules import (
    DroppedSet,
    ReportFilter,
    reports_of_sizes,
    set_laws,
    sized_tally,
    total_over_passing,
)
from ldprecover.recovery.unmixing.filters.set_search import SharedSets, shared_sets
from ldprecover.recovery.unmixing.least_share import least_number
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import BoolArray, FloatArray, Int64Array

_VISIBLE = 2.0  # standard deviations by which an item's estimate falls without the dropped reports
_ALL_DROPPED = "No report was filtered out: all would be."
_HARDLY, _TOO_OFTEN = "which honest ones hardly ever do", "which too many do"


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


@dataclass(frozen=True, eq=False)
class _SizeFilter:
    """The result of a filter by sizes: those that pass, the tally of their reports, the dropped."""

    sizes: BoolArray
    report_filter: ReportFilter
    tally: Tally
    dropped: tuple[Dropped, ...] = ()


def filter_reports(source: ReportSource, targets: tuple[int, ...] = ()) -> NoisyEstimates:
    """Return unbiased estimates from the reports that pass the filters, and what was dropped.

    With it comes what the reports that pass may have added to the `targets`, or else to suspects.

    Dropped are, in this order: reports of sizes that honest ones hardly ever have; reports that
    support too many items of a set that too many reports share, for up to five sets; without such
    a set, reports of sizes that are too frequent. Five passes over clean reports, at most 38;
    memory does not grow with their number. They must be of an oracle that is not `unfit`.

    None is dropped if all would be. Raises ParameterError if there are no reports.
    """
    oracle, first = source.oracle, source.total(sized_tally)
    if not first.tally.n:
        raise ParameterError("there are no reports to filter")
    law, observed = oracle.laws.size_law().probabilities(), first.sizes
    every = _SizeFilter(np.ones(law.size, np.bool_), ReportFilter(), first.tally)
    bad = _impossible(observed, law)
    possible = _without(source, every, bad, observed, "impossible sizes", _HARDLY, hold=True)
    sets = shared_sets(source, possible.report_filter, possible.tally)
    log_p, malicious = sets.log_p, sets.malicious
    if oracle.fixed_size is None:
        log_p = min(log_p, log_p_of_sizes(observed, law))
        malicious = max(malicious, least_number(law[None], observed))
    log_p = min(math.log(2) + log_p, 0.0)
    suspects = _suspects(sets)
    balanced = targets or tuple(suspects)
    dropped_sets = sets.report_filter.sets
    notes: tuple[str, ...] = ()
    received = oracle.estimate(first.tally.counts(oracle), first.tally.n)
    unfiltered = replace(
        estimates_of_counts(oracle, received, first.tally.n),
        notes=(_ALL_DROPPED,),
        log_p=log_p,
        malicious=malicious,
    )
    if not sets.tally.n:
        return unfiltered
    if dropped_sets:
        dropped = (*possible.dropped, *_sets_as_text(sets))
        shared = np.concatenate([each.items for each in dropped_sets])
        estimates, trusted = _debiased(oracle, possible.sizes, sets.tally, dropped, dropped_sets)
        if trusted:
            balance = _balance(source, sets.report_filter, balanced)
            fall = received - estimates.z
            for item in shared.tolist():
                if fall[item] < _VISIBLE * estimates.sd[item]:
                    suspects[item] = 0.0  # others of the set were raised
            return replace(
                estimates, suspects=suspects, balance=balance, log_p=log_p, malicious=malicious
            )
        suspects, balanced = {}, targets
        note = (
            f"Many reports share {indices_named(np.sort(shared).tolist())}, but then most of the "
            "users would hold one of these, so no report was dropped for it."
        )
        notes = (note,)
    bad = _too_frequent(observed, law, possible.sizes)
    usual = _without(source, possible, bad, observed, "frequent sizes", _TOO_OFTEN)
    if not usual.tally.n:
        return unfiltered
    estimates, _ = _debiased(oracle, usual.sizes, usual.tally, usual.dropped)
    balance = _balance(source, possible.report_filter, balanced)
    if balance is not None and suspects:
        suspects = dict.fromkeys(suspects, 1.0 if targets else balance.unconcealed)
    return replace(
        estimates,
        suspects=suspects,
        balance=balance,
        notes=notes,
        log_p=log_p,
        malicious=malicious,
    )


def _suspects(sets: SharedSets) -> dict[int, float]:
    """Return the items of the sets, with the probability that dropped reports raised them, or 1."""
    suspects = dict.fromkeys(sets.suspicious.tolist(), 1.0)
    for dropped, probability in zip(sets.report_filter.sets, sets.raised, strict=True):
        suspects |= dict.fromkeys(dropped.items.tolist(), probability)
    return dict(sorted(suspects.items()))


def _balance(
    source: ReportSource, report_filter: ReportFilter, items: tuple[int, ...]
) -> MassBalance | None:
    """Return the evidence of what reports that pass added to these items, in one pass.

    None for one item or less than three bins that pass, which tell nothing, and for more items than
    are searched for sets.
    """
    oracle, chosen = source.oracle, np.array(items)
    if not 2 <= chosen.size <= min(THRESHOLDS.pair_items, oracle.domain_size // 2):
        return None
    observed = total_over_passing(source, partial(set_histogram, items=chosen), report_filter)
    for dropped in report_filter.sets:
        if set(dropped.items.tolist()) == set(items):
            law = SetLaw.of(dropped, oracle)
            gap = max(law.item - law.other, THRESHOLDS.least_gap * (oracle.p - oracle.q))
            passing = ~dropped.bins
            if np.count_nonzero(set_laws(oracle, chosen.size)[:, passing].sum(axis=0)) < 3:
                return None
            return mass_balance(oracle, observed, passing, law.none / gap)
    return mass_balance(oracle, observed)


def _impossible(sizes: Int64Array, law: FloatArray) -> BoolArray:
    """Return the sizes that no honest report has, and rare ones that far too many reports have."""
    expected = sizes.sum() * law
    limit = THRESHOLDS.rare_offset + THRESHOLDS.rare_factor * expected
    rare = law <= THRESHOLDS.rare
    return (expected <= THRESHOLDS.impossible) | (rare & (sizes > limit))


def _too_frequent(sizes: Int64Array, law: FloatArray, sizes_passing: BoolArray) -> BoolArray:
    """Return which sizes that pass are too frequent; none if most honest reports have them."""
    bins = np.zeros(law.size, np.bool_)
    bins[sizes_passing] = excess_bins(
        sizes[sizes_passing], law[None, sizes_passing], THRESHOLDS.size_excess
    ).bins
    return bins if law[bins].sum() <= THRESHOLDS.honest_loss else np.zeros(law.size, np.bool_)


def _without(
    source: ReportSource,
    before: _SizeFilter,
    bad: BoolArray,
    sizes: Int64Array,
    filter_name: str,
    why: str,
    *,
    hold: bool = False,
) -> _SizeFilter:
    """Return what passes without the reports of bad sizes: one pass, if there are any.

    `hold` keeps these reports in memory for further passes; all reports must pass before.
    """
    good = before.sizes & ~bad
    removed = before.sizes & bad & (sizes > 0)
    if not removed.any():
        return _SizeFilter(good, before.report_filter, before.tally, before.dropped)
    dropped = source.total(partial(reports_of_sizes, sizes=removed, hold=hold))
    description = f"reports whose number of supported items is {_numbers_as_text(removed)}, {why}"
    return _SizeFilter(
        good,
        ReportFilter(good, others=dropped.reports(source.oracle)),
        before.tally - dropped.tally,
        (*before.dropped, Dropped(filter_name, description, dropped.tally.n)),
    )


def _debiased(
    oracle: FrequencyOracle,
    sizes: BoolArray,
    tally: Tally,
    dropped: tuple[Dropped, ...],
    sets: tuple[DroppedSet, ...] = (),
) -> tuple[NoisyEstimates, bool]:
    """Return the estimates without bias, and whether they are trusted."""
    estimates, trusted = unbiased(oracle, tally.counts(oracle), tally.n, sizes, sets)
    return replace(estimates, dropped=dropped), trusted


def _sets_as_text(sets: SharedSets) -> list[Dropped]:
    described = []
    for dropped, number in zip(sets.report_filter.sets, sets.dropped, strict=True):
        items = indices_named(np.sort(dropped.items).tolist())
        description = (
            f"reports that support {_numbers_as_text(dropped.bins)} of {items}, {_TOO_OFTEN}"
        )
        described.append(Dropped("shared items", description, number))
    return described


def _numbers_as_text(chosen: BoolArray) -> str:
    """Return the positions that are set as text, such as "1, 3 or 5 to 8"."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    runs = [
        str(a) if b == a + 1 else f"{a} to {b - 1}"
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
    return runs[0] if len(runs) == 1 else f"{', '.join(runs[:-1])} or {runs[-1]}"
