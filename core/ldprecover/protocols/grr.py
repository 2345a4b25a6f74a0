"""Generalised randomised response: a report is one item."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ldprecover import kernels
from ldprecover.protocols.base import DEFAULT_SEARCH, Aim, FrequencyOracle, Search
from ldprecover.sampling import below, keep_threshold, words_from
from ldprecover.types import BoolArray, Int64Array, Reports

__all__ = ["GRR"]


@dataclass(frozen=True)
class GRR(FrequencyOracle):
    """Generalised randomised response (paper, III-B; k-RR, Kairouz et al. 2014).

    The report is the user's item with probability p = e^eps/(d-1+e^eps), else one of the other
    d-1 items, each with probability q = 1/(d-1+e^eps). It supports the item it names.
    """

    protocol = "grr"
    fixed_size = 1

    @property
    def p(self) -> float:
        return math.exp(self.epsilon) * self.q

    @property
    def q(self) -> float:
        return 1 / (self.domain_size - 1 + math.exp(self.epsilon))

    @property
    def report_dtype(self) -> np.dtype:
        return np.dtype("<u4")

    def perturb(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        held = self._items(items)
        words = words_from(rng)
        d = self.domain_size
        keep = words(held.size) < np.uint64(keep_threshold(self.epsilon, d))
        # A shift by 1..d-1 modulo d is uniform over the items the user does not hold.
        other = (held + 1 + below(d - 1, held.size, words).astype(np.int64)) % d
        return np.where(keep, held, other).astype("<u4")

    def encode(self, items: ArrayLike, rng: np.random.Generator | None = None) -> Reports:
        return self._items(items).astype("<u4")

    def check(self, reports: Reports) -> None:
        self._refuse_first(reports >= self.domain_size, f"the item must be from 0 to {self.domain_size - 1}")

    def support_counts(self, reports: Reports) -> Int64Array:
        return kernels.grr_counts(reports, self.domain_size)

    def supports(self, reports: Reports) -> BoolArray:
        named: BoolArray = reports[:, None] == np.arange(self.domain_size, dtype=np.uint32)
        return named

    def encoded_others(self) -> float:
        return 0.0

    def craft(
        self, wanted: Int64Array, rng: np.random.Generator, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH
    ) -> Reports:
        """Return one of the wanted items, drawn uniformly."""
        m, r = wanted.shape
        return self.encode(wanted[np.arange(m), rng.integers(r, size=m)], rng)

    def expected_hits(
        self, r: int, *, aim: Aim = "most", search: Search = DEFAULT_SEARCH, m: int = 1
    ) -> tuple[float, float]:
        return 1.0, 0.0

    def uniform_reports(self, m: int, rng: np.random.Generator) -> Reports:
        return rng.integers(self.domain_size, size=m, dtype=np.uint32)

    def uniform_support(self) -> float:
        return 1 / self.domain_size

    def report_of_size(self, size: float, rng: np.random.Generator, *, search: int = DEFAULT_SEARCH) -> Reports:
        """Return a random item: a report supports no more, and no less."""
        return self.uniform_reports(1, rng)
