"""Rounds with a past: each item's frequency is near what it was in earlier, clean rounds."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.recovery.unmixing.model.density import Group, groups
from ldprecover.recovery.unmixing.model.grid import Grid
from ldprecover.recovery.unmixing.model.hypotheses import (
    FAINT,
    FLOOR,
    Choice,
    Guess,
    Moments,
    same_shares,
)
from ldprecover.types import FloatArray

_LEVEL = math.log(1.15)


@dataclass(frozen=True, eq=False)
class Past:
    """What earlier rounds say of the d frequencies: their means and variances."""

    mean: FloatArray
    variance: FloatArray

    def widest(self) -> float:
        """Return the largest deviation of a frequency from its mean that is considered."""
        delta = max(drift.delta for drift in DRIFTS)
        return math.sqrt(float((self.variance + (delta * self.mean) ** 2).max()))


@dataclass(frozen=True)
class Drift:
    """By which share of itself a frequency may have changed since: a standard deviation."""

    delta: float
    log_prior: float


DRIFTS = tuple(Drift(delta, -math.log(3)) for delta in (0.05, 0.15, 0.4))


class PastModel:
    """The estimates z with noise sd of a round with a past, on a grid of its own."""

    def __init__(self, z: FloatArray, sd: FloatArray, past: Past, grid: Grid) -> None:
        self._z, self._sd, self._past, self._grid = z, sd, past, grid
        self._floor = FLOOR / float(np.median(sd))

    def guesses(
        self, laws: Sequence[Drift], choices: Sequence[Choice], prior: float
    ) -> Iterator[Guess]:
        """Yield a hypothesis for each drift with each choice of relation and spikes."""
        d = self._z.size
        for chosen in same_shares(choices):
            relation = chosen[0][0]
            transforms = np.array(
                [spikes.transform(relation.rho, d, self._grid) for relation, spikes in chosen]
            )
            x = self._z - relation.a * self._past.mean + relation.c
            priors = (
                np.array([relation.log_weight + spikes.log_prior for relation, spikes in chosen])
                + prior
            )
            for drift in laws:
                scores = priors + drift.log_prior
                for group in self._groups(self._deviations(relation.a, self._variance(drift))):
                    densities = np.maximum(group.at(x, len(chosen)).densities(transforms), 0.0)
                    scores = scores + np.log(densities + self._floor).sum(axis=1)
                for choice, score in zip(chosen, scores.tolist(), strict=True):
                    yield Guess(self, drift, *choice, score)

    def moments(self, guess: Guess) -> Moments:
        """Return what one of its hypotheses gives each item.

        z - a mu + c - s = a (f - mu) + noise =: n is normal, of variance tau^2 = sd^2 + a^2 W. Its
        mean and variance given z follow from the density g of z and its derivatives: E n = -tau^2
        g'/g (Tweedie).
        """
        drift, relation = guess.law, guess.relation
        assert isinstance(drift, Drift)
        a, d, grid = relation.a, self._z.size, self._grid
        prior = self._variance(drift)
        spikes = guess.spikes.transform(relation.rho, d, grid)
        turn = 1j * grid.omega
        rows = np.array([spikes, spikes * turn, spikes * turn**2, np.ones_like(spikes)])
        x = self._z - a * self._past.mean + relation.c
        g = np.empty((4, d))
        tau = self._deviations(a, prior)
        for group in self._groups(tau):
            g[:, group.items] = group.at(x, len(rows)).densities(rows)
        tau2 = tau**2
        faint = g[0] < FAINT * self._floor
        density = np.maximum(g[0], 0.0) + self._floor
        first = np.where(faint, 0.0, -tau2 * g[1] / density)
        second = np.where(faint, tau2, tau2 + tau2**2 * (g[2] / density - (g[1] / density) ** 2))
        gain = a * prior / tau2
        mean = self._past.mean + gain * first
        variance = prior * self._sd**2 / tau2 + gain**2 * np.clip(second, 0.0, tau2)
        share = guess.spikes.share(d) if relation.rho else 0.0
        spike = np.clip(1 - (1 - share) * np.maximum(g[3], 0.0) / density, 0.0, 1.0)
        spike[faint] = (share * (x >= 0))[faint]
        return Moments.of(
            mean, variance + mean**2, spike * (0 < share < 1), guess.score, float(prior.sum())
        )

    def _variance(self, drift: Drift) -> FloatArray:
        """Return W, the variances of the frequencies before the round."""
        variance: FloatArray = self._past.variance + (drift.delta * self._past.mean) ** 2
        return variance

    def _deviations(self, a: float, prior: FloatArray) -> FloatArray:
        """Return tau, the deviations of the estimates without spikes: few are distinct."""
        tau = np.sqrt(self._sd**2 + a**2 * prior)
        least = float(tau.min())
        rounded: FloatArray = least * np.exp(_LEVEL * np.round(np.log(tau / least) / _LEVEL))
        return rounded

    def _groups(self, tau: FloatArray) -> Iterator[Group]:
        yield from groups(tau, self._grid, [np.ones(tau.size, np.bool_)])
