"""Drops reports that honest users would hardly send, and estimates from the rest without bias.

Nothing need be known about an attack. Known are the laws of honest reports, whatever their users
hold: how many items they support, how often two items together, and how many items of any set.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.conclusions import Dropped
from ldprecover.recovery.contract import indices_named
from ldprecover.recovery.reports import ReportSource
from ldprecover.recovery.unmixing.estimates import NoisyEstimates, estimates_of_counts
from ldprecover.recovery.unmixing.filters.debias import unbiased
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.rules import (
    DroppedSet,
    ReportFilter,
    lost,
    reports_of_other_sizes,
    sized_tally,
)
from ldprecover.recovery.unmixing.filters.set_search import SharedSets, shared_sets
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.recovery.unmixing.unmixer import LEAST_ITEMS
from ldprecover.types import BoolArray, FloatArray, Int64Array

_HARDLY, _TOO_OFTEN = "which honest ones hardly ever do", "which too many do"


def unfit(oracle: FrequencyOracle) -> str | None:
    """Return why reports of this protocol and number of items are not filtered, or None."""
    if not oracle.traits.independent_bits:
        return (
            f"the items that an honest {oracle.protocol} report supports are not independent of "
            "each other, so the estimates from the reports that pass a filter would be biased"
        )
    if oracle.domain_size < LEAST_ITEMS:
        return f"there are fewer than {LEAST_ITEMS} items"
    return None


@dataclass(frozen=True, eq=False)
class _Sizes:
    """The sizes that pass, the filter by them, the tally of what passes, and what was dropped."""

    sizes: BoolArray
    report_filter: ReportFilter
    tally: Tally
    dropped: tuple[Dropped, ...] = ()


def filter_reports(source: ReportSource) -> NoisyEstimates:
    """Return unbiased estimates from the reports that pass the filters, and what was dropped.

    Dropped are, in this order: reports of sizes that honest ones hardly ever have; reports that
    support too many items of a set that too many reports share, for up to three sets; without such
    a set, reports of sizes that are too frequent. Five passes over clean reports, at most 23;
    memory does not grow with their number. If `unfit` has a reason, all reports pass.

    Raises ParameterError if there are no reports, or none passes.
    """
    oracle = source.oracle
    reason = unfit(oracle)
    if reason is not None:
        tally = source.tally()
        if not tally.n:
            raise ParameterError("there are no reports to filter")
        unfiltered = estimates_of_counts(
            oracle, oracle.estimate(tally.counts(oracle), tally.n), tally.n
        )
        return replace(unfiltered, notes=(f"Reports were not filtered: {reason}.",))

    first = source.total(sized_tally)
    if not first.tally.n:
        raise ParameterError("there are no reports to filter")
    law, observed = oracle.laws.size_law().probabilities(), first.sizes
    every = _Sizes(np.ones(law.size, np.bool_), ReportFilter(), first.tally)
    bad = _impossible(observed, law)
    possible = _without(source, every, bad, observed, "impossible sizes", _HARDLY, hold=True)
    sets = shared_sets(source, possible.report_filter, possible.tally)
    if not sets.report_filter.sets:
        return _usual(source, possible, observed, sets.suspects)
    dropped_sets = sets.report_filter.sets
    dropped = (*possible.dropped, *_sets_as_text(sets))
    estimates, trusted = _debiased(oracle, possible.sizes, sets.tally, dropped, dropped_sets)
    if trusted:
        shared = tuple(sorted({int(item) for each in dropped_sets for item in each.items}))
        return replace(estimates, suspects=sets.suspects, shared=shared)
    note = (
        f"Many reports share {indices_named(sets.suspects)}, but then most of the users would hold "
        "one of these, so no report was dropped for it."
    )
    return replace(_usual(source, possible, observed), notes=(note,))


def _usual(
    source: ReportSource,
    possible: _Sizes,
    observed: Int64Array,
    suspects: tuple[int, ...] = (),
) -> NoisyEstimates:
    """Return the estimates from the reports of possible sizes that are not too frequent."""
    oracle = source.oracle
    law = oracle.laws.size_law().probabilities()
    bad = _too_frequent(observed, law, possible.sizes)
    usual = _without(source, possible, bad, observed, "frequent sizes", _TOO_OFTEN)
    estimates, _ = _debiased(oracle, usual.sizes, usual.tally, usual.dropped)
    return replace(estimates, suspects=suspects)


def _impossible(sizes: Int64Array, law: FloatArray) -> BoolArray:
    """Return which sizes no honest report is expected to have, or rare ones have far too often."""
    expected = sizes.sum() * law
    limit = THRESHOLDS.rare_offset + THRESHOLDS.rare_factor * expected
    rare = law <= THRESHOLDS.rare
    return np.asarray((expected <= THRESHOLDS.impossible) | (rare & (sizes > limit)))


def _too_frequent(
    sizes: Int64Array,
    law: FloatArray,
    sizes_passing: BoolArray,
) -> BoolArray:
    """Return which sizes that pass are too frequent; none if most honest reports have them."""
    bins = np.zeros(law.size, np.bool_)
    bins[sizes_passing] = excess_bins(
        sizes[sizes_passing], law[None, sizes_passing], THRESHOLDS.size_excess
    ).bins
    return bins if law[bins].sum() <= THRESHOLDS.honest_loss else np.zeros(law.size, np.bool_)


def _without(
    source: ReportSource,
    before: _Sizes,
    bad: BoolArray,
    sizes: Int64Array,
    filter_name: str,
    why: str,
    *,
    hold: bool = False,
) -> _Sizes:
    """Return what passes without the reports of bad sizes: one pass, if there are any.

    `hold` keeps these reports in memory for further passes; all reports must pass before.
    """
    good = before.sizes & ~bad
    removed = before.sizes & bad & (sizes > 0)
    if not removed.any():
        return _Sizes(good, before.report_filter, before.tally, before.dropped)
    if hold:
        others = source.total(partial(reports_of_other_sizes, sizes=good))
        report_filter, taken = (
            ReportFilter(good, others=others.reports(source.oracle)),
            others.tally,
        )
    else:
        report_filter = ReportFilter(good)
        taken = source.total(
            partial(
                lost, report_filter=replace(before.report_filter, others=None), rule=report_filter
            )
        )
    description = f"reports whose number of supported items is {_numbers_as_text(removed)}, {why}"
    return _Sizes(
        good,
        report_filter,
        before.tally - taken,
        (*before.dropped, Dropped(filter_name, description, taken.n)),
    )


def _debiased(
    oracle: FrequencyOracle,
    sizes: BoolArray,
    tally: Tally,
    dropped: tuple[Dropped, ...],
    sets: tuple[DroppedSet, ...] = (),
) -> tuple[NoisyEstimates, bool]:
    """Return the estimates without bias, and whether they are trusted."""
    if not tally.n:
        raise ParameterError("all reports would be dropped, and nothing is left to estimate from")
    result = unbiased(oracle, tally.counts(oracle), tally.n, sizes, sets)
    estimates = NoisyEstimates(
        result.z, result.sd, tally.n, dropped=dropped, honest_kept=result.honest_kept
    )
    return estimates, result.trusted


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
