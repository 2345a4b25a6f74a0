"""Crafting for a protocol that states no crafter: a search among encoded items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldprecover.counting.tiles import tiles
from ldprecover.crafting.crafter import DEFAULT_STRATEGY, Crafter, Search, Strategy
from ldprecover.types import FloatArray, Int64Array, Reports, Rng

_TRIES = 32
"""Encoded items among which a malicious user chooses, at most."""
_SAMPLE = 1 << 14
"""Reports from which a share of support is estimated."""
_LEAST_SAMPLE = 256
_CELLS = 1 << 22  # (report, item) pairs in memory
_SAMPLE_CELLS = 1 << 28  # the most pairs of a sample


@dataclass(frozen=True)
class EncodingCrafter(Crafter):
    """A malicious user encodes chosen items up to 32 times, and sends the best of these reports.

    So it needs nothing but `encode`, `supports` and `support_counts` of the protocol. Its reports
    are encoded items, whatever the aim. Shares of support are estimated from 16,384 reports, fewer
    over thousands of items; they are the same each time.
    """

    def craft(
        self, chosen_items: Int64Array, rng: Rng, strategy: Strategy = DEFAULT_STRATEGY
    ) -> Reports:
        """Return the first of each user's reports that supports most of its chosen items."""
        m, r = chosen_items.shape
        tries = _tries(r, strategy.search)
        blocks = tiles((max(m, 1), tries * self.oracle.domain_size), _CELLS)
        return np.concatenate([self._best(chosen_items[users], tries, rng) for users in blocks])

    def _best(self, chosen_items: Int64Array, tries: int, rng: Rng) -> Reports:
        n, r = chosen_items.shape
        users = np.arange(n)
        chosen = chosen_items[users[:, None], rng.integers(r, size=(n, tries))]
        reports = self.oracle.encode(chosen.reshape(-1), rng)
        items, column = np.unique(chosen_items, return_inverse=True)
        supported = self.oracle.supports(reports, items).reshape(n, tries, items.size)
        hits = np.take_along_axis(supported, column.reshape(n, 1, r), axis=2).sum(axis=2)
        return reports.reshape(n, tries, *reports.shape[1:])[users, hits.argmax(axis=1)]

    def crafted_support(
        self, included: FloatArray, r: int, strategy: Strategy = DEFAULT_STRATEGY, m: int = 1
    ) -> FloatArray:
        rng, positive = np.random.default_rng(0), np.flatnonzero(included)

        def draw_chosen_items(n: int) -> Int64Array:
            if r == 1:
                return rng.choice(included.size, size=(n, 1), p=included / included.sum())
            keys = rng.random((n, positive.size))
            return positive[np.argpartition(keys, r - 1, axis=1)[:, :r]]

        return self._share(
            _tries(r, strategy.search), lambda n: self.craft(draw_chosen_items(n), rng, strategy)
        )

    def encoded_support(self, weights: FloatArray) -> FloatArray:
        rng = np.random.default_rng(0)
        return self._share(
            1, lambda n: self.oracle.encode(rng.choice(weights.size, n, p=weights), rng)
        )

    def _share(self, tries: int, make: Callable[[int], Reports]) -> FloatArray:
        """Return the share of a sample of reports that supports each item."""
        counts = np.zeros(self.oracle.domain_size, np.int64)
        n = _SAMPLE_CELLS // (tries * self.oracle.domain_size)
        n = max(_LEAST_SAMPLE, min(_SAMPLE, n))
        for rows in tiles((n, counts.size), _CELLS):
            counts += self.oracle.support_counts(make(rows.stop - rows.start))
        return counts / n


def _tries(r: int, search: Search) -> int:
    """Return the number of items that a user with r chosen ones encodes."""
    if r == 1:
        return 1
    return min(_TRIES, search) if isinstance(search, int) else _TRIES
