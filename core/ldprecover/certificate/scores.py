"""Scores of reports that tell which frequencies their honest users cannot have.

For scores s(z) >= 0 and n honest reports of users with frequencies f, Chernoff's bound and the
inequality of the means give sum_v f_v E_v[exp(-s)] >= exp(-(S + log_tail)/n), where S is the sum of
the scores of all reports: malicious ones only add. It is linear in f. With scores of 0 and t it is
the bound of one event; these here suit how the reports look.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.certificate.cells import Cells
from ldprecover.certificate.regions import Box, Polytope
from ldprecover.types import FloatArray, Int64Array

_STEPS = 10  # of choosing scores for one limit
_PROGRESS = 1e-3  # of a limit, the least of a step
_PRIORS = (16.0, 256.0, 4096.0)  # reports in a cell that outweigh the coarser partition
_BINDING = 1e-6  # a multiplier


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of the cells of a partition.

    `losses` are 1 - E_v[exp(-s)], and `mean` is expected among reports like those that chose them.
    """

    partition: int
    values: FloatArray
    losses: FloatArray
    mean: float


@dataclass(frozen=True)
class HonestPart:
    """At least this number of the reports that are scored is honest.

    The frequencies of their users have at most this `distance`, a total variation, from those of
    all honest users.
    """

    n: float
    distance: float

    def polytope(self, box: Box, losses: FloatArray, exponents: FloatArray) -> Polytope:
        """Return the frequencies that scores allow, whose exponents are (S + log_tail)/n."""
        low, high = losses.min(axis=1), losses.max(axis=1)
        scale = np.maximum(high - low, _BINDING * high)
        ends = self.distance * (high - low) - np.expm1(-exponents) - low
        return Polytope(box, (losses - low[:, None]) / scale[:, None], ends / scale + 1e-9)


@dataclass(frozen=True, eq=False)
class Chooser:
    """Chooses scores by the histograms of n reports, for `scored` others of which a part is honest.

    Nothing depends on the others but their number.
    """

    partitions: Sequence[Cells]
    histograms: Sequence[Int64Array]
    n: int
    scored: int
    log_tail: float

    def scores(
        self, box: Box, honest: HonestPart, weights: FloatArray, before: Sequence[Scores]
    ) -> list[Scores]:
        """Return scores that, with those before, limit the sum of the weighted frequencies.

        By cutting planes: the frequencies of the largest sum that the scores so far allow, then the
        scores that tell best that these are not the honest users'.
        """
        chosen, least = list(before), math.inf
        last = binding = np.zeros(0, np.int64)
        for _ in range(_STEPS):
            losses = np.array([s.losses for s in chosen]).reshape(-1, weights.size)
            sums = np.array([s.mean * self.scored for s in chosen])
            polytope = honest.polytope(box, losses, (sums + self.log_tail) / honest.n)
            multipliers, frequencies = polytope.optimum(weights)
            last, binding = binding, np.flatnonzero(multipliers > _BINDING)
            if frequencies is None or weights @ frequencies > least - _PROGRESS:
                break
            least = float(weights @ frequencies)
            for i in range(len(self.partitions)):
                scores, gain = self._best(i, frequencies, self.scored / honest.n)
                if gain * honest.n > self.log_tail:
                    chosen.append(scores)
        return [chosen[i] for i in np.union1d(last, binding) if i >= len(before)]

    def _best(self, partition: int, frequencies: FloatArray, ratio: float) -> tuple[Scores, float]:
        """Return the scores that tell best that honest users do not have these frequencies.

        And the expected exponent of their bound. Sums of scores are `ratio` times those of honest
        users at most, so honest reports in a cell are too. The scores are the logarithms of how
        much the law exceeds this. Of coarse and fine cells those of the best expectation.
        """
        cells = self.partitions[partition]
        fine, histogram = cells.law(frequencies), self.histograms[partition]
        best = -math.inf, 0.0, np.zeros(1)
        for depth in range(1, len(cells.shape) + 1):
            shape = cells.shape[:depth]
            law, counts = (a.reshape(math.prod(shape), -1).sum(axis=1) for a in (fine, histogram))
            for prior in _PRIORS:
                odds = ratio * self._odds(shape, law, counts, prior, 0)
                level = _level(law, odds)
                values = np.maximum(-np.log(odds * level), 0.0)
                # Each report is scored by what the others choose.
                others = ratio * self._odds(shape, law, counts, prior, 1)
                mean = float(counts @ np.maximum(-np.log(others * level), 0.0)) / self.n
                gain = -math.log(law @ np.exp(-values)) - ratio * mean
                best = max(best, (gain, mean, values), key=lambda scores: scores[0])
        gain, mean, values = best
        values = np.repeat(values, cells.size // values.size)
        return Scores(partition, values, cells.means(-np.expm1(-values)), mean), gain

    def _odds(
        self, shape: tuple[int, ...], law: FloatArray, counts: Int64Array, prior: float, less: int
    ) -> FloatArray:
        """Return how often reports lie in each cell, as multiples of the law.

        Cells of few reports are taken to be like the coarser ones that they are in.
        """
        odds = np.ones(1)
        for depth in range(1, len(shape) + 1):
            size = math.prod(shape[:depth])
            coarse, expected = (a.reshape(size, -1).sum(axis=1) for a in (counts, self.n * law))
            odds = np.repeat(odds, size // odds.size)
            odds = (np.maximum(coarse - less, 0) + prior * odds) / (expected + prior)
        return odds


def _level(law: FloatArray, odds: FloatArray) -> float:
    """Return the largest z <= 1 for which law @ min(1/z, odds) is at least one, if there is any."""
    low, high = min(1.0, float(1 / odds.max())), 1.0
    for _ in range(40):
        z = (low + high) / 2
        low, high = (z, high) if law @ np.minimum(1 / z, odds) >= 1 else (low, z)
    return low
