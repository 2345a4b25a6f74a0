"""Means of numbers in [-1, 1] by Harmony, as frequencies of two items (Nguyen et al., 2016).

A user's number is rounded to -1 or 1 at random without changing its mean, and then perturbed by GRR
over these two items (paper, VII-A). So a round for numbers is a GRR round over ITEMS: its reports,
storage and recovery are those of every round, and its mean is the difference of its two
frequencies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ldprecover._checks import finite_array
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import two_sided_quantile
from ldprecover.protocols import FrequencyOracle
from ldprecover.protocols.sampling import words_from
from ldprecover.reports.tally import Tally
from ldprecover.types import Int64Array, Rng

ITEMS = ("-1", "1")


def round_numbers(numbers: ArrayLike, rng: Rng | None = None) -> Int64Array:
    """Return for each number x in [-1, 1] the index of 1 with probability (1 + x)/2, else that of
    -1.

    The result is an item for GRR to perturb; by itself it protects nothing. `rng` None draws from
    the operating system. Raises ParameterError unless it is a vector of numbers in [-1, 1].
    """
    try:
        values = finite_array(numbers, "numbers")
    except ParameterError:
        values = np.array(math.nan)
    if values.ndim != 1 or not (np.abs(values) <= 1).all():
        raise ParameterError("numbers must be a one-dimensional array of numbers from -1 to 1")
    uniform = (words_from(rng)(values.size) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (uniform < (1 + values) / 2).astype(np.int64)


@dataclass(frozen=True)
class Mean:
    """The unbiased mean of n users' numbers, never clipped, and its standard error.

    The error is that of rounding and perturbing: sqrt((c^2 - mean^2)/n) with c = 1/(p - q), a
    little too large unless all numbers are equal, since they are not known one by one.
    """

    value: float
    standard_error: float
    n: int

    @classmethod
    def of(cls, oracle: FrequencyOracle, tally: Tally) -> Mean:
        """Estimate from the tally of a round for numbers.

        Raises ParameterError for another domain than two items, or no report.
        """
        if oracle.domain_size != len(ITEMS):
            raise ParameterError(f"a mean needs the {len(ITEMS)} items {' and '.join(ITEMS)}")
        minus, plus = tally.frequencies(oracle)
        value = float(plus - minus)
        scale = 1 / (oracle.p - oracle.q)
        within = min(abs(value), 1.0)
        return cls(value, math.sqrt((scale**2 - within**2) / tally.n), tally.n)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return (low, high), the normal interval at this two-sided confidence."""
        half = two_sided_quantile(confidence) * self.standard_error
        return self.value - half, self.value + half
