"""Hypotheses on a round: a law of the frequencies, spikes, and a relation of the shares."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ldprecover.recovery.unmixing.model.effects import Relation, Spikes
from ldprecover.types import FloatArray

_LEAST_VARIANCE = 1e-12  # of a sum of frequencies, so that it can be divided by

Choice = tuple[Relation, Spikes]


@dataclass(frozen=True, eq=False)
class Moments:
    """The means of f and f^2 for each item, and the probability that an attack raised it.

    `prior_variance` is the variance of the frequencies' sum before the round.
    """

    mean: FloatArray
    square: FloatArray
    spike: FloatArray
    prior_variance: float

    @property
    def log_evidence(self) -> float:
        """The log-evidence that the frequencies sum to one.

        It is the density of their sum at one, divided by the density before the round. Both sums
        are taken as normal.
        """
        variance = float((self.square - self.mean**2).sum()) + _LEAST_VARIANCE
        error = float(1 - self.mean.sum())
        return -(error**2) / (2 * variance) - math.log(variance / self.prior_variance) / 2


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A hypothesis; `score` is the logarithm of its likelihood times its prior probability.

    `moments` computes what it gives each item: it takes a few transforms, so only the
    likely hypotheses compute it. `is_concealed` says that what malicious reports add is
    concealed by others.
    """

    relation: Relation
    spikes: Spikes
    score: float
    moments: Callable[[], Moments]
    has_history: bool = False
    is_concealed: bool = False

    @property
    def is_attack(self) -> bool:
        relation = self.relation
        return self.is_concealed or relation.a < 1 or relation.rho > 0 or relation.c > 0
