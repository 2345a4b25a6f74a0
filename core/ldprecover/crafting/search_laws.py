"""The exact law of what a search for hash seeds finds, under an ideal hash.

A user hashes the d items under `budget` random seeds. A bucket of a seed is a cell (h, o): it
contains h of the r items that the user wants, and o of the d - r others. The user has an order of
cells and takes a best one.

Under an ideal hash each item falls into one of g buckets, independently and uniformly. So the cells
of the g buckets of one seed are pairs of Poisson(r/g) and Poisson((d-r)/g) variables, each kind
conditioned on its sum. Let w(h, o) be the Poisson probabilities of the cells from the k-th best
down. Then P(the best cell of a seed is no better than the k-th) is the coefficient of x^r y^(d-r)
in W(x, y)^g, divided by that of the law of all cells. For the best of `budget` independent seeds it
is the power `budget` of this.
"""

import math
from functools import lru_cache

import numpy as np

from ldprecover.crafting.seed_search import SEEDS
from ldprecover.crafting.size_search import worth
from ldprecover.distributions import binomial_law, power
from ldprecover.types import ComplexArray, FloatArray, Int64Array

_NEGLIGIBLE = 1e-13


@lru_cache(maxsize=256)
def most_hits_law(r: int, g: int, budget: int) -> FloatArray:
    """Return P(h) for h from 0 to r: the chosen items in the fullest bucket of the best seed."""
    order = np.arange(r, 0, -1)
    law = _best(order, np.zeros(r, dtype=np.int64), r, 0, g, budget)[:, 0]
    law.flags.writeable = False  # it is cached, and shared by all callers
    return law


def exhaustive_hits(r: int, g: int, m: int) -> float:
    """Return the mean hits of the m best of all 2^32 seeds: r until perfect seeds run out."""
    at_least = np.cumsum(most_hits_law(r, g, 1)[::-1])[::-1]
    return float(np.minimum(1.0, at_least[1:] * (SEEDS / m)).sum())


@lru_cache(maxsize=4096)
def sized_law(r: int, d: int, g: int, budget: int, size: int, exact: bool) -> tuple[float, float]:
    """Return E h and E o of the best cell by `ldprecover.crafting.size_search.worth`.

    Takes some dozen transforms of r·d values, 10 ms for d = 490. Few seeds, or an unlikely size,
    take longer.
    """
    h, o = np.meshgrid(np.arange(1, r + 1), np.arange(d - r + 1), indexing="ij")
    order = np.argsort(-worth(h, h + o, size, exact=exact), axis=None)
    law = _best(h.ravel()[order], o.ravel()[order], r, d - r, g, budget)
    return float(np.arange(r + 1) @ law.sum(axis=1)), float(law.sum(axis=0) @ np.arange(d - r + 1))


def hits_near(r: int, g: int, budget: int, goal: int) -> float:
    """Return the mean of the value nearest to `goal` among `budget` Binomial(r, 1/g) ones.

    Of two values as near, the smaller is taken.
    """
    hits = np.arange(r + 1)
    order = np.argsort(2 * np.abs(hits - goal) + (hits > goal))
    beyond = np.clip(
        1.0 - np.cumsum(binomial_law(r, 1 / g)[order]), 0.0, 1.0
    )  # P(one value is further than this one)
    best = -np.diff(beyond**budget, prepend=1.0)
    return float(best @ hits[order])


def _best(h: Int64Array, o: Int64Array, r: int, rest: int, g: int, budget: int) -> FloatArray:
    """Return the law of the best of budget·g cells, (r + 1, rest + 1).

    Cells (h[k], o[k]) are in order from best to worst. With rest = 0 the others do not matter.
    """
    chosen_law, others_law = _poisson(r, g), _poisson(rest, g)
    n_h, n_o = _length(r, g), _length(rest, g)
    w: ComplexArray = np.outer(np.fft.fft(chosen_law, n_h), np.fft.fft(others_law, n_o))
    read = np.outer(
        _turn(n_h, -r), _turn(n_o, -rest)
    )  # reads the coefficient of x^r y^rest off a transform
    total = float((power(w, g) * read).real.sum())
    law = np.zeros((r + 1, rest + 1))
    above = 1.0
    for hits, more in zip(h.tolist(), o.tolist(), strict=True):
        w -= np.outer(chosen_law[hits] * others_law[more] * _turn(n_h, hits), _turn(n_o, more))
        below = min(above, max(0.0, float((power(w, g) * read).real.sum()) / total))
        law[hits, more] = above**budget - below**budget
        above = below
        if above**budget < _NEGLIGIBLE:
            break
    law /= law.sum()
    return law


def _turn(n: int, k: int) -> ComplexArray:
    """Return the transform of x^k, of length n."""
    turned: ComplexArray = np.exp((-2j * np.pi / n) * (np.arange(n) * k % n))
    return turned


def _poisson(n: int, g: int) -> FloatArray:
    """Return the Poisson(n/g) probabilities of 0 to n."""
    rate = n / g
    k = np.arange(n + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(k[1:]))])
    law: FloatArray = np.exp(k * math.log(rate) - rate - log_factorial) if n else np.ones(1)
    return law


def _length(n: int, g: int) -> int:
    """Return the length of a transform under which powers beyond x^n do not fold onto x^n.

    The g-th power has degree gn, and mass P(Poisson(n) >= n + length) from n + length on; powers of
    probability below 1e-17 are ignored.
    """
    return min((g - 1) * n + 1, max(n + 1, math.ceil(10 * math.sqrt(n) + 40)))
