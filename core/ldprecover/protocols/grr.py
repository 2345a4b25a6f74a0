"""Generalised randomised response: a report is one item."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import counting
from ldprecover.protocols.description import Traits, integer_forms
from ldprecover.protocols.laws import Laws
from ldprecover.protocols.oracle import ALL_ITEMS, FrequencyOracle, Items
from ldprecover.protocols.sampling import keep_or_replace, keep_threshold
from ldprecover.protocols.wire import IntegerForm
from ldprecover.types import BoolArray, FloatArray, Int64Array, Reports, Rng

_FORMS = integer_forms(
    json="one item index a report.",
    packed="u4 an item.",
    example=[17, 3, 17],
)


@dataclass(frozen=True)
class GRR(FrequencyOracle):
    """Generalised randomised response (paper, III-B; k-RR, Kairouz et al. 2014).

    The report is the user's item with probability p = e^eps/(d-1+e^eps), else one of the other
    d-1 items, each with probability q = 1/(d-1+e^eps). It supports the item it names.

        GRR(epsilon=1.0, domain_size=4).perturb([0, 3, 3])
    """

    protocol = "grr"
    title = "generalised randomised response"
    traits = Traits(one_item=True, extremal=True, histogram=True)

    @property
    def p(self) -> float:
        return math.exp(self.epsilon) * self.q

    @property
    def q(self) -> float:
        return 1 / (self.domain_size - 1 + math.exp(self.epsilon))

    @property
    def thresholds(self) -> dict[str, int]:
        return {"keep_below": keep_threshold(self.epsilon, self.domain_size)}

    @cached_property
    def wire(self) -> IntegerForm:
        return IntegerForm(_FORMS, self.domain_size, "item")

    def perturb(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        own, keep_below = self.item_indices(items), self.thresholds["keep_below"]
        return keep_or_replace(own, self.domain_size, keep_below, rng).astype("<u4")

    def encode(self, items: ArrayLike, rng: Rng | None = None) -> Reports:
        return self.item_indices(items).astype("<u4")

    def summarise(self, reports: Reports) -> Int64Array:
        return counting.grr_counts(reports, self.domain_size)

    def supports(self, reports: Reports, items: Items = ALL_ITEMS) -> BoolArray:
        return self.wire.rows(reports)[:, None] == np.arange(self.domain_size)[items]

    @property
    def laws(self) -> Laws:
        return replace(super().laws, log_likelihood=self._log_likelihood)

    def _log_likelihood(self, reports: Reports, frequencies: FloatArray) -> FloatArray:
        return np.log(self.q + (self.p - self.q) * frequencies[reports])
