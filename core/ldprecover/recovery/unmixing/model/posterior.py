"""What all hypotheses together make of a round: frequencies that sum to one, their errors, and the
attack.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.recovery.unmixing.history import PastModel
from ldprecover.recovery.unmixing.model.hypotheses import Guess
from ldprecover.types import FloatArray

_HALVINGS = 200
_TINY = 1e-18


@dataclass(frozen=True, eq=False)
class Unmixed:
    """What un-mixing makes of a round of d items.

    `frequencies` are a distribution, `sd` their standard deviations. `p_attack` is the probability
    that there was an attack, `p_history` that earlier rounds are a guide to this one. `beta` is the
    share of malicious reports: its mean, and the ends of its 95 % interval. `spikes` are the
    probabilities that reports were made to raise an item and not all others too.
    """

    frequencies: FloatArray
    sd: FloatArray
    p_attack: float
    p_history: float
    beta: tuple[float, float, float]
    spikes: FloatArray


def averaged(
    guesses: Sequence[Guess], *, unidentified: bool, progress: Callable[[float], None]
) -> Unmixed:
    """Return the average over the hypotheses by their weights.

    `unidentified` says that the protocol does not tell which items the surplus of an attack is on:
    that does not show in what each hypothesis says, and is added to the variances in proportion to
    the probability of an attack. `progress` is called with the share of the hypotheses that is
    averaged.
    """
    moments = []
    for done, guess in enumerate(guesses, 1):
        moments.append(guess.moments())
        progress(done / len(guesses))
    log_weights = np.array([each.log_weight for each in moments])
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()

    def average(vectors: Sequence[FloatArray]) -> FloatArray:
        total = np.zeros_like(vectors[0])
        for weight, vector in zip(weights.tolist(), vectors, strict=True):
            total += weight * vector
        return total

    mean = average([each.mean for each in moments])
    variance = np.maximum(average([each.square for each in moments]) - mean**2, _TINY)
    attack = float(weights @ [guess.attack for guess in guesses])
    spread = variance * (1 + attack) if unidentified else variance
    return Unmixed(
        onto_simplex(mean, variance),
        np.sqrt(spread - spread**2 / spread.sum()),
        min(attack, 1.0),
        min(float(weights @ [isinstance(guess.model, PastModel) for guess in guesses]), 1.0),
        _interval(np.array([1 - guess.relation.a for guess in guesses]), weights),
        np.minimum(average([each.spike for each in moments]), 1.0),
    )


def onto_simplex(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Return max(0, mean + lambda variance) for the lambda with which it sums to one.

    That is the mean given the sum, to first order: items that are certain do not move, those hidden
    behind a spike take what is left. Where all variances are equal it is the projection on the
    simplex.
    """

    def at(multiplier: float) -> FloatArray:
        moved: FloatArray = np.maximum(mean + multiplier * variance, 0.0)
        return moved

    most = float(variance.max())
    low, high = -1 / most, 1 / most
    while at(low).sum() > 1:
        low *= 2
    while at(high).sum() < 1:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() < 1 else (low, middle)
    found = at(high)
    found /= found.sum()
    return found


def _interval(values: FloatArray, weights: FloatArray) -> tuple[float, float, float]:
    """Return the mean, and the values below which 2.5 and 97.5 % of the weight lie, widened to hold
    the mean.
    """
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    low, high = (
        float(values[order][min(int(np.searchsorted(below, q)), values.size - 1)])
        for q in (0.025, 0.975)
    )
    mean = min(max(float(weights @ values), float(values.min())), float(values.max()))
    return mean, min(low, mean), max(high, mean)
