"""Crafting reports of protocols with few different ones: the best are enumerated."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ldprecover.crafting.crafter import DEFAULT_STRATEGY, Aim, HashCrafter, Strategy
from ldprecover.errors import ParameterError
from ldprecover.protocols.hr import HR
from ldprecover.protocols.llh import LLH
from ldprecover.types import FloatArray, Int64Array, Reports, Rng, UInt32Array

_SUBSETS = 1 << 14  # sets of chosen items whose reports are enumerated, at most
_SPREAD = 4  # 1 / the share of an item's reports that evens out what else they support


@dataclass(frozen=True)
class CellCrafter(HashCrafter):
    """A report is an integer; all reports that support chosen items are solved for."""

    oracle: HR | LLH

    model = "solved"

    @property
    @abstractmethod
    def never_sent(self) -> int:
        """The number of reports, from 0 on, that are never crafted: they stand out."""

    @abstractmethod
    def supporting(self, chosen_items: Int64Array) -> UInt32Array:
        """Return the reports that support all chosen items, without those that are never sent."""

    def craft(
        self, chosen_items: Int64Array, rng: Rng, strategy: Strategy = DEFAULT_STRATEGY
    ) -> Reports:
        """Return the `best_reports` for each user's chosen items, drawn evenly.

        Of the aims only "projected" changes them: honest reports have the same sizes.
        """
        reports = np.empty(len(chosen_items), "<u4")
        if not reports.size:
            return reports
        rows, row_of_user = np.unique(chosen_items, axis=0, return_inverse=True)
        order = np.argsort(row_of_user.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(row_of_user.reshape(-1), minlength=len(rows)))
        for row, users in zip(rows, np.split(order, ends[:-1]), strict=True):
            reports[users] = rng.choice(self.best_reports(row, strategy.aim), size=users.size)
        return reports

    def crafted_support(
        self, included: FloatArray, r: int, strategy: Strategy = DEFAULT_STRATEGY, m: int = 1
    ) -> FloatArray:
        """Return pi exactly.

        Raises ParameterError for more than 16,384 possible sets of chosen items.
        """
        items = np.flatnonzero(included)
        if math.comb(items.size, r) > _SUBSETS:
            raise ParameterError(
                f"{self.oracle.protocol} lacks a law of reports crafted for {r} of {items.size} "
                "items, of which there are too many"
            )
        sets = list(combinations(items.tolist(), r))
        mean = np.zeros(self.oracle.domain_size)
        for chosen_items in sets:
            weight = float(included[chosen_items[0]]) if r == 1 else 1 / len(sets)
            reports = self.best_reports(np.array(chosen_items), strategy.aim)
            mean += weight * self.oracle.support_counts(reports) / reports.size
        return mean

    def log_likelihood(self, reports: Reports, target: int) -> FloatArray:
        """Return log P(z) of the reports that support the target, drawn evenly."""
        number = self.supporting(np.array([target])).size
        return np.where(reports >= self.never_sent, -math.log(number), -np.inf)

    def uniform_reports(self, m: int, rng: Rng) -> Reports:
        return rng.integers(self.oracle.summary_size, size=m, dtype=np.uint32)

    def report_of_size(self, size: float, rng: Rng, search: int) -> Reports:
        """Return a random one of the reports whose number of items is nearest to the size."""
        miss = np.abs(self.oracle.hits(np.arange(self.oracle.domain_size)) - size)
        return rng.choice(np.flatnonzero(miss == miss.min()), size=1).astype("<u4")

    def best_reports(self, chosen_items: Int64Array, aim: Aim) -> UInt32Array:
        """Return the reports that support most of the chosen items.

        If few support all of them, what else these support rises too, and a projection takes much
        of the gain. For the aim "projected" they are then those with the largest difference of the
        shares of chosen and of other items supported: a quarter as many as support one item.
        """
        reports = self.supporting(chosen_items)
        least = max(round(self.oracle.summary_size * self.oracle.q) // _SPREAD, 1)
        spread = aim == "projected" and reports.size < least - 1
        if reports.size and not spread:
            return reports
        score = self.oracle.hits(chosen_items)[self.never_sent :]
        if spread:
            sizes = self.oracle.hits(np.arange(self.oracle.domain_size))[self.never_sent :]
            score = self.oracle.domain_size * score - chosen_items.size * sizes
        worst = np.partition(score, -least)[-least] if spread else score.max()
        return (np.flatnonzero(score >= worst) + self.never_sent).astype(np.uint32)
