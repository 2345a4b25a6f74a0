"""Generalised randomised response: a report is one item."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.counting.tally import Tally
from ldprecover.crafting.one_item import OneItemCrafter
from ldprecover.laws import Laws
from ldprecover.protocols.description import Column, ReportForms, Traits
from ldprecover.protocols.oracle import FrequencyOracle
from ldprecover.protocols.sampling import below, keep_threshold, words_from
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports


@dataclass(frozen=True)
class GRR(FrequencyOracle):
    """Generalised randomised response (paper, III-B; k-RR, Kairouz et al. 2014).

    The report is the user's item with probability p = e^eps/(d-1+e^eps), else one of the other
    d-1 items, each with probability q = 1/(d-1+e^eps). It supports the item it names.
    """

    protocol = "grr"
    title = "generalised randomised response"
    traits = Traits(one_item=True, extremal=True)
    forms = ReportForms(
        json="one item index a report.",
        packed="u4 an item.",
        values={"reports": {"type": "integer", "minimum": 0}},
        example={"reports": [17, 3, 17]},
    )

    @property
    def p(self) -> float:
        return math.exp(self.epsilon) * self.q

    @property
    def q(self) -> float:
        return 1 / (self.domain_size - 1 + math.exp(self.epsilon))

    @property
    def thresholds(self) -> dict[str, int]:
        return {"keep_below": keep_threshold(self.epsilon, self.domain_size)}

    @property
    def report_dtype(self) -> np.dtype:
        return np.dtype("<u4")

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        user_items = self._items(items)
        words = words_from(rng)
        d = self.domain_size
        keep = words(user_items.size) < np.uint64(self.thresholds["keep_below"])
        # A shift by 1..d-1 modulo d is uniform over the items the user does not hold.
        other = (user_items + 1 + below(d - 1, user_items.size, words).astype(np.int64)) % d
        return np.where(keep, user_items, other).astype("<u4")

    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        return self._items(items).astype("<u4")

    def check(self, reports: Reports) -> None:
        self._raise_first(
            reports >= self.domain_size, f"the item must be from 0 to {self.domain_size - 1}"
        )

    def summarise(self, reports: Reports) -> Int64Array:
        return counting.grr_counts(reports, self.domain_size)

    def supports(self, reports: Reports) -> BoolArray:
        return self.supported(reports, np.arange(self.domain_size))

    def supported(self, reports: Reports, items: Int64Array) -> BoolArray:
        named: BoolArray = reports[:, None] == items
        return named

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (Column("reports", int, self.domain_size, "item"),)

    def to_columns(self, reports: Reports) -> tuple[list[Any], ...]:
        return (reports.tolist(),)

    def from_columns(self, values: Sequence[list[Any]]) -> Reports:
        return np.array(values[0], dtype="<u4")

    @property
    def laws(self) -> Laws:
        return replace(super().laws, log_likelihood=self._log_likelihood)

    def _log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        log: FloatArray = np.log(self.q + (self.p - self.q) * frequencies[reports])
        return log

    def honest_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        """Return a tally of honest reports, drawn from its exact law in O(d).

        A user reports its own item with probability p - q, and a uniform one of all d items
        otherwise: this is p for its own and q = (1 - p + q)/d for each other. The count of the
        first kind is binomial for each item; the other reports are multinomial over all items.
        """
        users, d = self._true_counts(true_counts), self.domain_size
        n = int(users.sum())
        own = rng.binomial(users, self.p - self.q)
        return Tally(own + rng.multinomial(n - int(own.sum()), np.full(d, 1 / d)), n)

    def population_tally(self, weights: FloatArray, n: int, rng: np.random.Generator) -> Tally:
        """Return a tally of n honest reports, drawn from its exact law in O(d) for any n.

        If the item is drawn from the weights w, a report is item v with probability q + (p - q)
        w(v).
        """
        law = self.q + (self.p - self.q) * weights
        return Tally(rng.multinomial(n, law / law.sum()), n)

    def encoded_tally(self, true_counts: ArrayLike, rng: np.random.Generator) -> Tally:
        users = self._true_counts(true_counts)
        return Tally(users, int(users.sum()))

    @property
    def crafter(self) -> OneItemCrafter:
        return OneItemCrafter(self.protocol, self.domain_size, self.q, 1)
