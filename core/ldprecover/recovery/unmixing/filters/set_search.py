"""Finds sets of items that malicious reports share, and the reports that give themselves away.

Each round searches a set among the pairs of the most supported items. The number of its items that
a report supports is compared with the honest laws. If some numbers are far too frequent, such
reports are dropped, and the next round looks at the rest: so several attackers are found one after
the other.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.distributions import log_choose
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.reports import ReportSource
from ldprecover.recovery.sample import Sample
from ldprecover.recovery.unmixing.evidence import log_p_of_set
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.mass_balance import mass_balance
from ldprecover.recovery.unmixing.filters.rules import (
    MOST_ITEMS,
    DroppedSet,
    ReportFilter,
    hits_by_item,
    set_laws,
    total_over_passing,
)
from ldprecover.recovery.unmixing.filters.set_scans import NO_SCORE, best_set, pair_scores
from ldprecover.recovery.unmixing.least_share import least_of_set
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import BoolArray, Int64Array

_UNDECIDED = 4  # items: of three and an innocent one, the histogram fits framing and raising
_Scored = tuple[Int64Array, float]  # a set, as places among the items, and its score


@dataclass(frozen=True, eq=False)
class SharedSets:
    """The filter, the tally of what passes, and the sets of which reports are dropped.

    For each there is the number of reports `dropped`, and the probability that reports `raised`
    its items. `suspicious` is one more set, of which nothing is dropped, or empty. `log_p` is ln p
    of the pairs of the first sets, `malicious` the least number of malicious reports by the sets.
    """

    report_filter: ReportFilter
    tally: Tally
    dropped: tuple[int, ...]
    raised: tuple[float, ...]
    suspicious: Int64Array
    log_p: float
    malicious: float


@dataclass(frozen=True, eq=False)
class _Tested:
    """A set as a mask of the items, the bins to drop, their score, and further items they raise.

    `probability` is that reports raised the items of the set, `is_separable` as in MassBalance. The
    score is 0 if no bins are too full.
    """

    members: BoolArray
    bins: BoolArray
    score: float
    probability: float
    is_separable: bool
    raised: BoolArray
    malicious: float = 0.0


def shared_sets(source: ReportSource, report_filter: ReportFilter, tally: Tally) -> SharedSets:
    """Return the sets among the reports that pass, of this tally, and the narrower filter.

    Four to seven passes over the reports for each set.
    """
    oracle, d = source.oracle, source.oracle.domain_size
    searched = np.zeros(d, np.bool_)
    dropped: list[int] = []
    raised: list[float] = []
    suspicious = np.empty(0, np.int64)
    log_p: float | None = None
    malicious = 0.0
    for _ in range(THRESHOLDS.rounds):
        order = np.argsort(-tally.counts(oracle), kind="stable")
        items = order[~searched[order]][: THRESHOLDS.pair_items]
        search = SetSearch(source, report_filter, items)
        counts = search.pair_counts()
        pairs = search.by_pairs(counts)
        if log_p is None:
            log_p = _log_p_of_pairs(oracle, counts, [members for members, _ in pairs])
        tests = search.tested(pairs)
        best = max((each for each in tests if each.is_separable), key=_rank, default=None)
        if best is None:
            if not dropped:
                malicious = max((each.malicious for each in tests), default=0.0)
            members, score = max(pairs, key=lambda pair: pair[1], default=(items[:0], 0.0))
            if score > THRESHOLDS.suspicious and members.size > _UNDECIDED:
                suspicious = items[members]
            break
        dropped_set = DroppedSet(items[best.members], best.bins)
        in_bins = replace(dropped_set, bins=~dropped_set.bins)
        taken = total_over_passing(source, Sample.tally, report_filter.without(in_bins))
        report_filter, tally = report_filter.without(dropped_set), tally - taken
        searched[items[best.members]] = True
        dropped.append(taken.n)
        malicious += best.malicious
        raised.append(best.probability)
        if not oracle.traits.independent_bits:
            break  # a second set would need the joint law of both
    return SharedSets(
        report_filter, tally, tuple(dropped), tuple(raised), suspicious, log_p or 0.0, malicious
    )


def _log_p_of_pairs(oracle: FrequencyOracle, counts: Int64Array, sets: list[Int64Array]) -> float:
    """Return ln p of the least likely of some sets, and of the pair that stands out most."""
    d, n = oracle.domain_size, int(counts[-1, -1])
    if not n:
        return 0.0
    z = (np.diag(counts)[:-1] / n - oracle.q) / (oracle.p - oracle.q)
    scores = np.abs(pair_scores(counts, oracle))
    if scores.size:
        sets = [*sets, np.array(np.unravel_index(scores.argmax(), scores.shape))]
    log_p = 0.0
    for members in sets:
        if np.unique(members).size < 2:
            continue
        places = np.append(members, len(counts) - 1)
        price = log_choose(d, members.size)
        pairs = counts[np.ix_(places, places)]
        log_p = min(log_p, log_p_of_set(oracle, z[members], pairs, price=price))
    return log_p


@dataclass(frozen=True)
class SetSearch:
    """The search of one set among some items of the reports that pass a filter."""

    source: ReportSource
    report_filter: ReportFilter
    items: Int64Array

    def pair_counts(self) -> Int64Array:
        """Return how many reports support both of two of the items, as `Sample.pair_counts`."""
        return self._total(partial(Sample.pair_counts, items=self.items))

    def by_pairs(self, counts: Int64Array) -> list[_Scored]:
        """Return the sets whose pairs are supported too often, and too seldom."""
        scores = pair_scores(counts, self.source.oracle)
        return [each for each in map(best_set, (scores, -scores)) if each[1] > NO_SCORE]

    def tested(self, sets: list[_Scored]) -> list[_Tested]:
        """Return the test of each set, with the items it raises if they make it score more."""
        places = np.arange(self.items.size)
        first = self._tests([np.isin(places, members) for members, _ in sets])
        wider = [test.members | test.raised for test in first]
        again = [
            i
            for i, (test, members) in enumerate(zip(first, wider, strict=True))
            if test.score and test.raised.any() and members.sum() <= MOST_ITEMS
        ]
        second = dict(zip(again, self._tests([wider[i] for i in again]), strict=True))
        return [max(test, second.get(i, test), key=_rank) for i, test in enumerate(first)]

    def _tests(self, sets: list[BoolArray]) -> list[_Tested]:
        if not sets:
            return []
        hits = self._total(partial(hits_by_item, items=self.items, sets=np.array(sets)))
        oracle = self.source.oracle
        return [_test(oracle, members, of_set) for members, of_set in zip(sets, hits, strict=True)]

    def _total(self, measure: Callable[[Sample], Int64Array]) -> Int64Array:
        return total_over_passing(self.source, measure, self.report_filter)


def _test(oracle: FrequencyOracle, members: BoolArray, hits: Int64Array) -> _Tested:
    """Return the test of a set.

    `hits[k]` counts the reports that support k of its items, for each item and in all.
    """
    t = int(members.sum())
    hits = hits[: t + 1]
    observed = hits[:, -1]
    laws = set_laws(oracle, t)
    excess = excess_bins(observed, laws, THRESHOLDS.set_excess)
    bins, score = excess.bins, excess.score(observed)
    honest = laws[0, bins].sum()  # probability of the bins for a user of no item of the set
    if not bins.any() or honest > THRESHOLDS.honest_loss or score <= THRESHOLDS.set_score:
        return _Tested(members, bins, 0.0, 0.0, False, np.zeros(members.size, np.bool_))
    raised = ~members & _raised(hits, bins)
    balance = mass_balance(oracle, observed)
    is_separable = balance.is_separable and (t > _UNDECIDED or balance.unconcealed > 0.5)
    malicious = least_of_set(oracle, observed)
    return _Tested(members, bins, score, balance.raised, is_separable, raised, malicious)


def _raised(hits: Int64Array, bins: BoolArray) -> BoolArray:
    """Return the items that reports in the bins support more often than others, by 5 deviations."""
    inside, outside = hits[bins].sum(axis=0), hits[~bins].sum(axis=0)
    n_in, n_out = int(inside[-1]), int(outside[-1])
    if not n_in or not n_out:
        return np.zeros(hits.shape[1] - 1, np.bool_)
    share = (inside + outside)[:-1] / (n_in + n_out)
    deviation = np.sqrt(share * (1 - share) * (1 / n_in + 1 / n_out))
    gap = inside[:-1] / n_in - outside[:-1] / n_out
    return gap > THRESHOLDS.raised * deviation


def _rank(test: _Tested) -> tuple[bool, float]:
    return test.is_separable, test.score
