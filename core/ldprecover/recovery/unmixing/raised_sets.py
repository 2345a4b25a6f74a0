"""Sets of items that malicious reports raise together, found in the histogram of a round's reports.

The linear part of an attack looks like frequencies. The rest shows the set: malicious users choose,
among the reports that they may send, one that supports many items of a set T. So they fill the
cells that support many of them more than any frequencies do. The evidence for T is the likelihood
of the histogram with one more regressor, the law of such reports, in the directions that
frequencies cannot explain.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ldprecover.recovery.unmixing.cells import Cells
from ldprecover.recovery.unmixing.prior import PRIOR, THRESHOLDS
from ldprecover.types import FloatArray, Int64Array

_TILTS = (0.4, 0.8, 1.5, 3.0, 8.0)  # see Preference
_FIRST_TILTS = (0.8, 3.0)
_CLIMBED = 5  # preferences, of those that fit best, by which a set is improved
_STARTS = (3, 5, 7, 9, 11, 13, 16, 20, 26)  # numbers of highest estimates that a search starts from
MOST_CELLS = 1 << 14
"""Cells beyond which no set is searched: it would take more than 5 s."""

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

    @property
    def deviation(self) -> float:
        """The standard deviation of the share, which another law of the same set changes too."""
        return math.hypot(self.error, self.share * PRIOR.share_deviation)


class Preference(NamedTuple):
    """How often a report is sent that supports k items of a set: as exp(tilt k) C(k, subset_size).

    The tilt is that of reports chosen among some random ones. A user who draws `subset_size` of the
    items, and one of the reports that support all of these, sends each as C(k, subset_size).
    """

    tilt: float = 0.0
    subset_size: int = 0

    def logarithm(self, k: FloatArray) -> FloatArray:
        """Return the logarithm of the frequency for each k, -inf for none."""
        return _logarithms(self, int(k.max(initial=0)))[k.astype(int)]


@lru_cache(maxsize=256)
def _logarithms(preference: Preference, largest: int) -> FloatArray:
    """Return the logarithms for k from 0 to the largest."""
    numbers = range(largest + 1)
    ways = np.array([float(math.comb(each, preference.subset_size)) for each in numbers])
    with np.errstate(divide="ignore"):
        return preference.tilt * np.array(numbers) + np.log(ways)


class _Candidate(NamedTuple):
    """A set and a preference, with the log-likelihood less the price of naming the set."""

    score: float
    items: Int64Array
    preference: Preference


class SetSearch:
    """The search for the set that malicious reports raise, in the residual of a histogram.

    In the law of a set with some preference, a user sends a report by how many of the items it
    supports.
    """

    def __init__(self, cells: Cells, histogram: Int64Array) -> None:
        self._cells, self._sums = cells, cells.sums
        self._d = cells.oracle.domain_size
        self._filled = cells.filled(histogram)
        self._n = float(self._filled.sum())
        self._residual = cells.residual(histogram)
        # Malicious users do not send what supports every item: it stands out.
        self._is_sent = self._sums.masses(np.ones(self._d)) < self._d - 0.5

    def best(self, estimates: FloatArray) -> tuple[tuple[int, ...], float]:
        """Return the set of the highest score, if that is above `THRESHOLDS.set_evidence`, and the
        score, in nats, less the price of the laws that were tried.

        A search adds, removes and swaps one item at a time. It starts from the highest estimates.
        Without such a set the result is empty, and so it is for fewer than six items.
        """
        order = np.argsort(-estimates)
        sizes = _STARTS[:: 2 if self._sums.number > _MANY_CELLS else 1]
        starts = [order[:size] for size in sizes if 2 * size <= self._d]
        if not starts or self._sums.number > MOST_CELLS:
            return (), 0.0
        each = (
            max((self._climbed(start, Preference(tilt)) for start in starts), key=_score)
            for tilt in _FIRST_TILTS
        )
        best = max((self._polished(candidate) for candidate in each), key=_score)
        raised = tuple(sorted(best.items.tolist())) if best.score > THRESHOLDS.set_evidence else ()
        return raised, max(best.score - math.log(len(self._preferences(best.items))), 0.0)

    def additions_for(self, items: Iterable[int]) -> list[Addition]:
        """Return the two likeliest laws of reports that raise a set, and one that hides them."""
        chosen = np.array(sorted(items))
        laws = [self._law(chosen, preference) for preference in self._likeliest(chosen, 2)]
        # Other reports may conceal what these add: then the estimates say what users hold.
        # Few reports suffice for that: no cell can have fewer than none of them.
        part = self._cells.residual(laws[0])
        part /= max(-float(part.min()), _LEAST_NORM)
        additions = [self._addition(law, is_raising=True) for law in laws]
        additions.append(self._addition((1 + part) / part.size, is_raising=False))
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
        total = float(self._without_dropped(law).sum())
        oracle, filled = self._cells.oracle, self._cells.filled(law)
        support = self._sums.counts(filled) - oracle.q * filled.sum()
        return Addition(
            share * total,
            error * total,
            (share / error) ** 2 / 2,
            support / (oracle.p - oracle.q) / total,
            is_raising,
        )

    def _likeliest(self, items: Int64Array, number: int) -> list[Preference]:
        """Return the preferences with which a set explains most."""
        preferences = self._preferences(items)
        return sorted(preferences, key=lambda each: -self._candidate(items, each).score)[:number]

    def _preferences(self, items: Int64Array) -> list[Preference]:
        largest = int(self._hits(items)[self._is_sent].max())
        subsets = [Preference(subset_size=each) for each in range(2, largest + 1)]
        return [*(Preference(tilt) for tilt in _TILTS), *subsets]

    def _law(self, items: Int64Array, preference: Preference) -> FloatArray:
        """Return the probability of each cell among those that are kept."""
        (law,) = self._weights(items, preference, (0,))
        law /= max(float(law.sum()), _LEAST_NORM)
        law /= max(float(self._without_dropped(law).sum()), _LEAST_NORM)
        return law

    def _without_dropped(self, law: FloatArray) -> FloatArray:
        """Return a law without the cells that are dropped."""
        rest = law.copy()
        rest[self._cells.dropped] = 0.0
        return rest

    def _weights(
        self, items: Int64Array, preference: Preference, more: Iterable[int]
    ) -> Iterator[FloatArray]:
        """Yield the frequency of each cell if it supported some more of the items than it does.

        The unit is the largest one.
        """
        hits = self._hits(items)
        exponents = preference.logarithm(hits)
        sent = np.where(self._is_sent, exponents, -np.inf)
        largest = sent.max(initial=0.0)  # no finite one is negative
        for each in more:
            changed = preference.logarithm(np.maximum(hits + each, 0.0)) if each else exponents
            yield np.exp(np.where(self._is_sent, changed - largest, -np.inf))

    def _hits(self, items: Int64Array) -> FloatArray:
        """Return the number of the items that each cell supports."""
        chosen = np.zeros(self._d)
        chosen[items] = 1.0
        return np.rint(self._sums.masses(chosen))

    def _candidate(self, items: Int64Array, preference: Preference) -> _Candidate:
        """Return a set with its score, by the mean content of the cells where its law is far."""
        law, r = self._without_dropped(self._law(items, preference)), items.size
        norm = self._cells.residual_norm(law)
        if norm < _LEAST_NORM / self._sums.number:
            return _Candidate(-math.inf, items, preference)
        product = float(self._residual @ law)
        distance = (law - law.mean()) ** 2
        content = float(distance @ self._filled) / float(distance.sum())
        likelihood = product * abs(product) / (2 * content * norm)
        # ln(d C(d, r)): the price of naming r of d items.
        ways = math.lgamma(self._d + 1) - math.lgamma(r + 1) - math.lgamma(self._d - r + 1)
        return _Candidate(likelihood - math.log(self._d) - ways, items, preference)

    def _climbed(self, start: Int64Array, preference: Preference) -> _Candidate:
        """Return the best set that is reached by changing one item at a time."""
        current = self._candidate(start, preference)
        for _ in range(_STEPS):
            better = max(self._neighbours(current), key=_score)
            if better.score <= current.score:
                break
            current = better
        return current

    def _polished(self, best: _Candidate) -> _Candidate:
        """Return the best set that is reached by other preferences, or from sets within."""
        while True:
            preferences = self._likeliest(best.items, _CLIMBED)
            candidates = [self._climbed(best.items, each) for each in preferences]
            smaller = max(self._smaller(best), key=_score, default=best)
            candidates.append(self._climbed(smaller.items, smaller.preference))
            better = max(candidates, key=_score)
            if better.score <= best.score:
                return best
            best = better

    def _smaller(self, current: _Candidate) -> Iterator[_Candidate]:
        """Yield ever smaller sets, each without the item that the set before needs least."""
        while current.items.size > 2:
            items, preference = current.items, current.preference
            current = max(
                (self._candidate(items[items != each], preference) for each in items), key=_score
            )
            yield current

    def _neighbours(self, current: _Candidate) -> Iterator[_Candidate]:
        """Yield the sets with an item more, less or other, by the residual's projections."""
        _, items, preference = current
        with_item, without = self._projections(items, preference)
        with_item[items] = -np.inf
        more = np.argsort(-with_item)[:_TRIED]
        less = items[np.argsort(-without[items])]
        if 2 * (items.size + 1) <= self._d:
            yield from (self._candidate(np.append(items, each), preference) for each in more)
        for rank, each in enumerate(less):
            rest = items[items != each]
            if rest.size >= 2:
                yield self._candidate(rest, preference)
            if rank < _SWAPPED:
                swapped = (np.append(rest, new) for new in more[:_SWAPPED])
                yield from (self._candidate(each, preference) for each in swapped)

    def _projections(
        self, items: Int64Array, preference: Preference
    ) -> tuple[FloatArray, FloatArray]:
        """Return the residual's product with the law of the set with, and without, each item.

        Such a law differs from that of the set in the cells that support the item. So one sum over
        the cells that support each item serves all items.
        """
        weights, of_more, of_less = self._weights(items, preference, (0, 1, -1))
        total, product = weights.sum(), (weights * self._residual).sum()

        def changed(others: FloatArray) -> FloatArray:
            added = others - weights
            products = self._sums.counts(added * self._residual) + product
            totals = self._sums.counts(added) + total
            return products / np.maximum(totals, _LEAST_NORM)

        return changed(of_more), changed(of_less)


def _score(candidate: _Candidate) -> float:
    return candidate.score
