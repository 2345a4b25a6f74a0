"""Laws of what a search for hash seeds finds, under an ideal hash.

Under an ideal hash each item falls into one of g buckets, independently and uniformly.
"""

from functools import lru_cache

import numpy as np

from ldprecover import counting
from ldprecover.crafting.size_search import bucket_sizes, sized_seeds
from ldprecover.distributions import binomial_law, log_factorials
from ldprecover.protocols.laws import SizeLaw
from ldprecover.protocols.olh import SEEDS
from ldprecover.types import FloatArray

_REPORTS = 2_000
"""Simulated users of a mean."""


@lru_cache(maxsize=256)
def most_hits(r: int, g: int, budget: int) -> float:
    """Return the mean number of the r chosen items in the fullest bucket of the best seed."""
    return float(np.arange(r + 1) @ np.diff(_at_most(r, g) ** budget, prepend=0.0))


def exhaustive_hits(r: int, g: int, m: int) -> float:
    """Return the mean hits of the m best of all 2^32 seeds: r until perfect seeds run out."""
    at_least = 1 - _at_most(r, g)[:-1]
    return float(np.minimum(1.0, at_least * (SEEDS / m)).sum())


@lru_cache(maxsize=256)
def sized_means(r: int, d: int, g: int, budget: int, sizes: SizeLaw | int) -> tuple[float, float]:
    """Return the mean numbers of chosen and of other items in the bucket of `sized_seeds`.

    The size of each user is drawn from the law `sizes`, or is that number. The means are those of
    2,000 simulated users, whose standard error is below 1 %.
    """
    rng, exact = np.random.default_rng(0), isinstance(sizes, SizeLaw)
    if isinstance(sizes, SizeLaw):
        law = sizes.probabilities()
        aims, mean = sizes.draw(_REPORTS, rng), float(law @ np.arange(law.size))
    else:
        aims, mean = np.full(_REPORTS, sizes), float(sizes)
    chosen_items = np.tile(np.arange(r, dtype=np.uint32), (_REPORTS, 1))
    seeds, buckets = sized_seeds(chosen_items, aims, d, g, budget, rng, exact=exact)
    is_hit = counting.olh_buckets(seeds[:, None], chosen_items, g) == buckets[:, None]
    hits = float(is_hit.sum(axis=1).mean())
    # The mean of the law in place of that of the draws: only the misses are left to chance.
    return hits, mean + float((bucket_sizes(seeds, buckets, d, g) - aims).mean()) - hits


def law_near(r: int, g: int, budget: int, goal: int) -> FloatArray:
    """Return the law of the value nearest to `goal` among `budget` Binomial(r, 1/g) ones.

    Of two values as near, the smaller is taken.
    """
    hits = np.arange(r + 1)
    order = np.argsort(2 * np.abs(hits - goal) + (hits > goal))
    beyond = np.clip(
        1.0 - np.cumsum(binomial_law(r, 1 / g)[order]), 0.0, 1.0
    )  # P(one value is further than this one)
    law = np.empty(r + 1)
    law[order] = -np.diff(beyond**budget, prepend=1.0)
    return law


def _at_most(r: int, g: int) -> FloatArray:
    """Return P(the fullest bucket of a random seed holds at most k of r items), for k = 0..r.

    Bucket counts are Poisson numbers conditioned on their sum. So it is the coefficient of x^r in
    (sum_{j <= k} P(Poisson(r/g) = j) x^j)^g, divided by that of k = r.
    """
    j = np.arange(r + 1)
    poisson = np.exp(j * np.log(r / g) - r / g - log_factorials(r))
    length = g * r + 1
    transforms = (np.fft.rfft(poisson[: k + 1], length) for k in range(r + 1))
    coefficients = np.array([np.fft.irfft(each**g, length)[r] for each in transforms])
    return np.clip(coefficients / coefficients[-1], 0.0, 1.0)
