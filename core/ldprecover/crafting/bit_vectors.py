"""Crafting bit vectors: the chosen items, padded with random others to a number of ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldprecover import counting
from ldprecover.crafting.crafter import (
    DEFAULT_STRATEGY,
    CraftedReports,
    Crafter,
    Strategy,
    support_of_targets,
)
from ldprecover.distributions import log_choose
from ldprecover.protocols.laws import SizeLaw
from ldprecover.protocols.unary import padded_rows, rows_of_lowest_keys
from ldprecover.types import FloatArray, Int64Array, Reports, Rng, UInt8Array

_LIKELY = 1e-18  # less likely numbers of ones are left out of an expectation


@dataclass(frozen=True)
class BitCrafter(Crafter):
    """Packed reports are bit vectors: independent bits, or a fixed number of ones."""

    model = "padded"

    @property
    def _sizes(self) -> SizeLaw:
        return self.oracle.laws.size_law()

    @property
    def coin_capacity(self) -> float:
        return self.expected_size

    @property
    def encoded_others(self) -> float:
        return (self.oracle.fixed_size or 1) - 1.0

    @property
    def displacements(self) -> tuple[float, ...] | None:
        """For fixed sizes k those of r chosen items and k - r random others, r = 1, 2, 4, ... k."""
        k, d = self.oracle.fixed_size, self.oracle.domain_size
        if k is None:
            return super().displacements
        chosen = [r for r in (1 << i for i in range(k.bit_length())) if r < k] + [k]
        return tuple(self.oracle.q - (k - r) / (d - r) for r in chosen)

    def craft(
        self, chosen_items: Int64Array, rng: Rng, strategy: Strategy = DEFAULT_STRATEGY
    ) -> Reports:
        """Return the chosen items and a uniformly random set of others, one set for each report.

        A report has L = floor(p + (d-1)q) ones, or more where more items are chosen. It has the
        honest number of ones where that is the aim, and a fixed one where the protocol fixes it;
        then a random subset of the chosen items is one if they are more than the ones.
        """
        m, r = chosen_items.shape
        sizes = self._sizes.draw(m, rng) if strategy.aim == "honest" else np.full(m, self._ones(r))
        return padded_rows(chosen_items, sizes, self.oracle.domain_size, rng)

    def expected_hits(
        self, r: int, strategy: Strategy = DEFAULT_STRATEGY, m: int = 1
    ) -> tuple[float, float]:
        if strategy.aim != "honest":
            ones = self._ones(r)
            return float(min(ones, r)), float(max(ones - r, 0))
        law = self._sizes.probabilities()
        sizes = np.arange(law.size)
        return float(law @ np.minimum(sizes, r)), float(law @ np.maximum(sizes - r, 0))

    def hit_laws(self, targets: Int64Array, search: int) -> FloatArray:
        """Return the laws of the goals, clipped to what k ones and d - r others allow."""
        r, law = targets.size, self._sizes.probabilities()
        sizes = np.flatnonzero(law > _LIKELY)
        hits = _possible(np.arange(r + 1)[:, None], sizes, r, self.oracle.domain_size)
        return np.stack([np.bincount(row, law[sizes], r + 1) for row in hits])

    def hit_reports(self, targets: Int64Array, law: FloatArray, search: int) -> CraftedReports:
        """Return reports of an honest size k: h of r targets, and k - h others."""
        d, honest_sizes = self.oracle.domain_size, self._sizes

        def craft(m: int, rng: Rng) -> Reports:
            sizes = honest_sizes.draw(m, rng)
            hits = _possible(rng.choice(law.size, m, p=law), sizes, targets.size, d)
            return _rows_of_hits(targets, hits, sizes, d, rng)

        def support(m: int) -> FloatArray:
            mean = float(law @ self.hit_laws(targets, search) @ np.arange(law.size))
            sizes = honest_sizes.probabilities()
            return support_of_targets(d, targets, mean, float(sizes @ np.arange(d + 1)) - mean)

        return craft, support

    def joint_reports(
        self, targets: Int64Array, rate: float, fixed_item: int | None
    ) -> CraftedReports:
        """Return reports that have all targets where their honest number of ones has room for them.

        Where too few have room for the rate, others have as many targets as fit.
        """
        law, d, r = self._sizes.probabilities(), self.oracle.domain_size, targets.size
        fixed = 0 if fixed_item is None else 1
        sizes = np.arange(law.size)
        is_feasible = sizes >= r + fixed
        feasible = float(law[is_feasible].sum())
        chance = np.where(
            is_feasible,
            rate / max(feasible, rate, _LIKELY),
            max(rate - feasible, 0) / max(1 - feasible, _LIKELY),
        )
        free = np.maximum(sizes - fixed, 0)
        full, bare = (_possible(np.full(sizes.size, h), free, r, d - fixed) for h in (r, 0))
        mean = float(law @ (chance * full + (1 - chance) * bare))
        sent = fixed * (1 - float(law[0]))
        support = np.full(d, (float(law @ sizes) - mean - sent) / max(d - r - fixed, 1))
        support[targets] = mean / r
        if fixed_item is not None:
            support[fixed_item] = sent

        def craft(m: int, rng: Rng) -> Reports:
            ones = self._sizes.draw(m, rng)
            hits = np.where(rng.random(m) < chance[ones], full[ones], bare[ones])
            return _rows_of_hits(targets, hits, ones, d, rng, fixed_item)

        return craft, lambda m: support

    def log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        """Return log P(z) of reports of L ones, L - 1 of them anywhere beside the target's."""
        d, ones = self.oracle.domain_size, max(self.expected_size, 1)
        crafted = -log_choose(d - 1, ones - 1)
        return np.where(counting.unary_sizes(reports) == ones, crafted, -np.inf)

    def uniform_reports(self, m: int, rng: Rng) -> Reports:
        d = self.oracle.domain_size
        if self.oracle.fixed_size is not None:
            return rows_of_lowest_keys(self._sizes.draw(m, rng), d, rng)
        row_bytes = -(-d // 8)
        rows = rng.integers(0, 256, size=(m, row_bytes), dtype=np.uint8)
        rows[:, -1] &= 0xFF >> (row_bytes * 8 - d)  # the padding bits are zero
        return rows

    @property
    def uniform_support(self) -> float:
        return (
            0.5
            if self.oracle.fixed_size is None
            else self.oracle.fixed_size / self.oracle.domain_size
        )

    def report_of_size(self, size: float, rng: Rng, search: int) -> Reports:
        """Return a report of floor(size) ones, or of the fixed number."""
        bits = np.zeros((1, self.oracle.domain_size), dtype=np.uint8)
        ones = int(size) if self.oracle.fixed_size is None else self.oracle.fixed_size
        bits[0, rng.permutation(self.oracle.domain_size)[:ones]] = 1
        return np.packbits(bits, axis=1, bitorder="little")

    def _ones(self, r: int) -> int:
        """Return the number of ones of a report that supports r items and looks honest."""
        return (
            max(self.expected_size, r) if self.oracle.fixed_size is None else self.oracle.fixed_size
        )


def _rows_of_hits(
    targets: Int64Array,
    hits: Int64Array,
    sizes: Int64Array,
    d: int,
    rng: Rng,
    fixed_item: int | None = None,
) -> UInt8Array:
    """Return packed rows of sizes[i] ones: `fixed_item`, hits[i] random targets, and others."""

    def hits_first(keys: FloatArray, users: Int64Array) -> None:
        own = keys[:, targets]
        rank = own.argsort(axis=1).argsort(axis=1)
        keys[:, targets] = np.where(rank < hits[users, None], own - 1.0, own + 1.0)
        if fixed_item is not None:
            keys[:, fixed_item] -= 2.0

    return rows_of_lowest_keys(sizes, d, rng, hits_first)


def _possible(hits: Int64Array, sizes: Int64Array, r: int, d: int) -> Int64Array:
    """Return the numbers of hits nearest to these that reports of these sizes can have."""
    return np.clip(hits, np.maximum(sizes - (d - r), 0), np.minimum(sizes, r))
