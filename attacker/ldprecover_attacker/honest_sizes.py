"""The number of items that an honest report supports: a Bernoulli(p) and a Binomial(d-1, q) variable together.

`ldprecover.alarms.support_size_law` is its law. A GRR report always supports one.
"""

import math

import numpy as np

from ldprecover import GRR, FrequencyOracle
from ldprecover.types import FloatArray, Int64Array

__all__ = ["binomial", "draw_sizes"]


def draw_sizes(oracle: FrequencyOracle, m: int, rng: np.random.Generator) -> Int64Array:
    """Return the support sizes of m honest reports."""
    if isinstance(oracle, GRR):
        return np.ones(m, dtype=np.int64)
    sizes: Int64Array = rng.binomial(oracle.domain_size - 1, oracle.q, size=m) + (rng.random(m) < oracle.p)
    return sizes


def binomial(n: int, p: float) -> FloatArray:
    """Return P(X = k) for k from 0 to n, where X is Binomial(n, p) and 0 < p < 1."""
    k = np.arange(1, n + 1)
    log_ratios = np.log((n + 1 - k) / k) + math.log(p) - math.log1p(-p)
    log_law = n * math.log1p(-p) + np.concatenate([[0.0], np.cumsum(log_ratios)])
    law: FloatArray = np.exp(log_law)
    law /= law.sum()
    return law
