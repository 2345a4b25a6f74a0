"""Earlier, clean rounds over the same items, and the model of a round whose history they are."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldprecover.recovery.unmixing.model.density import Group, groups
from ldprecover.recovery.unmixing.model.grid import Grid
from ldprecover.recovery.unmixing.model.hypotheses import (
    Choice,
    Hypothesis,
    Moments,
    grouped_by_shares,
)
from ldprecover.recovery.unmixing.model.relations import Relation
from ldprecover.recovery.unmixing.model.spikes import Spikes
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import FloatArray

_LEVEL = math.log(1.15)  # deviations are rounded to powers of 1.15: few are distinct


@dataclass(frozen=True, eq=False)
class History:
    """The means and variances of the d frequencies, by earlier rounds."""

    mean: FloatArray
    variance: FloatArray

    def largest_deviation(self) -> float:
        """Return the largest deviation of a frequency from its mean under any drift."""
        return math.sqrt(float((self.variance + (max(PRIOR.drifts) * self.mean) ** 2).max()))


@dataclass(frozen=True)
class Drift:
    """The law of a frequency's relative change since its history: a standard deviation."""

    delta: float
    log_prior: float


DRIFTS = tuple(Drift(delta, -math.log(len(PRIOR.drifts))) for delta in PRIOR.drifts)
"""The drifts of the prior, equally probable."""


class HistoryModel:
    """The estimates z with noise sd of a round with a history, on a grid."""

    def __init__(self, z: FloatArray, sd: FloatArray, history: History, grid: Grid) -> None:
        self._z, self._sd, self._history, self._grid = z, sd, history, grid
        self._floor = PRIOR.floor / float(np.median(sd))
        self._faint = PRIOR.faint * self._floor

    def hypotheses(
        self, laws: Sequence[Drift], choices: Sequence[Choice], log_prior: float
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
                scores = log_priors + drift.log_prior
                for each in self._groups(self._deviations(relation.a, self._variance(drift))):
                    densities = np.maximum(each.at(x, len(group)).densities(transforms), 0.0)
                    scores = scores + np.log(densities + self._floor).sum(axis=1)
                for choice, score in zip(group, scores.tolist(), strict=True):
                    moments = partial(self._moments, drift, *choice, score)
                    yield Hypothesis(*choice, score, moments, has_history=True)

    def _moments(self, drift: Drift, relation: Relation, spikes: Spikes, score: float) -> Moments:
        """Return what a hypothesis gives each item.

        z - a mu + c - s = a (f - mu) + noise =: n is normal, of variance tau^2 = sd^2 + a^2 W. Its
        mean and variance given z follow from the density g of z and its derivatives: E n = -tau^2
        g'/g (Tweedie's formula).
        """
        a, d, grid = relation.a, self._z.size, self._grid
        prior_variance = self._variance(drift)  # W
        transform = spikes.transform(relation.rho, d, grid)
        turn = 1j * grid.omega  # one derivative
        rows = np.array([transform, transform * turn, transform * turn**2, np.ones_like(transform)])
        x = self._z - a * self._history.mean + relation.c
        g = np.empty((4, d))
        tau = self._deviations(a, prior_variance)
        for group in self._groups(tau):
            g[:, group.items] = group.at(x, len(rows)).densities(rows)
        tau2 = tau**2
        faint = g[0] < self._faint
        density = np.maximum(g[0], 0.0) + self._floor
        first = np.where(faint, 0.0, -tau2 * g[1] / density)
        second = np.where(faint, tau2, tau2 + tau2**2 * (g[2] / density - (g[1] / density) ** 2))
        gain = a * prior_variance / tau2
        mean = self._history.mean + gain * first
        variance = prior_variance * self._sd**2 / tau2 + gain**2 * np.clip(second, 0.0, tau2)
        share = spikes.share(d) if relation.rho else 0.0
        spike = np.clip(1 - (1 - share) * np.maximum(g[3], 0.0) / density, 0.0, 1.0)
        spike[faint] = (share * (x >= 0))[faint]
        return Moments(
            mean,
            variance + mean**2,
            spike * (0 < share < 1),
            score,
            float(prior_variance.sum()),
        )

    def _variance(self, drift: Drift) -> FloatArray:
        """Return W, the variances of the frequencies before the round."""
        variance: FloatArray = self._history.variance + (drift.delta * self._history.mean) ** 2
        return variance

    def _deviations(self, a: float, variance: FloatArray) -> FloatArray:
        """Return tau, the deviations of the estimates without spikes, rounded to a few values."""
        tau = np.sqrt(self._sd**2 + a**2 * variance)
        least = float(tau.min())
        rounded: FloatArray = least * np.exp(_LEVEL * np.round(np.log(tau / least) / _LEVEL))
        return rounded

    def _groups(self, tau: FloatArray) -> Iterator[Group]:
        yield from groups(tau, self._grid, [np.ones(tau.size, np.bool_)])
