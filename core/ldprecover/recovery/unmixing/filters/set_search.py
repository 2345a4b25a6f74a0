"""Sets of items that malicious reports share: found by their pairs, and dropped where their number
gives them away.

In a round a set is looked for among the pairs of the most supported items, and where there is none
among their triples. How many of its items the kept reports support is compared with what honest
ones do: where some numbers are far too frequent, such reports are dropped, and the next round looks
at the rest. Several attackers are found one after the other.
"""

from dataclasses import dataclass

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.recovery.reports import ReportSource
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.pair_scan import best_set, pair_scores
from ldprecover.recovery.unmixing.filters.rules import (
    MOST_ITEMS,
    DroppedSet,
    Kept,
    hits_by_item,
    lost,
    pairs_kept,
    set_laws,
    total_of_kept,
    triples_kept,
)
from ldprecover.recovery.unmixing.filters.triple_scan import best_set_of_triples, triple_scores
from ldprecover.types import BoolArray, FloatArray, Int64Array

_ITEMS = 64  # that are looked at: an attack on others has not raised them
_TRIPLED = 32  # the same, where triples are looked at
_ROUNDS = 3
_SHARE = 0.03  # of a bin that must be above the honest fit
_TOO_FULL = 12.0  # standard deviations by which the dropped bins must be above it
# standard deviations by which reports in these bins must support another item of the set more often
_RAISED = 5.0
# score of a set that is suspicious though no report is dropped: one honest round in 2,000 has one
_SUSPICIOUS = 8.0
# probability of the dropped bins, for a user who holds none of the set, that is too much to lose
_HONEST = 0.5


_Scored = tuple[Int64Array, float]


@dataclass(frozen=True, eq=False)
class SharedSets:
    """What is kept, and its tally; the items of all sets found, and how many reports each dropped
    set took.
    """

    kept: Kept
    tally: Tally
    suspects: tuple[int, ...]
    dropped: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Tested:
    """A set, as a mask of the items looked at, the bins to drop, by how much they are too full, and
    items they raise.

    The score is 0 where nothing is to be dropped.
    """

    members: BoolArray
    bins: BoolArray
    score: float
    raised: BoolArray


def shared_sets(source: ReportSource, kept: Kept, tally: Tally) -> SharedSets:
    """Return what is kept of the reports already kept, whose tally is given. Four to seven passes a
    round.
    """
    oracle, d = source.oracle, source.oracle.domain_size
    seen = np.zeros(d, np.bool_)
    suspects: list[int] = []
    dropped: list[int] = []
    for _ in range(_ROUNDS):
        order = np.argsort(-tally.counts(oracle), kind="stable")
        items = order[~seen[order]][:_ITEMS]
        pairs = _of_pairs(source, kept, items)
        best = _best(source, kept, items, pairs) or _best(
            source, kept, items, _of_triples(source, kept, items)
        )
        if best is None:
            found, score = max(pairs, key=lambda pair: pair[1], default=(items[:0], 0.0))
            if score > _SUSPICIOUS:
                suspects += items[found].tolist()
            break
        found_set = DroppedSet(items[best.members], best.bins)
        taken = total_of_kept(source, lost, kept, rule=Kept(sets=(found_set,)))
        kept, tally = kept.without(found_set), tally - taken
        seen[items[best.members]] = True
        suspects += items[best.members].tolist()
        dropped.append(taken.n)
    return SharedSets(kept, tally, tuple(sorted(suspects)), tuple(dropped))


def _of_pairs(source: ReportSource, kept: Kept, items: Int64Array) -> list[_Scored]:
    """Return the sets whose pairs are supported too often, and too seldom: places among the items,
    and scores.
    """
    scores = pair_scores(
        total_of_kept(source, pairs_kept, kept, items=items), source.oracle.p, source.oracle.q
    )
    return [(found, score) for found, score in map(best_set, (scores, -scores)) if score > -1]


def _of_triples(source: ReportSource, kept: Kept, items: Int64Array) -> list[_Scored]:
    """Return the same by triples, of fewer items: there are many more of them."""
    counted = total_of_kept(source, triples_kept, kept, items=items[:_TRIPLED])
    scores = triple_scores(counted, source.oracle.p, source.oracle.q)
    return [
        (found, score) for found, score in map(best_set_of_triples, (scores, -scores)) if score > -1
    ]


def _best(
    source: ReportSource, kept: Kept, items: Int64Array, sets: list[_Scored]
) -> _Tested | None:
    """Return the test of the set whose reports give themselves away most; None where none do."""
    tests = _tested(source, kept, items, [_mask(found, items.size) for found, _ in sets])
    return max((test for test in tests if test.score), key=lambda test: test.score, default=None)


def _tested(
    source: ReportSource, kept: Kept, items: Int64Array, sets: list[BoolArray]
) -> list[_Tested]:
    """Return the test of each set, or of the set with the items that its bins raise, where that
    finds more.
    """
    first = _tests(source, kept, items, sets)
    wider = [test.members | test.raised for test in first]
    again = [
        i
        for i, (test, members) in enumerate(zip(first, wider, strict=True))
        if test.score and test.raised.any() and members.sum() <= MOST_ITEMS
    ]
    second = dict(zip(again, _tests(source, kept, items, [wider[i] for i in again]), strict=True))
    return [
        second[i] if i in second and second[i].score > test.score else test
        for i, test in enumerate(first)
    ]


def _tests(
    source: ReportSource, kept: Kept, items: Int64Array, sets: list[BoolArray]
) -> list[_Tested]:
    if not sets:
        return []
    hits = total_of_kept(source, hits_by_item, kept, items=items, sets=np.array(sets))
    p, q = source.oracle.p, source.oracle.q
    return [_test(members, of_set, p, q) for members, of_set in zip(sets, hits, strict=True)]


def _test(members: BoolArray, hits: Int64Array, p: float, q: float) -> _Tested:
    """Return the test of a set: `hits` are, for k of its items, the reports that support k, item by
    item and all.
    """
    t = int(members.sum())
    hits = hits[: t + 1]
    observed = hits[:, -1]
    laws = set_laws(t, p, q)
    found = excess_bins(observed, laws, _SHARE)
    score = found.score(observed)
    nothing = np.zeros(members.size, np.bool_)
    if not found.bins.any() or laws[0, found.bins].sum() > _HONEST or score <= _TOO_FULL:
        return _Tested(members, found.bins, 0.0, nothing)
    return _Tested(members, found.bins, score, ~members & _raised(hits, found.bins))


def _raised(hits: Int64Array, bins: BoolArray) -> BoolArray:
    """Return which items the reports in the bins support more often than the others do."""
    inside, outside = hits[bins].sum(axis=0), hits[~bins].sum(axis=0)
    n_in, n_out = int(inside[-1]), int(outside[-1])
    if not n_in or not n_out:
        return np.zeros(hits.shape[1] - 1, np.bool_)
    share = (inside + outside)[:-1] / (n_in + n_out)
    deviation = np.sqrt(share * (1 - share) * (1 / n_in + 1 / n_out))
    gap: FloatArray = inside[:-1] / n_in - outside[:-1] / n_out
    return np.asarray(gap > _RAISED * deviation)


def _mask(members: Int64Array, m: int) -> BoolArray:
    mask = np.zeros(m, np.bool_)
    mask[members] = True
    return mask
