"""Finds sets of items that malicious reports share, and the reports that give themselves away.

Each round searches a set among the pairs of the most supported items. The number of its items that
a report supports is compared with the honest laws. If some numbers are far too frequent, such
reports are dropped, and the next round looks at the other items: so several attackers are found one
after the other.
"""

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
from ldprecover.recovery.unmixing.filters.pair_scan import best_set, pair_scores
from ldprecover.recovery.unmixing.filters.raised import RaisedSet
from ldprecover.recovery.unmixing.filters.rules import (
    MOST_ITEMS,
    DroppedSet,
    hits_by_item,
    set_laws,
    total_over_passing,
)
from ldprecover.recovery.unmixing.least_share import least_of_set
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True, eq=False)
class SharedSet(DroppedSet):
    """A set that reports share, with the score of its `bins`, 0 if no reports are dropped.

    `raised` is what malicious reports added to it, `malicious` the least number of these by it, and
    `reports` how many are dropped. `others` are further items that the reports in the bins raise.
    """

    score: float
    raised: RaisedSet
    others: Int64Array
    malicious: float
    reports: int = 0


@dataclass(frozen=True, eq=False)
class SharedSets:
    """The sets whose reports are `dropped`, those `undecided`, and the tally of the other reports.

    `log_p` is ln p of the pairs of the first set.
    """

    dropped: tuple[SharedSet, ...]
    undecided: tuple[SharedSet, ...]
    tally: Tally
    log_p: float

    @property
    def malicious(self) -> float:
        """The least number of malicious reports by the sets."""
        return max(
            sum(each.malicious for each in self.dropped),
            max((each.malicious for each in self.undecided), default=0.0),
        )


def shared_sets(source: ReportSource, tally: Tally) -> SharedSets:
    """Return the sets among all reports, of this tally. Up to four passes for each set."""
    oracle = source.oracle
    dropped: list[SharedSet] = []
    undecided: list[SharedSet] = []
    log_p = 0.0
    for number in range(THRESHOLDS.rounds):
        order = np.argsort(-tally.counts(oracle), kind="stable")
        searched = np.concatenate(
            [np.empty(0, np.int64), *(each.items for each in dropped + undecided)]
        )
        items = order[~np.isin(order, searched)][: THRESHOLDS.pair_items]
        counts = total_over_passing(source, partial(Sample.pair_counts, items=items), dropped)
        scores = pair_scores(counts, oracle)
        members, score = best_set(scores)
        if not number:
            log_p = _log_p_of_pairs(oracle, counts, scores, members)
        if score <= THRESHOLDS.suspicious:
            break
        best = _tested(source, dropped, items, np.isin(np.arange(items.size), members))
        if not best.score or not best.raised.is_certain:
            undecided.append(best)
            continue
        passing = total_over_passing(source, Sample.tally, [*dropped, best])
        dropped.append(replace(best, reports=tally.n - passing.n))
        tally = passing
    return SharedSets(tuple(dropped), tuple(undecided), tally, log_p)


def _log_p_of_pairs(
    oracle: FrequencyOracle, counts: Int64Array, scores: FloatArray, members: Int64Array
) -> float:
    """Return ln p of a set or of the pair that stands out most, whichever is less likely."""
    d, n = oracle.domain_size, int(counts[-1, -1])
    if not n or len(scores) < 2:
        return 0.0
    z = (np.diag(counts)[:-1] / n - oracle.q) / (oracle.p - oracle.q)
    log_p = 0.0
    pair = np.array(np.unravel_index(np.abs(scores).argmax(), scores.shape))
    for items in (members, pair):
        if np.unique(items).size > 1:
            places = np.append(items, len(scores))
            pairs, price = counts[np.ix_(places, places)], log_choose(d, items.size)
            log_p = min(log_p, log_p_of_set(oracle, z[items], pairs, price=price))
    return log_p


def _tested(
    source: ReportSource, dropped: list[SharedSet], items: Int64Array, members: BoolArray
) -> SharedSet:
    """Return the test of a set, or of the set with the items that its reports raise too.

    `members` are those of the items that are in the set.
    """
    measure = partial(hits_by_item, items=items, members=members)
    test = _test(source.oracle, items, members, total_over_passing(source, measure, dropped))
    wider = members | np.isin(items, test.others)
    if not test.others.size or wider.sum() > MOST_ITEMS:
        return test
    measure = partial(hits_by_item, items=items, members=wider)
    other = _test(source.oracle, items, wider, total_over_passing(source, measure, dropped))
    return max(
        test, other, key=lambda each: (each.score > 0 and each.raised.is_certain, each.score)
    )


def _test(
    oracle: FrequencyOracle, items: Int64Array, members: BoolArray, hits: Int64Array
) -> SharedSet:
    """Return the test of a set; `hits[k]` counts the reports that support k of it, by item."""
    observed = hits[:, -1]
    laws = set_laws(oracle, observed.size - 1)
    excess = excess_bins(observed, laws, THRESHOLDS.set_excess)
    bins, score = excess.bins, excess.score(observed)
    others = np.zeros(items.size, np.bool_)
    honest = laws[0, bins].sum()  # probability of the bins for a user of no item of the set
    if not bins.any() or honest > THRESHOLDS.honest_loss or score <= THRESHOLDS.set_score:
        score = 0.0
    else:
        others = ~members & _raised(hits, bins)
    return SharedSet(
        items[members],
        bins,
        score,
        RaisedSet.of(oracle, items[members], observed),
        items[others],
        least_of_set(oracle, observed),
    )


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
