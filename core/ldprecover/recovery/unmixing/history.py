"""Earlier, clean rounds over the same items, and the model of a round whose history they are."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldprecover.recovery.unmixing.model.density import Grid, groups
from ldprecover.recovery.unmixing.model.hypotheses import (
    Choice,
    Hypothesis,
    Moments,
    grouped_by_shares,
)
from ldprecover.recovery.unmixing.model.relations import Relation
from ldprecover.recovery.unmixing.model.spikes import Spikes
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import ComplexArray, FloatArray

_LEVEL = math.log(1.15)  # deviations are rounded to powers of 1.15: few are distinct


@dataclass(frozen=True, eq=False)
class History:
    """The means and variances of the d frequencies, by earlier rounds."""

    mean: FloatArray
    variance: FloatArray

    def moved(self) -> float:
        """Return the deviation of a frequency that moved: the largest frequency, up or down."""
        return float(self.mean.max())

    def largest_deviation(self) -> float:
        """Return the largest deviation of a frequency from its mean under any drift."""
        drifted = self.variance + (max(PRIOR.drifts) * self.mean) ** 2
        return math.sqrt(float(drifted.max()) + self.moved() ** 2)


class HistoryModel:
    """The estimates z with noise sd of a round with a history, on a grid.

    The laws are drifts: standard deviations of a frequency's relative change, equally probable.
    """

    def __init__(self, z: FloatArray, sd: FloatArray, history: History, grid: Grid) -> None:
        self._z, self._sd, self._history, self._grid = z, sd, history, grid
        self._floor = PRIOR.floor / float(np.median(sd))
        self._faint = PRIOR.faint * self._floor
        self._all = np.ones(z.size, np.bool_)

    def hypotheses(
        self, laws: Sequence[float], choices: Sequence[Choice], log_prior: float
    ) -> Iterator[Hypothesis]:
        """Yield the hypothesis of each drift with each choice of a relation and spikes."""
        d = self._z.size
        for group, log_priors in grouped_by_shares(choices, log_prior):
            relation = group[0][0]
            transforms = np.array(
                [spikes.transform(relation.rho, d, self._grid) for relation, spikes in group]
            )
            x = self._z - relation.a * self._history.mean + relation.c
            for drift in laws:
                total = np.zeros((len(group), d))
                for probability, variance in self._variances(drift):
                    tau = self._deviations(relation.a, variance)
                    for each in groups(tau, self._grid, [self._all]):
                        densities = each.at(x, len(group)).densities(transforms)
                        total[:, each.items] += probability * np.maximum(densities, 0.0)
                likelihoods = np.log(total + self._floor).sum(axis=1)
                scores = log_priors - math.log(len(PRIOR.drifts)) + likelihoods
                for choice, score in zip(group, scores.tolist(), strict=True):
                    moments = partial(self._moments, drift, *choice)
                    yield Hypothesis(*choice, score, moments, has_history=True)

    def _moments(self, drift: float, relation: Relation, spikes: Spikes) -> Moments:
        """Return what a hypothesis gives each item, whether it moved or not."""
        d, grid = self._z.size, self._grid
        transform = spikes.transform(relation.rho, d, grid)
        turn = 1j * grid.omega  # one derivative
        rows = np.array([transform, transform * turn, transform * turn**2, np.ones_like(transform)])
        density, without, mean, square = (np.zeros(d) for _ in range(4))
        prior_variance = 0.0
        for probability, variance in self._variances(drift):
            g, mean_of, variance_of = self._conditional(relation, variance, rows)
            density += probability * g[0]
            without += probability * g[3]
            mean += probability * g[0] * mean_of
            square += probability * g[0] * (variance_of + mean_of**2)
            prior_variance += probability * float(variance.sum())
        share = spikes.share(d) if relation.rho else 0.0
        spike = np.clip(1 - (1 - share) * without / density, 0.0, 1.0)
        return Moments(mean / density, square / density, spike * (0 < share < 1), prior_variance)

    def _conditional(
        self, relation: Relation, prior_variance: FloatArray, rows: ComplexArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the densities of the rows, and each frequency's mean and variance given z.

        z - a mu + c - s = a (f - mu) + noise =: n is normal, of variance tau^2 = sd^2 + a^2 W. Its
        mean and variance given z follow from the density g of z and its derivatives: E n = -tau^2
        g'/g (Tweedie's formula).
        """
        a = relation.a
        tau = self._deviations(a, prior_variance)
        x = self._z - a * self._history.mean + relation.c
        g = np.empty((len(rows), x.size))
        for group in groups(tau, self._grid, [self._all]):
            g[:, group.items] = group.at(x, len(rows)).densities(rows)
        faint, tau2 = g[0] < self._faint, tau**2
        np.maximum(g[3], 0.0, out=g[3])
        g[0] = np.maximum(g[0], 0.0) + self._floor
        first = np.where(faint, 0.0, -tau2 * g[1] / g[0])
        second = np.where(faint, tau2, tau2 + tau2**2 * (g[2] / g[0] - (g[1] / g[0]) ** 2))
        gain = a * prior_variance / tau2
        variance = prior_variance * self._sd**2 / tau2 + gain**2 * np.clip(second, 0.0, tau2)
        return g, self._history.mean + gain * first, variance

    def _variances(self, drift: float) -> Iterator[tuple[float, FloatArray]]:
        """Yield W, the variances of the frequencies before the round, with their probabilities."""
        drifted = self._history.variance + (drift * self._history.mean) ** 2
        yield 1 - PRIOR.moved, drifted
        yield PRIOR.moved, drifted + self._history.moved() ** 2

    def _deviations(self, a: float, variance: FloatArray) -> FloatArray:
        """Return tau, the deviations of the estimates without spikes, rounded to a few values."""
        tau = np.sqrt(self._sd**2 + a**2 * variance)
        least = float(tau.min())
        return least * np.exp(_LEVEL * np.round(np.log(tau / least) / _LEVEL))
