"""Rounds of which nothing earlier is known: frequencies of one law for all items, spikes and
noise.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ldprecover.recovery.unmixing.model.density import Group, Place, groups
from ldprecover.recovery.unmixing.model.grid import Grid
from ldprecover.recovery.unmixing.model.hypotheses import (
    FAINT,
    FLOOR,
    Choice,
    Guess,
    Moments,
    same_shares,
)
from ldprecover.recovery.unmixing.model.shapes import Shape
from ldprecover.recovery.unmixing.model.spikes import Spikes
from ldprecover.types import BoolArray, ComplexArray, FloatArray

_ROWS = 4  # transforms of one hypothesis


class Mixture:
    """The estimates z with noise sd on a grid; `targets` are the items that spikes on targets are
    on.

    `canaries` are the items that nobody holds: their frequency is 0, and all else is as with other
    items. So they tell the shift, unless they are themselves raised.
    """

    def __init__(
        self,
        z: FloatArray,
        sd: FloatArray,
        grid: Grid,
        targets: Sequence[int],
        canaries: Sequence[int] = (),
    ) -> None:
        self._z, self._grid, self._d = z, grid, z.size
        self._floor = FLOOR / float(np.median(sd))
        inside, empty = np.zeros(z.size, np.bool_), np.zeros(z.size, np.bool_)
        inside[list(targets)] = True
        empty[list(canaries)] = True
        self._inside, self._empty = inside, empty
        self._all = tuple(groups(sd, grid, [~empty, empty]))
        apart = [inside & ~empty, ~inside & ~empty, inside & empty, ~inside & empty]
        self._split = tuple(groups(sd, grid, apart)) if targets else ()

    def guesses(
        self, laws: Sequence[Shape], choices: Sequence[Choice], prior: float
    ) -> Iterator[Guess]:
        """Yield a hypothesis for each shape with each choice of relation and spikes."""
        for chosen in same_shares(choices):
            (relation, first) = chosen[0]
            transforms, others = self._transforms(chosen)
            split = self._split if first.on_targets else self._all
            places = [group.at(self._z + relation.c, len(chosen) * len(laws)) for group in split]
            priors = (
                np.array([relation.log_weight + spikes.log_prior for relation, spikes in chosen])
                + prior
            )
            for shape in laws:
                honest = np.fft.rfft(shape.masses(relation.a, self._grid, 1), axis=1)
                scores = self._log_likelihood(places, honest, transforms, others) + (
                    priors + shape.log_prior
                )
                for choice, score in zip(chosen, scores.tolist(), strict=True):
                    yield Guess(self, shape, *choice, score)

    def _transforms(self, chosen: Sequence[Choice]) -> tuple[ComplexArray, ComplexArray]:
        """Return what the targets get, and what the others get: a row for each choice, one for all
        where they agree.
        """
        on_targets, d, grid = chosen[0][1].on_targets, self._d, self._grid
        transforms = np.array(
            [spikes.transform(relation.rho, d, grid) for relation, spikes in chosen]
        )
        if not on_targets:
            return transforms, transforms
        if not any(spikes.others for _, spikes in chosen):
            return transforms, np.ones_like(transforms[:1])
        return transforms, np.array(
            [spikes.transform_of_others(relation.rho, d, grid) for relation, spikes in chosen]
        )

    def _log_likelihood(
        self,
        places: Sequence[Place],
        honest: ComplexArray,
        transforms: ComplexArray,
        others: ComplexArray,
    ) -> FloatArray:
        total = np.zeros(len(transforms))
        for place in places:
            first = place.group.items[0]
            spikes = transforms if self._inside[first] else others
            m = place.densities(spikes if self._empty[first] else honest * spikes)
            np.maximum(m, 0.0, out=m)
            m += self._floor
            total += np.log(m, out=m).sum(axis=1)
        return total

    def moments(self, guess: Guess) -> Moments:
        """Return what one of its hypotheses gives each item."""
        shape, relation, d = guess.law, guess.relation, self._d
        assert isinstance(shape, Shape)
        honest = np.fft.rfft(shape.masses(relation.a, self._grid, 3), axis=1)
        nobody = np.zeros_like(honest)
        nobody[0] = 1.0  # all mass at frequency 0
        targets, others = self._transforms([(relation, guess.spikes)])
        x = self._z + relation.c
        m = np.empty((3, d))
        without = np.empty(d)
        for place in self._places(guess.spikes, x):
            items = place.group.items
            held = nobody if self._empty[items[0]] else honest
            spikes = targets if self._inside[items[0]] else others
            found = place.densities(np.concatenate([held * spikes, held[:1]]))
            m[:, items] = found[:3]
            without[items] = found[3]
        np.maximum(m, 0.0, out=m)
        faint = m[0] < FAINT * self._floor
        density = m[0] + self._floor
        mean = (m[1] + self._floor / d) / density
        square = (m[2] + self._floor / d**2) / density
        share = self._shares(guess)
        limit = np.where(x < 0, 0.0, np.where(share > 0, 1 / d, np.clip(x / relation.a, 0.0, 1.0)))
        mean[faint] = limit[faint]
        mean[self._empty] = square[self._empty] = 0.0
        np.clip(mean, 0.0, 1.0, out=mean)
        square[faint] = mean[faint] ** 2
        np.clip(square, mean**2, 1.0, out=square)
        spike = np.clip(1 - (1 - share) * np.maximum(without, 0.0) / density, 0.0, 1.0)
        spike[faint] = (share * (x >= 0))[faint]
        spike[share == 0] = 0.0
        if share.min() == 1:  # what is on every item points to none
            spike[:] = 0.0
        possible = d - int(self._empty.sum())  # items that anybody may hold
        prior = possible * max(shape.second_moment() - 1 / possible**2, 1e-12)
        return Moments.of(mean, square, spike, guess.score, prior)

    def _places(self, spikes: Spikes, x: FloatArray) -> Iterator[Place]:
        chosen: tuple[Group, ...] = self._split if spikes.on_targets else self._all
        for group in chosen:
            yield group.at(x, _ROWS)

    def _shares(self, guess: Guess) -> FloatArray:
        if guess.relation.rho == 0:
            return np.zeros(self._d)
        inside: BoolArray = self._inside
        return np.where(inside, guess.spikes.share(self._d), guess.spikes.share_of_others(self._d))
