"""Finds sets of items that malicious reports share, by the joint law of the items of a report.

Pairs and triples of the most supported items are only where the search starts: sets grow from those
that stand out, with either sign, as reports that support five or six of ten items can leave pairs
as usual. Then single items join and leave while the evidence of the set rises, which is that of how
many of its items each report supports. The search may take any way: the price of the evidence is
that of all sets.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ldprecover import counting
from ldprecover.distributions import hypergeometric_law, log_choose
from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.unmixing.evidence import log_p_of_hits, log_p_of_set
from ldprecover.recovery.unmixing.filters.excess import excess_bins
from ldprecover.recovery.unmixing.filters.raised import RaisedSet
from ldprecover.recovery.unmixing.filters.rules import MOST_ITEMS, DroppedSet, set_laws
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.reports.sample import Sample
from ldprecover.reports.source import ReportSource
from ldprecover.types import BoolArray, FloatArray, Int64Array, UInt64Array

_WORD = 64
_SAMPLED = 1 << 18  # reports among which sets are searched; the evidence is of all
_LEAST = 4  # items among which a set is searched
_TRIPLES = 400  # from which sets grow, for each sign
_VALUED = 40  # sets of the highest scores, whose evidence is computed
_CLIMBED = 4  # sets of the most evidence, from which the search climbs
_TIE = 1e-6  # nats
_TINY = 1e-12

FloatTable = NDArray[np.float32]


def found_sets(
    source: ReportSource, z: FloatArray, sizes: Int64Array
) -> tuple[list[DroppedSet], float]:
    """Return the sets that reports share, and ln p of the first one, by a sample of the reports.

    z are the estimates of all d items, and `sizes[k]` reports support k of them, k = 0..d. A set is
    searched among the reports that those before it do not drop. One pass, and memory for at most
    2^18 reports.
    """
    oracle, n, first = source.oracle, int(sizes.sum()), 0.0
    items = np.sort(np.argsort(-z, kind="stable")[: THRESHOLDS.pair_items])
    words = source.total(partial(_words, items=items, n=n))
    sets, free = list[DroppedSet](), np.ones(items.size, np.bool_)
    for number in range(THRESHOLDS.rounds):
        if np.count_nonzero(free) < _LEAST or not words.size:
            break
        search = SetSearch(oracle, words, z[items])
        members, value = search.best(free)
        first = first if number else min(-value, 0.0)
        others = np.setdiff1d(np.flatnonzero(free), members)[: members.size]
        # All sets of items stand out in reports of unusual sizes.
        usual = search.value(others) if others.size > 1 else 0.0
        if value <= max(THRESHOLDS.suspicious, 2 * usual):
            break
        hits = np.bitwise_count(words & _mask(members))
        observed = np.bincount(hits, minlength=members.size + 1)
        if not sets and not _beyond_sizes(oracle, sizes, observed):
            break
        bins = _dropped(oracle, observed)
        sets.append(DroppedSet(items[members], bins))
        free[members] = False
        words = words[~bins[hits]]
    return sets, first


def _beyond_sizes(oracle: FrequencyOracle, sizes: Int64Array, observed: Int64Array) -> bool:
    """Return whether more than the sizes of the reports explains how many of a set they support.

    Reports of unusual sizes support more, or fewer, items of any set.
    """
    d, t, p = oracle.domain_size, observed.size - 1, oracle.p
    none, holder, shares = np.zeros(t + 1), np.zeros(t + 1), sizes / sizes.sum()
    for k in np.flatnonzero(sizes).tolist():
        none += shares[k] * hypergeometric_law(d, t, k)
        holder[1:] += p * shares[k] * hypergeometric_law(d - 1, t - 1, max(k - 1, 0))
        holder[:-1] += (1 - p) * shares[k] * hypergeometric_law(d - 1, t - 1, min(k, d - 1))
    laws = np.maximum([none, holder], _TINY)  # of few sizes, some numbers have no probability
    log_p = log_p_of_hits(laws, observed) + log_choose(d, t)
    return -float(log_p) > THRESHOLDS.suspicious


def _dropped(oracle: FrequencyOracle, observed: Int64Array) -> BoolArray:
    """Return the bins that are dropped: far too full, of a set that reports raise for certain.

    `observed[k]` reports support k of its items. None is if half of the honest reports would be.
    """
    laws, raised = set_laws(oracle, observed.size - 1), RaisedSet.of(oracle, observed)
    bins, score = excess_bins(observed, laws, THRESHOLDS.set_excess)
    is_lost = laws[0, bins].sum() > THRESHOLDS.honest_loss
    if is_lost or score <= THRESHOLDS.set_score or not raised.is_certain:
        bins[:] = False
    return bins


def _words(sample: Sample, *, items: Int64Array, n: int) -> UInt64Array:
    """Return which of up to 64 items a report supports, as bits of a word for each of n reports.

    Of many reports every word is that of one among equally many that follow each other.
    """
    size = min(n, _SAMPLED)
    last = np.arange(len(sample) if sample.multiplicities is None else sample.n)
    words = np.zeros(size, np.uint64)
    places = (sample.first + last) * size // max(n, 1)
    rows, places = np.unique(places, return_index=True)[::-1]
    if sample.multiplicities is not None:
        rows = np.searchsorted(np.cumsum(sample.multiplicities), rows, "right")
    bits = np.zeros((rows.size, _WORD), np.bool_)
    bits[:, : items.size] = sample.oracle.supports(sample.reports[rows], items)
    words[places] = np.packbits(bits, axis=1, bitorder="little").view("<u8")[:, 0]
    return words


class SetSearch:
    """The search among m <= 64 items of estimates z, of which word i has those of report i."""

    def __init__(self, oracle: FrequencyOracle, words: UInt64Array, z: FloatArray) -> None:
        self._oracle, self._words, self._z = oracle, words, z
        bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        self._lines = counting.packed_lines(bits[:, : z.size].T.astype(np.bool_))
        self._most = min(MOST_ITEMS, oracle.domain_size - 2)
        self.pairs, self.triples = self._moments()

    def best(self, free: BoolArray) -> tuple[Int64Array, float]:
        """Return the set of free items with the most evidence, in nats less its price."""
        grown = {members: score for score, members in self._grown(np.flatnonzero(free))}
        likely = sorted(grown, key=lambda each: -grown[each])[:_VALUED]
        values = {each: self.value(np.array(each)) for each in likely}
        starts = likely[:_CLIMBED] + sorted(values, key=lambda each: -values[each])[:_CLIMBED]
        climbed = [self._climbed(np.array(each), values[each], free) for each in {*starts}]
        return max(climbed, key=lambda pair: pair[1], default=(np.empty(0, np.int64), 0.0))

    def _moments(self) -> tuple[FloatTable, FloatTable]:
        """Return the sums of products of two and three items' bits less q, in deviations.

        Products with one item twice are 0. The median pair is taken off: reports of unusual sizes
        move all of them alike.
        """
        q, n, m, lines = self._oracle.q, max(self._words.size, 1), self._z.size, self._lines
        pairs = counting.joint_counts(lines, lines).astype(np.float64)
        triples = np.zeros((m, m, m))
        for u in range(m - 2):
            rest = lines[u + 1 :]
            triples[u, u + 1 :, u + 1 :] = counting.joint_counts(rest & lines[u], rest)
        triples += triples.transpose(1, 0, 2) + triples.transpose(1, 2, 0)
        single = pairs.diagonal()
        of_two = pairs[:, :, None] + pairs[:, None] + pairs
        of_one = single[:, None, None] + single[:, None] + single
        triples += q**2 * of_one - q * of_two - q**3 * n
        pairs = pairs - q * (single[:, None] + single) + q**2 * n
        others = ~np.eye(m, dtype=np.bool_)
        pairs = (pairs - np.median(pairs[others])) * others
        triples *= others[:, :, None] & others[:, None] & others
        v = q * (1 - q)
        scaled = pairs / (n**0.5 * v), triples / (n**0.5 * v**1.5)
        return scaled[0].astype(np.float32), scaled[1].astype(np.float32)

    def _grown(self, items: Int64Array) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Yield scores and sets of these items that grow from each of them, and from triples."""
        m = items.size
        pairs = self.pairs[np.ix_(items, items)]
        triples = self.triples[np.ix_(items, items, items)]
        i, each = np.arange(m), np.eye(m, dtype=np.bool_)
        ordered = (i[:, None, None] < i[:, None]) & (i[:, None] < i)
        for sign in (1, -1):
            tensor = sign * triples
            order = np.argsort(-np.where(ordered, tensor, -np.inf), axis=None)
            u, v, w = np.unravel_index(order[: min(_TRIPLES, math.comb(m, 3))], tensor.shape)
            slopes = np.broadcast_to(sign * pairs, (m, m, m))
            yield from _sets(items, each, slopes, None)
            slopes = tensor[u] + tensor[v] + tensor[w]
            yield from _sets(items, each[u] | each[v] | each[w], slopes, tensor)

    def value(self, members: Int64Array) -> float:
        """Return the evidence of a set, less its price."""
        return float(self._values(self._observed(members), members.size, self._holders(members)))

    def _observed(self, members: Int64Array) -> Int64Array:
        """Return how many sampled reports support k of the members."""
        hits = np.bitwise_count(self._words & _mask(members))
        return np.bincount(hits, minlength=members.size + 1)

    def _holders(self, members: Int64Array) -> float:
        return float(np.maximum(self._z[members], 0).sum())

    def _values(self, observed: Int64Array, t: int, holders: FloatArray | float) -> FloatArray:
        price = log_choose(self._oracle.domain_size, t)
        return -log_p_of_set(self._oracle, holders, observed, price=price)

    def _climbed(
        self, members: Int64Array, value: float, free: BoolArray
    ) -> tuple[Int64Array, float]:
        """Return the set that is reached by adding or dropping one item at a time."""
        while True:
            changed = self._changed(members, free)
            best = int(changed.argmax())
            if changed[best] <= value + _TIE:
                return members, value
            members, value = np.setxor1d(members, best), float(changed[best])

    def _changed(self, members: Int64Array, free: BoolArray) -> FloatArray:
        """Return the evidence of the set with each of the m items more, or less if it is in it."""
        t, values = members.size, np.full(self._z.size, -np.inf)
        hits = np.bitwise_count(self._words & _mask(members))
        levels = counting.packed_lines(hits == np.arange(t + 1, dtype=np.uint8)[:, None])
        total = np.bincount(hits, minlength=t + 1)
        support = counting.joint_counts(self._lines, levels)
        more = np.zeros((self._z.size, t + 2), np.int64)
        more[:, :-1] += total - support
        more[:, 1:] += support
        less = (total - support)[members, :-1] + support[members, 1:]
        holders, z = self._holders(members), np.maximum(self._z, 0)
        others = np.setdiff1d(np.flatnonzero(free), members)
        if t < self._most:
            values[others] = self._values(more[others], t + 1, holders + z[others])
        if t > 2:
            values[members] = self._values(less, t - 1, holders - z[members])
        return values


def _mask(members: Int64Array) -> np.uint64:
    return np.bitwise_or.reduce(np.uint64(1) << members.astype(np.uint64))


def _sets(
    items: Int64Array, inside: BoolArray, slopes: FloatTable, tensor: FloatTable | None
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield for each of n sets `inside` of the m items the best one that grows from it, with its
    score.

    An item joins whose pairs, or triples, with the set sum to most: `slopes`, (n, m, m), are the
    scores of two items summed over the set, of pairs those alone. A set of t items that sum to s
    deviations scores s^2/2 - ln C(m, t).
    """
    order, (n, m) = 2 if tensor is None else 3, inside.shape
    rows, inside = np.arange(n), inside.copy()
    sums = np.einsum("nu,nux->nx", inside.astype(np.float32), slopes) / (order - 1)
    totals = (sums * inside).sum(axis=1) / order
    scores, best = np.full(n, -np.inf), inside.copy()
    for t in range(int(inside[0].sum()) + 1, min(MOST_ITEMS, m - 1) + 1):
        added = np.where(inside, -np.inf, sums).argmax(axis=1)
        totals += sums[rows, added]
        sums += slopes[rows, added]
        inside[rows, added] = True
        if tensor is not None:
            slopes += tensor[added]
        score = np.maximum(totals, 0) ** 2 / (2 * math.comb(t, order)) - log_choose(m, t)
        higher = score > scores
        scores[higher], best[higher] = score[higher], inside[higher]
    for score, members in zip(scores.tolist(), best, strict=True):
        yield score, tuple(items[members].tolist())
