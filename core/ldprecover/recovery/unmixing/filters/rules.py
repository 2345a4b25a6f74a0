"""The rule by which a report passes the filters, and what a block of reports gives under it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.laws import HITS, required
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.reports import ReportSource
from ldprecover.recovery.sample import Sample
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

MOST_ITEMS = 24
"""Maximum items of a set: a histogram of a set's supported items has 25 bins."""

T = TypeVar("T")

_MAX_BYTES = 1 << 23  # maximum bytes of dropped reports held in memory


@dataclass(frozen=True, eq=False)
class DroppedSet:
    """A set of t items; `bins[k]`, k = 0..t, says whether reports that support k are dropped."""

    items: Int64Array
    bins: BoolArray


@dataclass(frozen=True, eq=False)
class ReportFilter:
    """Reports pass that have a size k with `sizes[k]` set and are in no dropped bin of a set.

    `sizes` has d + 1 entries; None lets all sizes pass. The sets are disjoint. `others` are all
    reports of other sizes, if they are few enough to be held.
    """

    sizes: BoolArray | None = None
    sets: tuple[DroppedSet, ...] = ()
    others: Reports | None = None

    def without(self, dropped: DroppedSet) -> "ReportFilter":
        """Return the filter that also drops the reports in the bins of this set."""
        return replace(self, sets=(*self.sets, dropped))

    def of(self, oracle: FrequencyOracle, reports: Reports) -> BoolArray:
        """Return which of the reports pass."""
        passing = np.ones(len(reports), np.bool_)
        for dropped in self.sets:
            passing &= ~dropped.bins[
                np.count_nonzero(oracle.supports(reports, dropped.items), axis=1)
            ]
        if self.sizes is not None:
            passing[passing] = self.sizes[oracle.support_sizes(reports[passing])]
        return passing


def total_over_passing(
    source: ReportSource, measure: Callable[[Sample], T], report_filter: ReportFilter
) -> T:
    """Return the sum of `measure` over the reports that pass, in one pass.

    If the reports of other sizes are held, sizes are ignored and the measure of those
    reports is subtracted: a size takes a hash of every item, for each report.
    """
    if report_filter.others is None:
        return source.total(partial(_measure_passing, measure, report_filter))
    free = partial(_measure_passing, measure, replace(report_filter, sizes=None, others=None))
    of_others: Any = free(Sample(source.oracle, report_filter.others))
    total: Any = source.total(free)
    return total - of_others


def _measure_passing(
    measure: Callable[[Sample], T], report_filter: ReportFilter, sample: Sample
) -> T:
    return measure(sample[report_filter.of(sample.oracle, sample.reports)])


@dataclass
class DroppedReports:
    """The tally of dropped reports, and the reports, packed. It adds in place.

    `packed` is None if they are more than 8 MiB, or are not to be held.
    """

    tally: Tally
    packed: bytearray | None

    def __iadd__(self, other: "DroppedReports") -> "DroppedReports":
        self.tally += other.tally
        if (
            self.packed is None
            or other.packed is None
            or len(self.packed) + len(other.packed) > _MAX_BYTES
        ):
            self.packed = None
        else:
            self.packed += other.packed
        return self

    def reports(self, oracle: FrequencyOracle) -> Reports | None:
        """Return the reports, or None if they are not held."""
        return None if self.packed is None else np.frombuffer(self.packed, oracle.wire.dtype)


def reports_of_sizes(sample: Sample, *, sizes: BoolArray, hold: bool) -> DroppedReports:
    """Return the reports of the sizes k where `sizes[k]` is set.

    If sizes take no hashing, the reports are not held.
    """
    dropped = sample[sizes[sample.sizes()]]
    packed = None
    if hold and sample.oracle.hash_tests:
        packed = bytearray(dropped.reports.tobytes())
    return DroppedReports(dropped.tally(), packed)


def other_items_laws(oracle: FrequencyOracle, r: int) -> tuple[FloatArray, FloatArray]:
    """Return the laws of how many of r items a report supports that its user does not hold.

    The first is for a report that supports its user's item, the second for one that does not.
    """
    hits = required(oracle.laws.hits, oracle.protocol, HITS)
    return _laws_by_own(oracle, hits.other_items_law, r)


def next_item_probabilities(oracle: FrequencyOracle, r: int) -> tuple[FloatArray, FloatArray]:
    """Return how often a report supports one item more, given that it supports j of r others.

    The user holds none of these r + 1 items. As in `other_items_laws`, the first is for a report
    that supports its user's item.
    """
    hits = required(oracle.laws.hits, oracle.protocol, HITS)
    return _laws_by_own(oracle, hits.next_item_probability, r)


def _laws_by_own(
    oracle: FrequencyOracle, law: Callable[[int, bool], FloatArray | None], r: int
) -> tuple[FloatArray, FloatArray]:
    with_own, without = (required(law(r, own), oracle.protocol, HITS) for own in (True, False))
    return with_own, without


def set_laws(oracle: FrequencyOracle, t: int) -> FloatArray:
    """Return the two laws of how many of t items an honest report supports, as (2, t + 1).

    Row 0 is for a user of none of them, row 1 for a user of one of them.
    """
    p = oracle.p
    outside, inside = other_items_laws(oracle, t), other_items_laws(oracle, t - 1)
    holder = p * np.append(0.0, inside[0]) + (1 - p) * np.append(inside[1], 0.0)
    return np.stack([p * outside[0] + (1 - p) * outside[1], holder])


@dataclass(frozen=True, eq=False)
class SizedTally:
    """A tally of reports, and the number of those that support k items, k = 0..d."""

    tally: Tally
    sizes: Int64Array

    def __add__(self, other: "SizedTally") -> "SizedTally":
        return SizedTally(self.tally + other.tally, self.sizes + other.sizes)


def sized_tally(sample: Sample) -> SizedTally:
    """Return the tally of the reports and the histogram of their sizes."""
    oracle = sample.oracle
    if sample.multiplicities is not None:
        return SizedTally(sample.tally(), sample.size_counts())
    summary, sizes = oracle.summarise_with_sizes(sample.reports)
    return SizedTally(
        Tally(summary, sample.n), np.bincount(sizes, minlength=oracle.domain_size + 1)
    )


def hits_by_item(sample: Sample, *, items: Int64Array, sets: BoolArray) -> Int64Array:
    """Return how many reports that support k items of a set support each of the m items.

    Row i of `sets` says which of the items are in set i, at most 24. The result, for each set and
    k, has the shape (sets, 25, m + 1); its last column counts all reports that support k.
    """
    bits = sample.supports(items).T
    every = sample.lines(np.concatenate([bits, np.ones((1, len(sample)), np.bool_)]))
    counts = np.empty((len(sets), MOST_ITEMS + 1, items.size + 1), np.int64)
    for members, of_set in zip(sets, counts, strict=True):
        numbers = np.add.reduce(bits[members].view(np.uint8), axis=0, dtype=np.uint8)
        exactly = numbers == np.arange(MOST_ITEMS + 1, dtype=np.uint8)[:, None]
        of_set[:] = sample.joint(sample.lines(exactly), every)
    return counts
