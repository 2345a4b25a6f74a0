"""The model of a round without history: one law of the frequencies for all items, spikes, noise."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ldprecover.recovery.unmixing.model.density import Grid, GridPositions, groups
from ldprecover.recovery.unmixing.model.hypotheses import (
    Choice,
    Hypothesis,
    Moments,
    grouped_by_shares,
)
from ldprecover.recovery.unmixing.model.relations import Relation
from ldprecover.recovery.unmixing.model.shapes import Shape
from ldprecover.recovery.unmixing.model.spikes import Spikes
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import ComplexArray, FloatArray

_ROWS = 4  # transforms of the moments: f^0, f^1, f^2, and no spike
_LEAST_VARIANCE = 1e-12  # of the frequencies' sum before the round


class Mixture:
    """The estimates z with noise sd on a grid; spikes on targets are on the `targets`.

    `canaries` are the items that nobody holds: their frequency is 0, and all else is as with other
    items. So they show the shift, unless they are raised themselves.
    """

    def __init__(
        self,
        z: FloatArray,
        sd: FloatArray,
        grid: Grid,
        targets: Sequence[int],
        canaries: Sequence[int] = (),
    ) -> None:
        self._z, self._sd, self._grid, self._d = z, sd, grid, z.size
        self._floor = PRIOR.floor / float(np.median(sd))
        self._faint = PRIOR.faint * self._floor
        inside, empty = np.zeros(z.size, np.bool_), np.zeros(z.size, np.bool_)
        inside[list(targets)] = True
        empty[list(canaries)] = True
        self._inside, self._empty = inside, empty
        self._all = tuple(groups(sd, grid, [~empty, empty]))
        apart = [inside & ~empty, ~inside & ~empty, inside & empty, ~inside & empty]
        self._split = tuple(groups(sd, grid, apart)) if targets else ()

    def hypotheses(
        self, laws: Sequence[Shape], choices: Sequence[Choice], log_prior: float
    ) -> Iterator[Hypothesis]:
        """Yield the hypothesis of each shape with each choice of a relation and spikes."""
        for group, log_priors in grouped_by_shares(choices, log_prior):
            relation, first = group[0]
            transforms, others = self._transforms(group)
            places = self._places(first, self._z + relation.c, len(group) * len(laws))
            for shape in laws:
                honest = np.fft.rfft(shape.masses(relation.scale, self._grid, 1), axis=1)
                scores = self._log_likelihood(places, honest, transforms, others) + (
                    log_priors + shape.log_prior
                )
                for choice, score in zip(group, scores.tolist(), strict=True):
                    yield Hypothesis(*choice, score, partial(self._moments, shape, *choice))

    def _transforms(self, choices: Sequence[Choice]) -> tuple[ComplexArray, ComplexArray]:
        """Return the transforms of the targets' spikes and of the others', one row per choice.

        If all choices agree on the others, theirs is one row.
        """
        on_targets, d, grid = choices[0][1].on_targets, self._d, self._grid
        transforms = np.array(
            [spikes.transform(relation.spikes, d, grid) for relation, spikes in choices]
        )
        if not on_targets:
            return transforms, transforms
        if not any(spikes.others for _, spikes in choices):
            return transforms, np.ones_like(transforms[:1])
        return transforms, np.array(
            [
                spikes.transform(relation.spikes, d, grid, others=True)
                for relation, spikes in choices
            ]
        )

    def _log_likelihood(
        self,
        places: Sequence[GridPositions],
        honest: ComplexArray,
        transforms: ComplexArray,
        others: ComplexArray,
    ) -> FloatArray:
        """Return the log-likelihood of the estimates for each row of transforms."""
        total = np.zeros(len(transforms))
        for place in places:
            first = place.group.items[0]
            spikes = transforms if self._inside[first] else others
            densities = place.densities(spikes if self._empty[first] else honest * spikes)
            np.maximum(densities, 0.0, out=densities)
            densities += self._floor
            total += np.log(densities, out=densities).sum(axis=1)
        return total

    def _moments(self, shape: Shape, relation: Relation, spikes: Spikes) -> Moments:
        """Return what a hypothesis gives each item, as E f = int f p(z | f) dG(f) / p(z)."""
        if relation.popularity:
            return self._moments_of_popular(shape, relation, spikes)
        d = self._d
        honest = np.fft.rfft(shape.masses(relation.a, self._grid, 3), axis=1)
        nobody = np.zeros_like(honest)
        nobody[0] = 1.0  # all mass at frequency 0
        of_targets, of_others = self._transforms([(relation, spikes)])
        x = self._z + relation.c
        m = np.empty((3, d))
        without = np.empty(d)
        for place in self._places(spikes, x, _ROWS):
            items = place.group.items
            law = nobody if self._empty[items[0]] else honest
            transforms = of_targets if self._inside[items[0]] else of_others
            rows = place.densities(np.concatenate([law * transforms, law[:1]]))
            m[:, items] = rows[:3]
            without[items] = rows[3]
        np.maximum(m, 0.0, out=m)
        m[:, m[0] < self._faint] = 0.0  # rounding
        density = m[0] + self._floor
        share = np.zeros(d)  # the probability before the round that each item has a spike
        if relation.rho:
            share = np.where(self._inside, spikes.share(d), spikes.share_of_others(d))
        # An estimate that the law does not explain stays: 0 below 0, else the frequency with its
        # noise, or 1/d if a spike may explain it.
        own = np.where(x < 0, 0.0, np.where(share > 0, 1 / d, np.clip(x / relation.a, 0.0, 1.0)))
        noise = np.where(own > 0, self._sd / relation.a, 0.0)
        mean = (m[1] + self._floor * own) / density
        square = (m[2] + self._floor * (own**2 + noise**2)) / density
        mean[self._empty] = square[self._empty] = 0.0
        np.clip(mean, 0.0, 1.0, out=mean)
        np.clip(square, mean**2, 1.0, out=square)
        spike = np.clip(1 - (1 - share) * np.maximum(without, 0.0) / density, 0.0, 1.0)
        faint = m[0] == 0
        spike[faint] = (share * (x >= 0))[faint]
        spike[share == 0] = 0.0
        if share.min() == 1:  # spikes on every item point to none
            spike[:] = 0.0
        return Moments(mean, square, spike, self._prior_variance(shape))

    def _moments_of_popular(self, shape: Shape, relation: Relation, spikes: Spikes) -> Moments:
        """Return the same where users hold the spikes: z = a f + e, and f includes them.

        With g the density of z, E a f = z + sd^2 g'/g, and the variance is sd^2 + sd^4 (g''/g -
        (g'/g)^2) (Tweedie's formula).
        """
        d, a = self._d, relation.a
        honest = np.fft.rfft(shape.masses(relation.scale, self._grid, 1), axis=1)
        of_targets, of_others = self._transforms([(relation, spikes)])
        derivatives = (1j * self._grid.omega) ** np.arange(3)[:, None]
        g = np.empty((3, d))
        for place in self._places(spikes, self._z, _ROWS):
            items = place.group.items
            law = of_targets if self._inside[items[0]] else of_others
            if not self._empty[items[0]]:
                law = law * honest
            g[:, items] = place.densities(law * derivatives)
        faint = g[0] < self._faint
        density = np.maximum(g[0], 0.0) + self._floor
        noise = self._sd**2
        mean = np.where(faint, self._z, self._z + noise * g[1] / density)
        variance = noise + noise**2 * (g[2] / density - (g[1] / density) ** 2)
        variance = np.where(faint, noise, np.clip(variance, 0.0, noise))
        mean = np.clip(mean / a, 0.0, 1.0)
        variance /= a**2
        mean[self._empty] = variance[self._empty] = 0.0
        prior = (1 - relation.popularity) ** 2 * self._prior_variance(shape)
        prior += relation.popularity**2 / spikes.k
        return Moments(mean, variance + mean**2, np.zeros(d), prior)

    def _prior_variance(self, shape: Shape) -> float:
        """Return the variance of the frequencies' sum before the round."""
        possible = self._d - int(self._empty.sum())  # items that anybody may hold
        return possible * max(shape.second_moment() - 1 / possible**2, _LEAST_VARIANCE)

    def _places(self, spikes: Spikes, x: FloatArray, transforms: int) -> list[GridPositions]:
        split = self._split if spikes.on_targets else self._all
        return [group.at(x, transforms) for group in split]
