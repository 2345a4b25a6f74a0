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
from ldprecover.certificate.evidence import HonestPart
from ldprecover.certificate.region import Region
from ldprecover.types import FloatArray, Int64Array

_STEPS = 10  # of choosing scores for one limit
_PROGRESS = 1e-3  # of a limit, the least of a step
_PRIOR = 256.0  # reports in a cell that outweigh the coarser partition
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
        self, box: Region, honest: HonestPart, weights: FloatArray, before: Sequence[Scores]
    ) -> list[Scores]:
        """Return scores that, with those before, limit the sum of the weighted frequencies.

        By cutting planes: the frequencies of the largest sum that the scores so far allow, then the
        scores that tell best that these are not the honest users'.
        """
        chosen, least = list(before), math.inf
        for _ in range(_STEPS):
            losses = np.array([s.losses for s in chosen]).reshape(-1, weights.size)
            sums = np.array([s.mean * self.scored for s in chosen])
            region = honest.region(box, losses, sums, self.log_tail)
            multipliers, frequencies = region.optimum(weights)
            if frequencies is None or weights @ frequencies > least - _PROGRESS:
                break
            least = float(weights @ frequencies)
            for i in range(len(self.partitions)):
                scores, gain = self._best(i, frequencies, self.scored / honest.n)
                if gain * honest.n > self.log_tail:
                    chosen.append(scores)
        binding = np.flatnonzero(multipliers > _BINDING)
        return [chosen[i] for i in binding if i >= len(before)]

    def _best(self, partition: int, frequencies: FloatArray, ratio: float) -> tuple[Scores, float]:
        """Return the scores that tell best that honest users do not have these frequencies.

        And the expected exponent of their bound. Sums of scores are `ratio` times those of honest
        users at most, so honest reports in a cell are too. The scores are the logarithms of how
        much the law exceeds this. Of coarse and fine cells those of the best expectation.
        """
        cells, candidates = self.partitions[partition], []
        law = cells.law(frequencies)
        counts = self.histograms[partition].reshape(law.shape)
        coarse = law.sum(axis=1, keepdims=True), counts.sum(axis=1, keepdims=True)
        # How often reports lie in each cell, as multiples of the law. Cells of few reports are
        # taken to be like the coarser ones that they are in. The others choose each report's score:
        # what it adds to its cell flatters the mean, so the second multiples are without it.
        odds = np.ones((2, 1, 1))
        for probabilities, numbers in (coarse, (law, counts)):
            without = np.stack([numbers, np.maximum(numbers - 1, 0)])
            odds = (without + _PRIOR * odds) / (self.n * probabilities + _PRIOR)
            values, expected = np.maximum(-np.log(ratio * odds), 0.0)
            mean = float((counts * expected).sum()) / self.n
            gain = -math.log((law * np.exp(-values)).sum()) - ratio * mean
            candidates.append((gain, mean, np.broadcast_to(values, law.shape)))
        gain, mean, values = max(candidates, key=lambda candidate: candidate[0])
        return Scores(partition, values.ravel(), cells.means(-np.expm1(-values)), mean), gain
