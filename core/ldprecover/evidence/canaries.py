"""Canaries: items that nobody holds. Their estimates measure a shift common to all items.

Honest reports support a canary as any other item that their user does not hold, so the exact law of
its count is known. Reports that support fewer or more items than honest ones shift the estimates of
all items, also of canaries. Canaries are public and can be poisoned too: they are evidence of a
shift, not proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ldprecover.distributions import sum_law
from ldprecover.errors import ParameterError
from ldprecover.items import canary_indices
from ldprecover.protocols import FrequencyOracle
from ldprecover.reports.tally import Tally
from ldprecover.types import FloatArray


@dataclass(frozen=True)
class CanaryShift:
    """The mean estimate of the canaries, and its law under honest reports, whose mean is 0.

    `standard_deviation` is the exact one under honest reports. `supported` is the sum of the
    canaries' support counts; it is `first` + i with probability `law[i]`, and other values have
    negligible probability.
    """

    mean: float
    standard_deviation: float
    supported: int
    first: int
    law: FloatArray

    def bounds(self, rate: float) -> tuple[int, int]:
        """Return the bounds that honest reports exceed with a probability of at most `rate`."""
        half = rate / 2
        low = int(np.searchsorted(np.cumsum(self.law), half, side="right"))
        high = (
            self.law.size - 1 - int(np.searchsorted(np.cumsum(self.law[::-1]), half, side="right"))
        )
        return self.first + low, self.first + high


def canary_shift(oracle: FrequencyOracle, tally: Tally, canaries: Iterable[int]) -> CanaryShift:
    """Return the shift of the canaries' estimates and its exact law under honest reports.

    Each report supports J of the canaries, with the law of `HitLaw.nonholder_law`, so the sum
    of n such J has mean nKq, and the mean estimate sum_K f~/K is (sum C/(nK) - q)/(p - q). Raises
    ParameterError without a canary or a report, and for a protocol without that law.
    """
    indices = np.array(canary_indices(canaries, oracle.domain_size), np.int64)
    if not indices.size:
        raise ParameterError("name one canary or more")
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
