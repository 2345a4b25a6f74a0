"""Finds sets of items that malicious reports share, and the reports that give themselves away.

Each round searches a set among the pairs of the most supported items. The number of its items that
a report supports is compared with the honest laws. If some numbers are far too frequent, such
reports are dropped, and the next round looks at the other items: so several attackers are found one
after the other. An attacker who supports r' of r targets can choose the numbers so that their pairs
are supported as usual: such a set is not found.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ldprecover.distributions import log_choose
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.evidence import log_p_of_set
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.raised import RaisedSet
from ldprecover.recovery.unmixing.filters.rules import (
    MOST_ITEMS,
    DroppedSet,
    hits_by_item,
    other_items_laws,
    set_laws,
    total_over_passing,
)
from ldprecover.recovery.unmixing.least_share import least_of_set
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.reports.sample import Sample
from ldprecover.reports.source import ReportSource
from ldprecover.reports.tally import Tally
from ldprecover.types import BoolArray, FloatArray, Int64Array

_LEAST = 3  # items of a set: two items are a pair
_EXPLAINED = 1.8  # root of chi-squared over its degrees of freedom


@dataclass(frozen=True, eq=False)
class SharedSet(DroppedSet):
    """A set that reports share, and the `bins` that are dropped.

    `raised` is what malicious reports added to it, `malicious` the least number of these by it, and
    `dropped` the number of reports in the bins. The set is decided if the bins are far too full
    and it is certain that reports raise it.
    """

    raised: RaisedSet
    malicious: float
    is_decided: bool
    dropped: int = 0


@dataclass(frozen=True, eq=False)
class SharedSets:
    """The sets, those whose reports are dropped first, and the tally of the other reports.

    `log_p` is ln p of the pairs of the first set.
    """

    decided: tuple[SharedSet, ...]
    undecided: tuple[SharedSet, ...]
    tally: Tally
    log_p: float


def shared_sets(source: ReportSource, tally: Tally) -> SharedSets:
    """Return the sets among all reports, of this tally. Up to four passes for each set."""
    oracle = source.oracle
    decided: list[SharedSet] = []
    undecided: list[SharedSet] = []
    searched = np.zeros(oracle.domain_size, np.bool_)
    log_p = 0.0
    for _ in range(THRESHOLDS.rounds):
        order = np.argsort(-tally.counts(oracle), kind="stable")
        items = order[~searched[order]][: THRESHOLDS.pair_items]
        counts = total_over_passing(source, partial(Sample.pair_counts, items=items), decided)
        scores = pair_scores(counts, oracle)
        members, score = best_set(scores)
        if not searched.any():
            log_p = _log_p_of_pairs(oracle, counts, scores, members)
        if score <= THRESHOLDS.suspicious:
            break
        best = _tested(source, decided, items, members)
        searched[best.items] = True
        if not best.is_decided:
            undecided.append(best)
            continue
        passing = total_over_passing(source, Sample.tally, [*decided, best])
        decided.append(replace(best, dropped=tally.n - passing.n))
        tally = passing
    return SharedSets(tuple(decided), tuple(undecided), tally, log_p)


def _log_p_of_pairs(
    oracle: FrequencyOracle, counts: Int64Array, scores: FloatArray, members: Int64Array
) -> float:
    """Return ln p of a set or of the pair that stands out most, whichever is less likely."""
    z = (np.diag(counts)[:-1] / counts[-1, -1] - oracle.q) / (oracle.p - oracle.q)
    log_p = 0.0
    pair = np.array(np.unravel_index(np.abs(scores).argmax(), scores.shape))
    for items in (members, pair):
        if np.unique(items).size > 1:
            places = np.append(items, len(scores))
            pairs, price = (
                counts[np.ix_(places, places)],
                log_choose(oracle.domain_size, items.size),
            )
            log_p = min(log_p, log_p_of_set(oracle, z[items], pairs, price=price))
    return log_p


def _tested(
    source: ReportSource, decided: list[SharedSet], items: Int64Array, members: Int64Array
) -> SharedSet:
    """Return the test of a set, or of the set with the items that its reports raise too.

    `members` are the places of the set among the items.
    """

    def test(chosen: BoolArray) -> tuple[Int64Array, SharedSet, float]:
        measure = partial(hits_by_item, items=items, members=chosen)
        hits = total_over_passing(source, measure, decided)
        return hits, *_test(source.oracle, items[chosen], hits[:, -1])

    chosen = np.isin(np.arange(items.size), members)
    hits, narrow, narrow_score = test(chosen)
    if not narrow_score:
        return narrow
    wider = chosen | _raised(hits, narrow.bins)
    # Reports of a fixed size that support all items but one have no law.
    limit = source.oracle.domain_size - 2 if source.oracle.fixed_size else MOST_ITEMS
    if wider.sum() > min(MOST_ITEMS, limit) or (wider == chosen).all():
        return narrow
    _, wide, wide_score = test(wider)
    # A wide set decides only if its histogram is explained: innocent items may be in it.
    wide_decides = wide.is_decided and wide.raised.spread < _EXPLAINED
    if wide_decides != narrow.is_decided:
        return wide if wide_decides else narrow
    return wide if wide_score > narrow_score else narrow


def _test(
    oracle: FrequencyOracle, items: Int64Array, observed: Int64Array
) -> tuple[SharedSet, float]:
    """Return the test of a set of which `observed[k]` reports support k items, and its score.

    The score is 0 unless the bins are far too full, and few honest reports are in them.
    """
    laws = set_laws(oracle, items.size)
    bins, score = excess_bins(observed, laws, THRESHOLDS.set_excess)
    if laws[0, bins].sum() > THRESHOLDS.honest_loss or score <= THRESHOLDS.set_score:
        score = 0.0
    raised = RaisedSet.of(oracle, items, observed)
    is_decided = score > 0 and raised.is_certain
    return SharedSet(items, bins, raised, least_of_set(oracle, observed), is_decided), score


def _raised(hits: Int64Array, bins: BoolArray) -> BoolArray:
    """Return the items that reports in the bins support more often than others, by 5 deviations."""
    inside, outside = hits[bins].sum(axis=0), hits[~bins].sum(axis=0)
    n_in, n_out = np.maximum([inside[-1], outside[-1]], 1)
    share = (inside + outside)[:-1] / (n_in + n_out)
    deviation = np.sqrt(share * (1 - share) * (1 / n_in + 1 / n_out))
    gap = inside[:-1] / n_in - outside[:-1] / n_out
    return gap > THRESHOLDS.raised * deviation


def pair_scores(pairs: Int64Array, oracle: FrequencyOracle) -> FloatArray:
    """Return the excess of each pair over honest reports, in standard deviations, less the median.

    `pairs`, (m + 1, m + 1), counts the reports that support both of two items; index m stands for
    no condition. An honest report supports both items with a probability that depends on whether
    its user holds one of them. The median is subtracted because reports of unusual sizes move all
    pairs alike. The diagonal is zero.
    """
    n = float(pairs[-1, -1])
    m = len(pairs) - 1
    if n < 1 or m < 2:
        return np.zeros((m, m))
    share = np.diag(pairs)[:-1] / n
    p, q = oracle.p, oracle.q
    frequencies = (share - q) / (p - q)
    own_and_other = p * other_items_laws(oracle, 1)[0][1]
    two_others = float(set_laws(oracle, 2)[0, 2])
    deviations = np.sqrt(share * (1 - share))
    holders = np.add.outer(frequencies, frequencies)
    honest = own_and_other * holders + two_others * (1 - holders)
    scale = np.outer(deviations, deviations)
    scores = np.divide(
        math.sqrt(n) * (pairs[:-1, :-1] / n - honest), scale, out=np.zeros((m, m)), where=scale > 0
    )
    scores -= np.median(scores[~np.eye(m, dtype=np.bool_)])
    np.fill_diagonal(scores, 0)
    return scores


def best_set(scores: FloatArray) -> tuple[Int64Array, float]:
    """Return the set of 3 to 24 items, at most half of them, with the best score, and its score.

    `scores` is symmetric with a zero diagonal. A set of t of the m items whose pairs sum to s
    standard deviations scores s^2/2 - ln C(m, t): its log-likelihood gain less the log of the
    number of choices. The sets are those that grow from each item by the one whose pairs with the
    set sum to most. Without a set of a positive sum the result is empty, and scores 0.
    """
    m = len(scores)
    rows, best = np.arange(m), (np.empty(0, np.int64), 0.0)
    sums, totals = scores.copy(), np.zeros(m)
    sums[rows, rows] = -np.inf
    order = rows[:, None]
    for t in range(2, min(MOST_ITEMS, max(m // 2, _LEAST), m - 2) + 1):
        added = sums.argmax(axis=1)
        totals += sums[rows, added]
        sums += scores[added]
        sums[rows, added] = -np.inf
        order = np.column_stack([order, added])
        first = int(totals.argmax())
        s = max(float(totals[first]), 0.0) / math.sqrt(math.comb(t, 2))
        score = s * s / 2 - log_choose(m, t)
        if t >= _LEAST and score > best[1]:
            best = np.sort(order[first]), score
    return best
