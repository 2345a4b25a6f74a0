"""Items that rose since earlier rounds by more than their noise: whom to suspect as targets (paper,
V-D).

LDPRecover* needs the targets. Where earlier rounds asked honest users for the same items, a target
shows as an outlier: its estimate has risen by many standard errors of the difference. A true trend
rises too: what follows is evidence, to be looked at before it is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.estimation.estimates import Estimates
from ldprecover.laws.distributions import skewed_tail
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import FloatArray

DEFAULT_RATE = 0.05


@dataclass(frozen=True, eq=False)
class Suspects:
    """Which items rose, and by how much. Vectors are of the d items.

    `before` are the frequencies of the earlier rounds pooled, `now` those of the round, `z` the
    rise in standard errors of the difference, `p_values` the one-sided probabilities of such a rise
    by noise alone. `items` are the suspected ones, the largest z first: those whose rise the
    Benjamini-Hochberg rule takes for real, at a false-discovery rate of `rate`.
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
    """Return the items whose frequency rose since the earlier rounds by more than LDP noise
    explains.

    Earlier rounds over the same items, in any protocol and at any epsilon, are pooled with weights
    inverse to their noise, the variance of Lemma 2 at frequency 0, which is the same for every
    item. Differences are standardised with Lemma 2's variance at the estimates of all rounds
    pooled, so z has mean 0 and variance 1 for an item that did not change. Its tail is that of a
    gamma law as skewed as binomial counts are: those of few reports are far from normal. `drift`,
    in units of frequency, is the standard deviation that an item's true frequency is allowed to
    change by; 0 suspects every real trend. `rate` bounds the expected share of false suspicions
    (Benjamini and Hochberg 1995).

    Raises ParameterError without an earlier round or report, or for rounds of another number of
    items.
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
    estimates = np.array([Estimates.of(other, its).frequencies for other, its in earlier])
    precisions = np.array([1 / other.variance(0.0, its.n) for other, its in earlier])
    weights = precisions / precisions.sum()
    before = weights @ estimates
    # Of an item that did not change, this round tells as much as the earlier ones.
    own = 1 / float(oracle.variance(0.0, tally.n))
    likely = np.clip((precisions.sum() * before + own * now) / (precisions.sum() + own), 0.0, 1.0)
    variance = oracle.variance(likely, tally.n) + drift**2
    third = _third_cumulant(oracle, likely, tally.n)
    for weight, (other, its) in zip(weights, earlier, strict=True):
        variance = variance + weight**2 * other.variance(likely, its.n)
        third = third - weight**3 * _third_cumulant(other, likely, its.n)
    deviation = np.sqrt(variance)
    z = (now - before) / deviation
    half = 0.5 / (
        tally.n * (oracle.p - oracle.q)
    )  # a count, of which half belongs to a whole number's tail
    tails = zip((z - half / deviation).tolist(), (third / deviation**3).tolist(), strict=True)
    p_values = np.array([skewed_tail(*each) for each in tails])
    order = np.lexsort((-z, p_values))
    found = order[: _discoveries(p_values[order], rate)]
    return Suspects(
        before, now, z, p_values, tuple(found[np.argsort(-z[found], kind="stable")].tolist()), rate
    )


def _third_cumulant(oracle: FrequencyOracle, frequencies: FloatArray, n: int) -> FloatArray:
    """Return the third cumulant of each item's estimate: its support count is binomial.

    For a protocol that is not pure it is near: the item's own count is most of its estimate.
    """
    supported = oracle.q + frequencies * (oracle.p - oracle.q)
    cumulant: FloatArray = (
        supported * (1 - supported) * (1 - 2 * supported) / (n**2 * (oracle.p - oracle.q) ** 3)
    )
    return cumulant


def _discoveries(p_values: FloatArray, rate: float) -> int:
    """Return how many of the sorted p-values the Benjamini-Hochberg rule rejects."""
    limits = rate * np.arange(1, p_values.size + 1) / p_values.size
    passed = np.flatnonzero(p_values <= limits)
    return int(passed[-1]) + 1 if passed.size else 0
