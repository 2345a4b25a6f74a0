"""Crafting reports that name one item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ldprecover.crafting.crafter import (
    DEFAULT_STRATEGY,
    CraftedReports,
    Crafter,
    Strategy,
    support_of_targets,
)
from ldprecover.types import FloatArray, Int64Array, Reports, Rng


@dataclass(frozen=True)
class OneItemCrafter(Crafter):
    """A report is an item index. Aims and sizes leave no choice."""

    @property
    def encoded_others(self) -> float:
        return 0.0

    def craft(
        self, chosen_items: Int64Array, rng: Rng, strategy: Strategy = DEFAULT_STRATEGY
    ) -> Reports:
        """Return one of the chosen items, drawn uniformly."""
        m, r = chosen_items.shape
        return chosen_items[np.arange(m), rng.integers(r, size=m)].astype("<u4")

    def expected_hits(
        self, r: int, strategy: Strategy = DEFAULT_STRATEGY, m: int = 1
    ) -> tuple[float, float]:
        return 1.0, 0.0

    def joint_reports(
        self, targets: Int64Array, rate: float, fixed_item: int | None
    ) -> CraftedReports:
        """Return reports that name a target, or another item: there is room for one."""
        d = self.oracle.domain_size
        if fixed_item is not None:
            targets, rate = np.array([fixed_item]), 1.0
        share = rate if targets.size < d else 1.0
        pi = support_of_targets(d, targets, share, 1 - share)
        return lambda m, rng: rng.choice(d, size=m, p=pi).astype("<u4"), lambda m: pi

    def log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        return np.zeros(len(reports))  # it names the target

    def uniform_reports(self, m: int, rng: Rng) -> Reports:
        return rng.integers(self.oracle.domain_size, size=m, dtype=np.uint32)

    @property
    def uniform_support(self) -> float:
        return 1 / self.oracle.domain_size

    def report_of_size(self, size: float, rng: Rng, search: int) -> Reports:
        """Return a random item: every report supports one."""
        return self.uniform_reports(1, rng)
