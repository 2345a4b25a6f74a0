"""Scores of reports, each a linear bound of the frequencies of the honest users.

For scores s(z) >= 0 and n honest reports of users with frequencies f, Chernoff's bound and the
inequality of the means give sum_v f_v E_v[exp(-s)] >= exp(-(S + log_tail)/n), where S is the sum of
the scores of all reports: malicious ones only add. It is linear in f. With scores of 0 and t it is
the bound of one event; these here suit how the reports look.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.certificate.evidence import HonestPart
from ldprecover.certificate.partitions import Partition
from ldprecover.certificate.region import Region
from ldprecover.types import FloatArray, Int64Array

_STEPS = 10  # of choosing scores for one limit
_PROGRESS = 1e-3  # of a limit, the least of a step
_PRIOR = 256.0  # reports in a cell that outweigh the coarser partition
_BINDING = 1e-6  # a multiplier


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of the cells of a partition.

    `losses` are 1 - E_v[exp(-s)] for each item v; `mean` is the expected score of a report.
    """

    partition: int
    values: FloatArray
    losses: FloatArray
    mean: float


@dataclass(frozen=True, eq=False)
class ScorePicker:
    """Picks scores from one part of the reports; they are evaluated on the other part.

    `histograms` count the n reports of the first part in the cells of each partition. Of the other
    part it knows the number of reports, `scored`, alone.
    """

    partitions: Sequence[Partition]
    histograms: Sequence[Int64Array]
    n: int
    scored: int
    log_tail: float

    def scores(
        self, box: Region, honest: HonestPart, weights: FloatArray, before: Sequence[Scores]
    ) -> list[Scores]:
        """Return scores that, with those before, bound the sum of the weighted frequencies.

        Cutting planes: each step takes the frequencies of the largest sum that the scores so far
        allow, and adds the scores that exclude them by the largest margin.
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
        """Return the scores with the largest expected exponent against these frequencies, and it.

        The sum of all scores is at most `ratio` times that of honest users, and so is the number
        of reports in a cell. The scores are the logarithms of the law over this bound, clipped at
        0, of the coarse or the fine cells.
        """
        cells, candidates = self.partitions[partition], []
        law = cells.law(frequencies)
        counts = self.histograms[partition].reshape(law.shape)
        coarse = law.sum(axis=1, keepdims=True), counts.sum(axis=1, keepdims=True)
        # Reports in each cell over the law's expectation, shrunk to that of the coarser cell.
        # Leave one out: a report would raise the mean by its own part in its cell's score.
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
