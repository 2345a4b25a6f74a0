"""Which reports the screens keep: a rule for each report alone, and what a block of reports gives
under it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ldprecover import counting
from ldprecover.counting.tally import Tally
from ldprecover.laws import IndependentSizes
from ldprecover.laws.distributions import binomial_law
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.reports import ReportSource, pair_counts
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports

MOST_ITEMS = 24
"""Items of the largest set whose supported items are counted."""

T = TypeVar("T")

_HELD = 1 << 23  # bytes of reports


@dataclass(frozen=True, eq=False)
class DroppedSet:
    """A set of t items, and for k = 0..t whether reports are dropped that support k of them."""

    items: Int64Array
    bins: BoolArray


@dataclass(frozen=True, eq=False)
class Kept:
    """The reports that are kept: of the sizes k where `sizes[k]` is set, and in no dropped bin of a
    set.

    `sizes` is of the domain's d + 1 sizes; None where no report is of another size. Sets are
    disjoint. `others` are all reports of other sizes, where they are held.
    """

    sizes: BoolArray | None = None
    sets: tuple[DroppedSet, ...] = ()
    others: Reports | None = None

    def without(self, dropped: DroppedSet) -> "Kept":
        """Return the same without the reports in the bins of this set."""
        return replace(self, sets=(*self.sets, dropped))

    def of(self, oracle: FrequencyOracle, reports: Reports) -> BoolArray:
        """Return which of the reports are kept."""
        kept = np.ones(len(reports), np.bool_)
        for dropped in self.sets:
            kept &= ~dropped.bins[
                np.count_nonzero(oracle.supported(reports, dropped.items), axis=1)
            ]
        if self.sizes is not None:
            kept[kept] = self.sizes[oracle.support_sizes(reports[kept])]
        return kept


def total_of_kept(source: ReportSource, measure: Callable[..., T], kept: Kept, **given: Any) -> T:
    """Return the sum of `measure(oracle, reports, kept=kept, **given)` over all reports: one pass.

    Where the reports of other sizes are held, it is the sum without regard to sizes less the
    measure of these: then no report is hashed for all items to tell its size.
    """
    if kept.others is None:
        return source.total(partial(measure, kept=kept, **given))
    free = replace(kept, sizes=None, others=None)
    of_others: Any = measure(source.oracle, kept.others, kept=free, **given)
    total: Any = source.total(partial(measure, kept=free, **given))
    return total - of_others  # type: ignore[no-any-return]


class Taken:
    """The tally of reports that are taken out, and these themselves, packed, as long as they are
    few. It adds in place.

    They are None where they are more than 8 MiB, or are not to be held.
    """

    def __init__(self, tally: Tally, packed: bytearray | None) -> None:
        self.tally, self.packed = tally, packed

    def __iadd__(self, other: "Taken") -> "Taken":
        self.tally += other.tally
        if (
            self.packed is None
            or other.packed is None
            or len(self.packed) + len(other.packed) > _HELD
        ):
            self.packed = None
        else:
            self.packed += other.packed
        return self

    def reports(self, oracle: FrequencyOracle) -> Reports | None:
        """Return the reports, None where they are not held."""
        return None if self.packed is None else np.frombuffer(self.packed, oracle.report_dtype)


def of_other_sizes(oracle: FrequencyOracle, reports: Reports, *, sizes: BoolArray) -> Taken:
    """Return the reports of the sizes k where `sizes[k]` is not set; where sizes take no hashing,
    their tally alone.
    """
    others = reports[~sizes[oracle.support_sizes(reports)]]
    return Taken(
        Tally.of(oracle, others), bytearray(others.tobytes()) if oracle.hash_tests else None
    )


def set_laws(t: int, p: float, q: float) -> FloatArray:
    """Return the laws of how many of t items an honest report supports, (2, t + 1): its user's item
    among them or not.

    Row 0 is where the user holds none of them, Binomial(t, q), and row 1 where one of them.
    """
    return np.stack([binomial_law(t, q), IndependentSizes(t, p, q).probabilities()])


@dataclass(frozen=True, eq=False)
class SizedTally:
    """A tally of reports, and how many of them support k items, k = 0..d."""

    tally: Tally
    sizes: Int64Array

    def __add__(self, other: "SizedTally") -> "SizedTally":
        return SizedTally(self.tally + other.tally, self.sizes + other.sizes)


def sized_tally(oracle: FrequencyOracle, reports: Reports) -> SizedTally:
    """Return the tally of the reports and the histogram of their sizes."""
    summary, sizes = oracle.summarise_with_sizes(reports)
    return SizedTally(
        Tally(summary, len(reports)), np.bincount(sizes, minlength=oracle.domain_size + 1)
    )


def lost(oracle: FrequencyOracle, reports: Reports, *, kept: Kept, rule: Kept) -> Tally:
    """Return the tally of the reports that are kept, and would not be by another rule."""
    reports = reports[~rule.of(oracle, reports)]
    return Tally.of(oracle, reports[kept.of(oracle, reports)])


def pairs_kept(
    oracle: FrequencyOracle, reports: Reports, *, kept: Kept, items: Int64Array
) -> Int64Array:
    """Return `pair_counts` of the kept reports."""
    return pair_counts(oracle, reports[kept.of(oracle, reports)], items)


def triples_kept(
    oracle: FrequencyOracle, reports: Reports, *, kept: Kept, items: Int64Array
) -> Int64Array:
    """Return how many of the kept reports support three of the m items, in rising order; place m is
    of all reports.

    Of other orders the result, (m + 1, m + 1, m + 1), has zeros.
    """
    reports = reports[kept.of(oracle, reports)]
    lines = counting.packed_lines(oracle.supported(reports, items).T)
    counts = np.zeros((items.size + 1,) * 3, np.int64)
    for i in range(items.size):
        both = np.ascontiguousarray(lines[i + 1 :] & lines[i])
        joint = counting.joint_counts(both, both)
        counts[i, i + 1 : -1, i + 1 : -1] = joint
        counts[i, i + 1 : -1, -1] = counts[i, -1, i + 1 : -1] = joint.diagonal()
        counts[i, -1, -1] = np.bitwise_count(lines[i]).sum(dtype=np.int64)
    counts[-1, -1, -1] = len(reports)
    return counts


def hits_by_item(
    oracle: FrequencyOracle, reports: Reports, *, kept: Kept, items: Int64Array, sets: BoolArray
) -> Int64Array:
    """Return, for each set and k, how many kept reports that support k items of the set support
    each item.

    Row i of `sets` says which of the m items are in set i, at most 24. The result is (sets, 25,
    m + 1); its last column is of all these reports.
    """
    reports = reports[kept.of(oracle, reports)]
    bits = oracle.supported(reports, items).T
    every = counting.packed_lines(np.concatenate([bits, np.ones((1, len(reports)), np.bool_)]))
    counts = np.empty((len(sets), MOST_ITEMS + 1, items.size + 1), np.int64)
    for members, of_set in zip(sets, counts, strict=True):
        numbers = np.add.reduce(bits[members].view(np.uint8), axis=0, dtype=np.uint8)
        exactly = numbers == np.arange(MOST_ITEMS + 1, dtype=np.uint8)[:, None]
        of_set[:] = counting.joint_counts(counting.packed_lines(exactly), every)
    return counts
