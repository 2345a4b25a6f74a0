"""Laws of the number of items that an honest report supports."""

import math

import numpy as np

from ldprecover._types import FloatArray, Int64Array

__all__ = ["binomial", "draw_sizes", "independent_sizes"]


def independent_sizes(p: float, q: float, d: int) -> FloatArray:
    """Return P(k) for k = 0..d, where k is a Bernoulli(p) and a Binomial(d-1, q) variable together."""
    n = d - 1
    k = np.arange(n + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    log_others = log_factorial[n] - log_factorial[k] - log_factorial[n - k] + k * math.log(q) + (n - k) * math.log1p(-q)
    others = np.exp(log_others)
    law = np.zeros(d + 1)
    law[:d] += (1 - p) * others
    law[1:] += p * others
    return law


def draw_sizes(p: float, q: float, d: int, m: int, rng: np.random.Generator) -> Int64Array:
    """Return m numbers of that law."""
    sizes: Int64Array = rng.binomial(d - 1, q, size=m) + (rng.random(m) < p)
    return sizes


def binomial(n: int, p: float) -> FloatArray:
    """Return P(X = k) for k from 0 to n, where X is Binomial(n, p) and 0 < p < 1."""
    k = np.arange(1, n + 1)
    log_ratios = np.log((n + 1 - k) / k) + math.log(p) - math.log1p(-p)
    log_law = n * math.log1p(-p) + np.concatenate([[0.0], np.cumsum(log_ratios)])
    law: FloatArray = np.exp(log_law)
    law /= law.sum()
    return law
