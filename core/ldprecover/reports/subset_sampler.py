"""Tallies of subset selection: every report supports k items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldprecover.protocols.ss import SS
from ldprecover.reports.tally import Tally
from ldprecover.reports.tally_sampler import TallySampler, tally_sampler
from ldprecover.types import FloatArray, Int64Array, Rng

_FEW_ITEMS = 100  # with at most 100 items a population's tally is drawn from its exact law


@dataclass(frozen=True)
class SubsetSampler(TallySampler):
    """Draws tallies of subset selection, whose counts sum to k for each report."""

    oracle: SS

    def draw_honest(self, users: Int64Array, rng: Rng) -> Tally:
        """Return a tally of honest reports, drawn from its exact law in at most O(dk).

        With probability w a report is the user's item and k - 1 others at random, else any k of the
        d items at random. It contains the item with probability p if w = (p - k/d)/(1 - k/d).
        """
        share = self.oracle.subset_size / self.oracle.domain_size
        own = rng.binomial(users, (self.oracle.p - share) / (1 - share))
        return self._random_sets(own, int((users - own).sum()), rng)

    def population_tally(self, weights: FloatArray, n: int, rng: Rng) -> Tally:
        """Return a tally of n honest reports of users whose items are drawn from the weights.

        With up to 100 items it is drawn from its exact law. With more it takes O(d + sqrt(nk)), and
        only the sum over all reports keeps that every report has k items. The counts have their
        exact means and sum; their variances are too small by a factor of about 1 - 1/d.
        """
        if self.oracle.domain_size <= _FEW_ITEMS:
            return super().population_tally(weights, n, rng)
        k, d = self.oracle.subset_size, self.oracle.domain_size
        with_own = int(rng.binomial(n, (self.oracle.p - k / d) / (1 - k / d)))
        own = rng.multinomial(with_own, weights)
        others = _marked(with_own - own, with_own * (k - 1), rng)
        anyone = _marked(np.full(d, n - with_own), (n - with_own) * k, rng)
        return Tally(own + others + anyone, n)

    def draw_encoded(self, users: Int64Array, rng: Rng) -> Tally:
        """Return a tally of reports of `encode`, drawn from its exact law in O(dk)."""
        return self._random_sets(users, 0, rng)

    def _random_sets(self, own: Int64Array, free: int, rng: Rng) -> Tally:
        """Return the tally of own[v] reports of v and k - 1 others, and `free` of any k items.

        Items other than the own are random. The items are visited in order. A report with j items
        still to choose among l items ahead chooses the next with probability j/l. Reports that
        agree in j, and in whether an own item is ahead, are alike.
        """
        k, d = self.oracle.subset_size, self.oracle.domain_size
        remaining = np.arange(k + 1)
        # By the number of items still to choose.
        waiting, loose = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)
        waiting[k - 1], loose[k] = own.sum(), free
        counts = np.empty(d, np.int64)
        # Only numbers of items still to choose from low to high - 1 occur: reports differ little.
        low, high = k - 1, k + 1
        for v in range(d):
            some, ahead = slice(low, high), d - v
            # The users of this item are random ones of those whose own item is ahead.
            arriving = rng.multivariate_hypergeometric(
                waiting[some], int(own[v]), method="marginals"
            )
            waiting[some] -= arriving
            chosen = rng.binomial(loose[some], np.minimum(remaining[some] / ahead, 1.0))
            also = rng.binomial(waiting[some], np.minimum(remaining[some] / max(ahead - 1, 1), 1.0))
            counts[v] = own[v] + chosen.sum() + also.sum()
            loose[some] += arriving - chosen
            waiting[some] -= also
            one = max(low, 1)
            loose[one - 1 : high - 1] += chosen[one - low :]
            waiting[one - 1 : high - 1] += also[one - low :]
            occupied = np.flatnonzero(loose[one - 1 : high] + waiting[one - 1 : high])
            if occupied.size:
                low, high = one - 1 + int(occupied[0]), one + int(occupied[-1])
        return Tally(counts, int(own.sum()) + free)


tally_sampler.register(SS, SubsetSampler)


def _marked(cells: Int64Array, marks: int, rng: Rng) -> Int64Array:
    """Return how many cells of each item are marked, drawn without replacement.

    `marks` of all cells are marked. First each cell is marked with one probability; then the
    difference from `marks` is corrected at random cells. `multivariate_hypergeometric` does the
    same only for fewer than 10^9 cells.
    """
    total = int(cells.sum())
    if not marks:
        return np.zeros(cells.size, np.int64)
    marked = rng.binomial(cells, marks / total)
    spare = int(marked.sum()) - marks
    among = np.cumsum(marked if spare > 0 else cells - marked)
    chosen = rng.choice(int(among[-1]), size=abs(spare), replace=False, shuffle=False)
    changed = np.bincount(np.searchsorted(among, chosen, side="right"), minlength=cells.size)
    return marked - changed if spare > 0 else marked + changed
