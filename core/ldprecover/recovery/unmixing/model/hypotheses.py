"""Hypotheses on a round: a law of the frequencies, spikes, and a relation of shares; and what one
gives the items.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from ldprecover.recovery.unmixing.model.relations import Relation
from ldprecover.recovery.unmixing.model.spikes import Spikes
from ldprecover.types import FloatArray

FLOOR = 1e-9
"""The least density, in units of the noise: nothing is impossible."""
FAINT = 30
"""Floors, below which a density is rounding."""

Choice = tuple[Relation, Spikes]


@dataclass(frozen=True, eq=False)
class Moments:
    """What a hypothesis gives each item: the means of f and of f^2, and the probability of a spike.

    `log_weight` is the logarithm of the hypothesis's weight, given that the frequencies sum to one.
    """

    mean: FloatArray
    square: FloatArray
    spike: FloatArray
    log_weight: float

    @classmethod
    def of(
        cls, mean: FloatArray, square: FloatArray, spike: FloatArray, score: float, prior: float
    ) -> "Moments":
        """Weigh a hypothesis by its score and the density of a sum of one, against that density
        before the round.

        Either sum is taken as normal; `prior` is its variance before.
        """
        variance = float((square - mean**2).sum()) + 1e-12
        off = float(1 - mean.sum())
        return cls(
            mean, square, spike, score - off**2 / (2 * variance) - math.log(variance / prior) / 2
        )


class Model(Protocol):
    """What a hypothesis's law is of, and what the hypothesis gives."""

    def moments(self, guess: "Guess") -> Moments:
        """Return what one of its hypotheses gives each item."""


@dataclass(frozen=True, eq=False)
class Guess:
    """A hypothesis; `score` is the logarithm of its likelihood times its prior."""

    model: Model
    law: object
    relation: Relation
    spikes: Spikes
    score: float

    @property
    def attack(self) -> bool:
        """Whether there is an attack."""
        return self.relation.rho > 0 or self.relation.c > 0

    def moments(self) -> Moments:
        """Return what it gives each item."""
        return self.model.moments(self)


def same_shares(choices: Sequence[Choice]) -> Iterator[list[Choice]]:
    """Yield choices of the same shift and share of honest reports, which have transforms in
    common.
    """

    def shares(choice: Choice) -> tuple[float, float]:
        return choice[0].c, choice[0].a

    for _, alike in groupby(sorted(choices, key=shares), shares):
        yield list(alike)
