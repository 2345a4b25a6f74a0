"""Suspicious items: those that rose since earlier rounds by more than noise (paper, V-D).

LDPRecover* needs the targets. If earlier rounds asked honest users for the same items, a target
shows as an outlier: its estimate has risen by many standard errors of the difference. A true trend
rises too, so look at the evidence before you use it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.distributions import skewed_tail
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import Estimates
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import FloatArray

DEFAULT_RATE = 0.05


@dataclass(frozen=True, eq=False)
class Suspects:
    """The items that rose, and by how much. Vectors have one entry for each of the d items.

    `before` are the pooled frequencies of the earlier rounds, `now` those of the round, and `z` the
    rise in standard errors of the difference. `p_values` are the one-sided probabilities of such a
    rise by noise alone. `items` are those whose rise the Benjamini-Hochberg rule accepts at the
    false-discovery rate `rate`, the largest z first.
    """

    before: FloatArray
    now: FloatArray
    z: FloatArray
    p_values: FloatArray
    items: tuple[int, ...]
    rate: float


def suspects(
    oracle: FrequencyOracle,
    tally: Tally,
    earlier: Sequence[tuple[FrequencyOracle, Tally]],
    *,
    rate: float = DEFAULT_RATE,
    drift: float = 0.0,
) -> Suspects:
    """Return the items whose frequency rose since the earlier rounds by more than noise explains.

    The earlier rounds, over the same items in any protocol at any epsilon, are pooled with weights
    inverse to the variance of Lemma 2 at frequency 0, which is equal for all items. Differences are
    standardised by Lemma 2's variance at the pooled estimates of all rounds, so z has mean 0 and
    variance 1 for an item that did not change. Tail probabilities are those of a gamma law with the
    skewness of binomial counts: counts of few reports are far from normal. `drift`, in units of
    frequency, is the standard deviation of an item's true change; 0 suspects every real trend.
    `rate` bounds the expected share of false suspicions (Benjamini and Hochberg 1995).

    Raises ParameterError without an earlier round or without reports, and for rounds with another
    number of items.
    """
    if not earlier:
        raise ParameterError("suspects need an earlier round over the same items")
    if not 0 < rate < 0.5:
        raise ParameterError(f"rate must be between 0 and 0.5, not {rate}")
    if not drift >= 0:
        raise ParameterError(f"drift must be at least 0, not {drift}")
    if any(other.domain_size != oracle.domain_size for other, _ in earlier):
        raise ParameterError("the earlier rounds must be over the same items")
    now = Estimates.of(oracle, tally).frequencies
    estimates = np.array([Estimates.of(other, each).frequencies for other, each in earlier])
    precisions = np.array([1 / other.variance(0.0, each.n) for other, each in earlier])
    weights = precisions / precisions.sum()
    before = weights @ estimates
    # For an item that did not change, this round is one more estimate of its frequency.
    precision = 1 / float(oracle.variance(0.0, tally.n))
    total = precisions.sum()
    pooled = np.clip((total * before + precision * now) / (total + precision), 0.0, 1.0)
    variance = oracle.variance(pooled, tally.n) + drift**2
    third = _third_cumulant(oracle, pooled, tally.n)
    for weight, (other, each) in zip(weights, earlier, strict=True):
        variance = variance + weight**2 * other.variance(pooled, each.n)
        third = third - weight**3 * _third_cumulant(other, pooled, each.n)
    deviation = np.sqrt(variance)
    z = (now - before) / deviation
    half = 0.5 / (tally.n * (oracle.p - oracle.q))  # half a count: the continuity correction
    tails = zip((z - half / deviation).tolist(), (third / deviation**3).tolist(), strict=True)
    p_values = np.array([skewed_tail(*each) for each in tails])
    order = np.lexsort((-z, p_values))
    rejected = order[: _discoveries(p_values[order], rate)]
    items = rejected[np.argsort(-z[rejected], kind="stable")]
    return Suspects(before, now, z, p_values, tuple(items.tolist()), rate)


def _third_cumulant(oracle: FrequencyOracle, frequencies: FloatArray, n: int) -> FloatArray:
    """Return the third cumulant of each item's estimate: its support count is binomial.

    It is approximate for a protocol that is not pure: the item's own count is most of its estimate.
    """
    supported = oracle.q + frequencies * (oracle.p - oracle.q)
    return supported * (1 - supported) * (1 - 2 * supported) / (n**2 * (oracle.p - oracle.q) ** 3)


def _discoveries(p_values: FloatArray, rate: float) -> int:
    """Return how many of the sorted p-values the Benjamini-Hochberg rule rejects."""
    limits = rate * np.arange(1, p_values.size + 1) / p_values.size
    passed = np.flatnonzero(p_values <= limits)
    return int(passed[-1]) + 1 if passed.size else 0
