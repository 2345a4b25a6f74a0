"""The average over all hypotheses: frequencies that sum to one, their errors, and the attack."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.estimation.simplex import project_simplex
from ldprecover.recovery.unmixing.model.mixture import Hypothesis
from ldprecover.types import FloatArray

_HALVINGS = 200  # of the multiplier: it is exact to double precision long before
_NORMAL = 2.2414  # deviations either side that hold 97.5 %: the laws of f are approximations
_HEDGE = 0.05  # of the squared error: what not to rely on the laws may cost
_OWN = 1.5  # deviations of noise above an item's own estimate, that an interval reaches
_LIKELY = 0.5
_EXPLAINED = 5.0  # deviations of the frequencies' sum from 1, beyond which no hypothesis fits
_LEAST_VARIANCE = 1e-18  # of a frequency: rounding may leave less than nothing


@dataclass(frozen=True, eq=False, kw_only=True)
class Unmixed:
    """The result of un-mixing a round of d items.

    `frequencies` sum to one, `sd` are their standard deviations, and `lower` and `upper` the ends
    of intervals that hold 95 % of them under the hypotheses together. `p_attack` is the probability
    of an attack, `p_history` the probability that earlier rounds are a guide to this one. `honest`
    is the mean share of honest reports among those that the estimates are of.
    `spikes` are the probabilities that reports raised an item, and not all items alike.
    `assumes_attack` says that the frequencies take an attack into account.
    """

    frequencies: FloatArray
    sd: FloatArray
    lower: FloatArray
    upper: FloatArray
    p_attack: float
    p_history: float
    honest: float
    spikes: FloatArray
    assumes_attack: bool


def projection(z: FloatArray, sd: FloatArray) -> Unmixed:
    """Return the projection of the estimates z with noise sd on the simplex, and no attack."""
    frequencies, sd = project_simplex(z), sd * math.sqrt(1 - 1 / z.size)
    lower, upper = (np.clip(frequencies + way * _NORMAL * sd, 0.0, 1.0) for way in (-1, 1))
    return Unmixed(
        frequencies=frequencies,
        sd=sd,
        lower=lower,
        upper=upper,
        p_attack=0.0,
        p_history=0.0,
        honest=1.0,
        spikes=np.zeros(z.size),
        assumes_attack=False,
    )


def averaged(
    hypotheses: Sequence[Hypothesis],
    least_attack: float,
    z: FloatArray,
    noise: FloatArray,
    *,
    is_hedged: bool,
) -> Unmixed | None:
    """Return the average over the hypotheses by their weights, or None if none of them fits.

    z are the estimates with their noise. An honest round's frequencies are `hedged`, or not.
    Unless attacks that move items weigh more than `least_attack`, the frequencies are the average
    over the hypotheses of an honest round and of concealed attacks; their errors still include the
    others.
    """
    moments = [hypothesis.moments() for hypothesis in hypotheses]
    log_weights = np.array(
        [one.score + each.log_evidence for one, each in zip(hypotheses, moments, strict=True)]
    )
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()

    is_attack = np.array([each.is_attack for each in hypotheses])
    attack = float(weights @ is_attack)

    def average(vectors: Sequence[FloatArray], weights: FloatArray = weights) -> FloatArray:
        total = np.zeros_like(vectors[0])
        for weight, vector in zip(weights.tolist(), vectors, strict=True):
            total += weight * vector
        return total

    means, squares = [each.mean for each in moments], [each.square for each in moments]
    likely = weights
    moves = is_attack & ~np.array([each.is_concealed for each in hypotheses])
    assumes_attack = float(weights @ moves) > least_attack
    if not assumes_attack:
        if moves.all():
            return None
        likely = np.where(moves, 0.0, weights) / weights[~moves].sum()
    mean = average(means, likely)
    variance = np.maximum(average(squares, likely) - mean**2, _LEAST_VARIANCE)
    if abs(1 - float(mean.sum())) > _EXPLAINED * math.sqrt(float(variance.sum())):
        return None
    frequencies = onto_simplex(mean, variance)
    estimate = frequencies
    if is_hedged and not assumes_attack:
        estimate = hedged(frequencies, variance, project_simplex(z))
    # The errors are those under all hypotheses.
    every = np.maximum(average(squares) - 2 * mean * average(means) + mean**2, _LEAST_VARIANCE)
    sd = np.sqrt(every - every**2 / every.sum())
    reach = _NORMAL * np.sqrt(every)
    spikes = np.minimum(average([each.spike for each in moments]), 1.0)
    p_history = float(weights @ [each.has_history for each in hypotheses])
    # Laws pull the largest frequencies down: an interval reaches what an item's own estimate says.
    a, c = (float(weights @ [getattr(each.relation, name) for each in hypotheses]) for name in "ac")
    is_held = (z + c > 0) & (every > _LEAST_VARIANCE)  # canaries are not
    is_own = is_held & (spikes < _LIKELY) & (p_history < _LIKELY)
    own = np.where(is_own, (z + c + _OWN * noise) / a, 0.0)
    return Unmixed(
        frequencies=estimate,
        sd=sd,
        lower=np.clip(frequencies - reach, 0.0, estimate),
        upper=np.clip(np.maximum(frequencies + reach, own), estimate, 1.0),
        p_attack=min(attack, 1.0),
        p_history=min(p_history, 1.0),
        honest=a,
        spikes=spikes,
        assumes_attack=assumes_attack,
    )


def hedged(mean: FloatArray, variance: FloatArray, projected: FloatArray) -> FloatArray:
    """Return the mean moved towards the projection, which assumes no law of the frequencies.

    It moves as far as the laws expect a squared error larger by `_HEDGE`, at most half of the way.
    """
    way = projected - mean
    distance = max(float(way @ way), _LEAST_VARIANCE)
    return mean + min(0.5, math.sqrt(_HEDGE * float(variance.sum()) / distance)) * way


def onto_simplex(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return max(0, mean + lambda variance), with the lambda for which it sums to one.

    To first order that is the mean given the sum: certain items do not move, and items hidden
    behind a spike take the remainder. With equal variances it is the projection on the simplex.
    """

    def at(multiplier: float) -> FloatArray:
        return np.maximum(mean + multiplier * variance, 0.0)

    largest = float(variance.max())
    low, high = -1 / largest, 1 / largest
    while at(low).sum() > 1:
        low *= 2
    while at(high).sum() < 1:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() < 1 else (low, middle)
    frequencies = at(high)
    frequencies /= frequencies.sum()
    return frequencies
