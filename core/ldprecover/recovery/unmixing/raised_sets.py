"""Sets of items that malicious reports raise together, found in the histogram of a round's reports.

The linear part of an attack looks like frequencies. What is left shows the set: malicious users who
choose, among the reports that they may send, one that supports many items of a set T fill the cells
that support many of them more than any frequencies do. The evidence for T is the likelihood of the
histogram with one more regressor, the law of such reports, in the directions that frequencies
cannot explain.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ldprecover.recovery.unmixing.cells import Cells
from ldprecover.recovery.unmixing.prior import THRESHOLDS
from ldprecover.types import FloatArray, Int64Array

_TILTS = (0.4, 0.8, 1.5, 3.0, 8.0)  # log-preference of a report for one more item of the set
_FIRST_TILTS = (0.8, 3.0)
_STARTS = (3, 5, 7, 9, 11, 13, 16, 20, 26)  # numbers of highest estimates that a search starts from
_MANY_CELLS = 1 << 12  # above which every second start serves, to save time
_STEPS = 200  # of a search, at most
_TRIED, _SWAPPED = 4, 2  # items of the largest changes that are added, removed and swapped
_LEAST_NORM = 1e-9


@dataclass(frozen=True, eq=False)
class Addition:
    """Malicious reports of one law, by the histogram.

    `share` is their number over that of all reports in the kept cells, with a standard `error`. A
    share of one would add `estimates` to the d items. `log_likelihood` is by how much the law
    explains the histogram better than no attack does. `is_raising` is false if the reports add
    nothing to the set: some raise it, and others conceal that.
    """

    share: float
    error: float
    log_likelihood: float
    estimates: FloatArray
    is_raising: bool


class _Candidate(NamedTuple):
    """A set and a tilt, with the log-likelihood less the price of naming the set."""

    score: float
    items: Int64Array
    tilt: float


class SetSearch:
    """The search for the set that malicious reports raise, in the residual of a histogram.

    In the law of a set with some tilt, each report is sent in proportion to exp(tilt k) among those
    that a user may choose from, if it supports k of the items.
    """

    def __init__(self, cells: Cells, histogram: Int64Array) -> None:
        self._cells, self._sums = cells, cells.sums
        self._d = cells.oracle.domain_size
        self._filled = cells.filled(histogram)
        self._n = float(self._filled.sum())
        self._residual = cells.residual(histogram)
        # Malicious users with private coins do not send what supports every item: it stands out.
        sizes = self._sums.masses(np.ones(self._d))
        self._is_sent = self._in_groups(sizes) < (self._d - 0.5 if self._is_free else math.inf)

    @property
    def _is_free(self) -> bool:
        """Whether a user chooses among all reports."""
        return self._sums.choices == self._sums.number

    def best(self, estimates: FloatArray) -> tuple[int, ...]:
        """Return the set of the highest score, if that is above `THRESHOLDS.set_evidence`.

        A search adds, removes and swaps one item at a time. It starts from the highest estimates.
        Without such a set the result is empty.
        """
        order = np.argsort(-estimates)
        sizes = _STARTS[:: 2 if self._sums.number > _MANY_CELLS else 1]
        starts = [order[:size] for size in sizes if 2 * size <= self._d]
        each = (
            max((self._climbed(start, tilt) for start in starts), key=_score)
            for tilt in _FIRST_TILTS
        )
        best = max((self._polished(candidate) for candidate in each), key=_score)
        return tuple(sorted(best.items.tolist())) if best.score > THRESHOLDS.set_evidence else ()

    def on(self, items: Iterable[int]) -> list[Addition]:
        """Return what may raise a set, by the two likeliest tilts, and what conceals that."""
        chosen = np.array(sorted(items))
        tilts = sorted(_TILTS, key=lambda tilt: -self._candidate(chosen, tilt).score)[:2]
        laws = [self._law(chosen, tilt) for tilt in tilts]
        # Other reports may conceal what these add: then the estimates say what users hold.
        pure = self._cells.residual(laws[0]) + laws[0].sum() / self._sums.number
        additions = [self._addition(law, is_raising=True) for law in laws]
        additions.append(self._addition(pure, is_raising=False))
        return [each for each in additions if each is not None]

    def _addition(self, law: FloatArray, *, is_raising: bool) -> Addition | None:
        """Return the reports of a law, or None if the histogram does not show any."""
        regressor = self._cells.residual(law)
        norm = float(regressor @ regressor)
        if norm < _LEAST_NORM / self._sums.number:
            return None
        share = float(self._residual @ regressor) / (self._n * norm)
        # Cells are not equally full, so the variance is that of the weighted sum.
        error = math.sqrt(float(regressor**2 @ self._filled)) / (self._n * norm)
        if share <= 0:
            return None
        total = float(law.sum())
        return Addition(
            share * total,
            error * total,
            (share / error) ** 2 / 2,
            self._estimates(law) / total,
            is_raising,
        )

    def _estimates(self, law: FloatArray) -> FloatArray:
        oracle, filled = self._cells.oracle, self._cells.filled(law)
        support = self._sums.counts(filled) - oracle.q * filled.sum()
        estimates: FloatArray = support / (oracle.p - oracle.q)
        return estimates

    def _law(self, items: Int64Array, tilt: float) -> FloatArray:
        """Return the probability of each cell that is kept; 0 for the others, or for all."""
        weights = self._weights(items, tilt)
        weights /= weights.sum(axis=1, keepdims=True) * len(weights)
        law = weights.reshape(-1)
        law[self._cells.dropped] = 0.0
        if self._is_free:
            law /= max(float(law.sum()), _LEAST_NORM)
        return law

    def _weights(self, items: Int64Array, tilt: float) -> FloatArray:
        """Return exp(tilt k) of each cell, in units of the largest one of its group."""
        chosen = np.zeros(self._d)
        chosen[items] = 1.0
        exponents = tilt * self._in_groups(np.rint(self._sums.masses(chosen)))
        largest = np.where(self._is_sent, exponents, -np.inf).max(axis=1, keepdims=True)
        return np.asarray(np.exp(np.minimum(exponents - largest, 0.0)) * self._is_sent)

    def _in_groups(self, cells: FloatArray) -> FloatArray:
        """Return an array over the cells with a row for each group that a user may choose from."""
        return cells.reshape(-1, self._sums.choices)

    def _candidate(self, items: Int64Array, tilt: float) -> _Candidate:
        """Return a set with its score, by the mean content of the cells where its law is far."""
        law, r = self._law(items, tilt), items.size
        norm = self._cells.residual_norm(law)
        if norm < _LEAST_NORM / self._sums.number:
            return _Candidate(-math.inf, items, tilt)
        product = float(self._residual @ law)
        distance = (law - law.mean()) ** 2
        content = float(distance @ self._filled) / float(distance.sum())
        likelihood = product * abs(product) / (2 * content * norm)
        # ln(d C(d, r)): the price of naming r of d items.
        ways = math.lgamma(self._d + 1) - math.lgamma(r + 1) - math.lgamma(self._d - r + 1)
        return _Candidate(likelihood - math.log(self._d) - ways, items, tilt)

    def _climbed(self, start: Int64Array, tilt: float) -> _Candidate:
        """Return the best set that is reached by changing one item at a time."""
        current = self._candidate(start, tilt)
        for _ in range(_STEPS):
            better = max(self._neighbours(current), key=_score)
            if better.score <= current.score:
                break
            current = better
        return current

    def _polished(self, best: _Candidate) -> _Candidate:
        """Return the best set that is reached by other tilts, or from the sets within."""
        while True:
            candidates = [self._climbed(best.items, tilt) for tilt in _TILTS]
            smaller = max(self._smaller(best), key=_score, default=best)
            candidates.append(self._climbed(smaller.items, smaller.tilt))
            better = max(candidates, key=_score)
            if better.score <= best.score:
                return best
            best = better

    def _smaller(self, current: _Candidate) -> Iterator[_Candidate]:
        """Yield ever smaller sets, each without the item that the set before needs least."""
        while current.items.size > 2:
            items, tilt = current.items, current.tilt
            current = max(
                (self._candidate(items[items != each], tilt) for each in items), key=_score
            )
            yield current

    def _neighbours(self, current: _Candidate) -> Iterator[_Candidate]:
        """Yield the sets with an item more, less or other, by the residual's projections."""
        _, items, tilt = current
        with_item, without = self._projections(items, tilt)
        with_item[items] = -np.inf
        more = np.argsort(-with_item)[:_TRIED]
        less = items[np.argsort(-without[items])]
        if 2 * (items.size + 1) <= self._d:
            yield from (self._candidate(np.append(items, each), tilt) for each in more)
        for rank, each in enumerate(less):
            rest = items[items != each]
            if rest.size >= 2:
                yield self._candidate(rest, tilt)
            if rank < _SWAPPED:
                yield from (self._candidate(np.append(rest, new), tilt) for new in more[:_SWAPPED])

    def _projections(self, items: Int64Array, tilt: float) -> tuple[FloatArray, FloatArray]:
        """Return the residual's product with the law of the set with, and without, each item.

        Such a law differs from that of the set in the cells that support the item. So one sum over
        the cells that support each item serves all items.
        """
        weights = self._weights(items, tilt)
        residual = self._in_groups(self._residual)
        total = weights.sum(axis=1, keepdims=True)
        product = (weights * residual).sum(axis=1, keepdims=True)

        def changed(factor: float) -> FloatArray:
            added = (factor - 1) * weights
            if self._is_free:
                products = self._sums.counts((added * residual).reshape(-1)) + product.item()
                return np.asarray(products / (self._sums.counts(added.reshape(-1)) + total.item()))
            each = (product + added * residual) / (total + added)
            return self._sums.counts(np.asarray(each.reshape(-1)))

        return changed(math.exp(tilt)), changed(math.exp(-tilt))


def _score(candidate: _Candidate) -> float:
    return candidate.score
