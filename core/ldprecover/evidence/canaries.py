"""Canary items: items that nobody holds, which so measure what all items have in common.

Honest reports support a canary as they support any item that their user does not hold, so the exact
law of its count is known. Reports that support fewer or more items than honest ones shift the
estimates of all items, the canaries' with them. Canaries are public, and can be poisoned too: they
are evidence of a shift, not the truth.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.items import canary_indices
from ldprecover.laws.distributions import sum_law
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import FloatArray


@dataclass(frozen=True)
class CanaryShift:
    """The mean estimate of the canaries, 0 for honest reports, and what honest reports let it be.

    `standard_deviation` is its exact one under honest reports. `supported` is how often the
    canaries were supported in all, of which `first` + i times has the probability `law[i]`; other
    numbers have none to speak of.
    """

    mean: float
    standard_deviation: float
    supported: int
    first: int
    law: FloatArray

    def bounds(self, rate: float) -> tuple[int, int]:
        """Return the least and the greatest `supported` that honest reports leave with probability
        `rate` at most.
        """
        half = rate / 2
        low = int(np.searchsorted(np.cumsum(self.law), half, side="right"))
        high = (
            self.law.size - 1 - int(np.searchsorted(np.cumsum(self.law[::-1]), half, side="right"))
        )
        return self.first + low, self.first + high


def canary_shift(oracle: FrequencyOracle, tally: Tally, canaries: Iterable[int]) -> CanaryShift:
    """Return how far the canaries' estimates were shifted together, and its exact law under honest
    reports.

    Each report supports J of the canaries, with the law of `HitLaw.of_others`, so the sum
    of n such J has mean nKq, and the mean estimate sum_K f~/K is (sum C/(nK) - q)/(p - q). Raises
    ParameterError without a canary or a report, and where the protocol does not know that law.
    """
    indices = np.array(canary_indices(canaries, oracle.domain_size), np.int64)
    if not indices.size:
        raise ParameterError("the round has no canaries")
    if tally.n < 1:
        raise ParameterError("a shift needs at least one report")
    each = oracle.laws.hits_of_others(indices)
    n, k, scale = tally.n, indices.size, oracle.p - oracle.q
    supported = int(tally.counts(oracle)[indices].sum())
    j = np.arange(k + 1)
    variance = float(each @ j**2 - (each @ j) ** 2)
    first, law = sum_law(each, n)
    return CanaryShift(
        mean=(supported / (n * k) - oracle.q) / scale,
        standard_deviation=math.sqrt(variance / n) / (k * scale),
        supported=supported,
        first=first,
        law=law,
    )
