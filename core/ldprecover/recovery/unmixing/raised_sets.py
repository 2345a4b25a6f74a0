"""Sets of items that malicious reports raise together, found in the histogram of a round's reports.

Malicious users choose, among the reports that they may send, one that supports many items of a set
T. So the cells that support equally many items of T, a level, hold equally many malicious reports.
The evidence for T is how far the contents of its levels are from what frequencies explain.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ldprecover.distributions import log_choose
from ldprecover.recovery.unmixing.cells import Cells
from ldprecover.recovery.unmixing.prior import PRIOR, THRESHOLDS
from ldprecover.types import FloatArray, Int64Array

MOST_CELLS = 1 << 15
"""Cells beyond which no set is searched: it would take more than 5 s."""

_STARTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20)  # numbers of items that a search starts from
_SEARCHES = 6
_ADDITIONS = 2
_TIE = 1e-6  # nats
_LEAST_NORM = 1e-9
_LEAST_RATIO = 0.01  # of a level's content to that of an honest round


@dataclass(frozen=True, eq=False)
class Addition:
    """Malicious reports of one law, by the histogram.

    `share` is their number over that of all reports in the kept cells, with a standard `error`. A
    share of one would add `estimates` to the d items. `log_likelihood` is by how much the law
    explains the reports better than no attack does. `is_raising` is false if the reports add
    nothing to the set: some raise it, and others conceal that.
    """

    share: float
    error: float
    log_likelihood: float
    estimates: FloatArray
    is_raising: bool

    @property
    def deviation(self) -> float:
        """The standard deviation of the share, which another law of the same set changes too."""
        return math.hypot(self.error, self.share * PRIOR.share_deviation)


class HistogramSet(NamedTuple):
    """A set of items, sorted, with the evidence of it in nats less the price of naming it.

    `probabilities` are those of each item against the other items in its place.
    """

    items: Int64Array
    evidence: float
    probabilities: FloatArray


class LevelSearch:
    """The search for the set that malicious reports raise, in what frequencies do not explain."""

    def __init__(self, cells: Cells, histogram: Int64Array) -> None:
        self._cells, self._sums = cells, cells.sums
        self._d = cells.oracle.domain_size
        self._filled, expected = cells.fit(histogram)
        # Malicious users do not send what supports every item: it stands out.
        self._is_sent = (self._sums.masses(np.ones(self._d)) < self._d - 0.5).astype(np.float64)
        self._residual = self._filled - expected
        self._excess = (histogram - expected) * self._is_sent
        self._content = float(expected @ expected / expected.sum())  # of a report's cell, the mean

    def best(self, estimates: FloatArray | Int64Array) -> HistogramSet | None:
        """Return the set of most evidence, or None if that is below `THRESHOLDS.set_evidence`.

        A search adds and removes one item at a time. It starts from the highest estimates, and
        again from the best set with one item swapped, and from those of its items it needs most.
        """
        items, evidence = np.empty(0, np.int64), THRESHOLDS.set_evidence
        order, swapped = np.argsort(-estimates), np.empty((0, self._d))
        for _ in range(_SEARCHES if self._sums.number <= MOST_CELLS else 0):
            starts = [order[:size] for size in _STARTS if 2 * size <= self._d]
            climbed = [self._climbed(each) for each in starts]
            best, score = max(climbed, key=itemgetter(1), default=(items, evidence))
            if score <= evidence + _TIE:
                break
            items, evidence = best, score
            swapped = np.array([self._toggled(items[items != each]) for each in items])
            row, new = np.unravel_index(swapped.argmax(), swapped.shape)
            order = items[np.argsort(self._toggled(items)[items])]
            order = np.append(order[order != items[row]], new)
        if not items.size:
            return None
        total = np.logaddexp(np.logaddexp.reduce(swapped, axis=1), self._toggled(items)[items])
        return HistogramSet(items, evidence, np.exp(np.minimum(evidence - total, 0.0)))

    def additions_for(self, items: Iterable[int]) -> list[Addition]:
        """Return the likeliest laws of reports that raise a set, and one that hides them.

        A user of a law draws a number of the items, and one of the reports that support all these.
        """
        hits = self._hits(np.array(sorted(items)))
        laws = [row[hits] * self._is_sent for row in _laws(int(hits.max()))]
        shown = [(self._addition(law, is_raising=True), law) for law in laws if law.any()]
        pairs = [(each, law) for each, law in shown if each is not None]
        likeliest = sorted(pairs, key=lambda pair: -pair[0].log_likelihood)[:_ADDITIONS]
        if not likeliest:
            return []
        # Other reports may conceal what these add: then the estimates say what users hold.
        # Few reports suffice for that: no cell can have fewer than none of them.
        part = self._cells.residual(likeliest[0][1])
        concealing = self._addition(1 - part / min(part.min(), -_LEAST_NORM), is_raising=False)
        return [*(each for each, _ in likeliest), *filter(None, [concealing])]

    def _addition(self, law: FloatArray, *, is_raising: bool) -> Addition | None:
        """Return the reports of a law, or None if the histogram does not show any."""
        law = law / max(float(np.delete(law, self._cells.dropped).sum()), _LEAST_NORM)
        filled, expected = self._cells.fit(law)
        regressor = filled - expected
        norm, n = float(regressor @ regressor), float(self._filled.sum())
        share = float(self._residual @ regressor) / (n * max(norm, _LEAST_NORM**2))
        if share <= 0 or norm < _LEAST_NORM / self._sums.number:
            return None
        # Cells are not equally full, so the variance is that of the weighted sum.
        error = math.sqrt(float(regressor**2 @ self._filled)) / (n * norm)
        estimates = self._cells.estimates(filled)
        return Addition(share, error, (share / error) ** 2 / 2, estimates, is_raising)

    def _hits(self, items: Int64Array) -> Int64Array:
        """Return the number of the items that each cell supports."""
        chosen = np.zeros(self._d)
        chosen[items] = 1.0
        return np.rint(self._sums.masses(chosen)).astype(np.int64)

    def _climbed(self, items: Int64Array) -> tuple[Int64Array, float]:
        """Return the set that is reached by adding or removing one item at a time."""
        evidence = -math.inf
        while True:
            toggled = self._toggled(items)
            best = int(toggled.argmax())
            if toggled[best] <= evidence + _TIE:
                return items, evidence
            items, evidence = np.setxor1d(items, best), float(toggled[best])

    def _toggled(self, items: Int64Array) -> FloatArray:
        """Return the evidence of the d sets with one item more, or one less of these."""
        hits, r = self._hits(items), items.size
        contents = (self._excess, self._is_sent)
        totals = np.stack([np.bincount(hits, each, minlength=r + 2) for each in contents])
        support = np.zeros((2, r + 2, self._d))  # of the cells of each level that support an item
        for level in range(r + 1):
            for row, each in zip(support, contents, strict=True):
                row[level] = self._sums.counts(np.where(hits == level, each, 0.0))
        # Cells that support an item are a level higher with it, and a level lower without it.
        moved = np.roll(support, 1, axis=1)
        moved[:, :, items] = np.roll(support[:, :, items], -1, axis=1)
        price = np.full(self._d, self._price(r + 1))
        price[items] = self._price(r - 1)
        return self._likelihood(totals[:, :, None] - support + moved) - price

    def _price(self, r: int) -> float:
        """Return the price in nats of naming a set of r of the items, and one of its r laws."""
        return math.log(self._d * r) + log_choose(self._d, r) if 1 < r < self._d else math.inf

    def _likelihood(self, levels: FloatArray) -> FloatArray:
        """Return the log-likelihood of d sets, by excess and number of the cells of each level.

        The shape of `levels` is (2, levels, d). The law is that of `_laws` that fits best.
        """
        excess, number = levels
        laws = _laws(len(number) - 1)
        law = np.repeat(laws[:, :, None], self._d, axis=2)
        if not self._cells.dropped.size:
            # Frequencies explain the part that is linear in the number of items.
            total, hits = number.sum(axis=0), np.arange(len(number))[:, None]
            distance = hits - (number * hits).sum(axis=0) / total
            spread = np.maximum((number * distance**2).sum(axis=0), _LEAST_NORM)
            slope = laws @ (number * distance) / spread
            law -= (laws @ number / total)[:, None] + slope[:, None] * distance
        weighted = law * number
        norm = np.maximum((law * weighted).sum(axis=1), _LEAST_NORM)
        scale = np.maximum((law * excess).sum(axis=1) / norm, 0.0) / self._content
        likelihood = np.log(np.maximum(1 + law * scale[:, None], _LEAST_RATIO))
        content = np.maximum(self._content * number + excess, 0.0)
        nats = (likelihood * content).sum(axis=1) - self._content * scale * weighted.sum(axis=1)
        return nats.max(axis=0)


@lru_cache
def _laws(limit: int) -> FloatArray:
    """Return how often reports that support k of the items are sent, for k from 0 to `limit`.

    A user who draws s of the items sends one that supports these: in proportion to C(k, s). The
    rows are s from 2 to `limit`.
    """
    sizes = range(2, limit + 1)
    ways = [[math.comb(k, s) / math.comb(limit, s) for k in range(limit + 1)] for s in sizes]
    return np.array(ways)
