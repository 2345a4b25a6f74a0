"""The hypotheses on a round, by its model on a grid: a law of frequencies, spikes and noise."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import numpy as np

from ldprecover.recovery.unmixing.model.density import Grid, parts, rounded
from ldprecover.recovery.unmixing.model.effects import Relation, Spikes
from ldprecover.recovery.unmixing.model.shapes import Shape
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import ComplexArray, FloatArray

_ROWS = 4  # transforms of the moments: f^0, f^1, f^2, and no spike
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


@dataclass(frozen=True, eq=False, kw_only=True)
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
        return self.is_concealed or relation.a < 1 or relation.rho > 0


@dataclass(frozen=True, eq=False)
class History:
    """The means and variances of the d frequencies, by earlier rounds."""

    mean: FloatArray
    variance: FloatArray

    def drifted(self, drift: float) -> "History":
        """Return the history for frequencies that changed by a relative deviation since."""
        return replace(self, variance=self.variance + (drift * self.mean) ** 2)

    def deviations(self, sd: FloatArray) -> FloatArray:
        """Return the deviations from the means, of estimates with noise sd, nearly."""
        tau = np.sqrt(sd**2 + self.variance)
        return tau.min() * rounded(tau / tau.min())


class Mixture:
    """The estimates z with noise sd; spikes on targets are on the `targets`.

    Shifts are at most `room`. `canaries` are the items that nobody holds: their frequency is 0, and
    all else is as with other items. So they show the shift, unless they are raised themselves. With
    a `history` each frequency is normal, or it moved, by at most the largest one; the shapes are
    those of its distance from the mean.
    """

    def __init__(
        self,
        z: FloatArray,
        sd: FloatArray,
        room: float,
        targets: Sequence[int] = (),
        canaries: Sequence[int] = (),
        history: History | None = None,
    ) -> None:
        self._z, self._sd, self._d = z, sd, z.size
        self._history = history
        self._floor = PRIOR.floor / float(np.median(sd))
        self._faint = PRIOR.faint * self._floor
        if history is not None:
            self._floor = PRIOR.moved / (2 * float(history.mean.max()))
        inside, empty = np.zeros(z.size, np.bool_), np.zeros(z.size, np.bool_)
        inside[list(targets)] = True
        empty[list(canaries)] = True
        self._inside, self._empty = inside, empty
        self._tau = sd if history is None else history.deviations(sd)
        above = z if history is None else z - history.mean
        self._parts = tuple(parts(above, self._tau, empty + 2 * inside, room))

    def hypotheses(
        self, laws: Sequence[Shape], choices: Sequence[Choice], log_prior: float
    ) -> Iterator[Hypothesis]:
        """Yield the hypothesis of each shape with each choice of a relation and spikes."""
        for group, log_priors in _grouped_by_shares(choices, log_prior):
            relation, x = group[0][0], self._distances(group[0][0])
            of_laws = [log_priors + shape.log_prior for shape in laws]
            for part in self._parts:
                rows = [self._spikes(group, part.grid, way) for way in (False, True)]
                for i, shape in enumerate(laws):
                    law = np.fft.rfft(shape.masses(relation.scale, part.grid, 1), axis=1)
                    for items in part.groups:
                        spikes = rows[items.kind // 2]
                        transforms = spikes if items.kind % 2 else law * spikes
                        of_laws[i] += items.log_likelihoods(x, transforms, self._floor)
            for shape, scores in zip(laws, of_laws, strict=True):
                for choice, score in zip(group, scores.tolist(), strict=True):
                    yield Hypothesis(
                        relation=choice[0],
                        spikes=choice[1],
                        score=score,
                        moments=partial(self._moments, shape, *choice),
                        has_history=self._history is not None,
                    )

    def _distances(self, relation: Relation) -> FloatArray:
        """Return the estimates without the shift, less the honest means of a history."""
        mean = 0.0 if self._history is None else self._history.mean
        return self._z + relation.c - relation.a * mean

    def _spikes(self, choices: Sequence[Choice], grid: Grid, on_target: bool) -> ComplexArray:
        """Return the transforms of an item's spikes, a row for each choice, or one if none has any.

        The item is a target, or not.
        """
        if not on_target and all(each.on_targets and not each.others for _, each in choices):
            choices = choices[:1]
        return np.array(
            [
                spikes.transform(relation.spikes, self._d, grid, others=not on_target)
                for relation, spikes in choices
            ]
        )

    def _moments(self, shape: Shape, relation: Relation, spikes: Spikes) -> Moments:
        """Return what a hypothesis gives each item, as E f = int f p(z | f) dG(f) / p(z)."""
        d, a, x = self._d, relation.a, self._distances(relation)
        share = np.zeros(d)  # the probability before the round that each item has a spike
        if relation.rho:
            share = np.where(self._inside, spikes.share(d), spikes.share(d, others=True))
        m = np.empty((_ROWS, d))
        for part in self._parts:
            grid = part.grid
            law = np.fft.rfft(shape.masses(relation.scale, grid, 3), axis=1)
            nobody = np.zeros_like(law)
            nobody[0] = 1.0  # all mass at frequency 0
            rows = [self._spikes([(relation, spikes)], grid, way) for way in (False, True)]
            for group in part.groups:
                of_item, items = nobody if group.kind % 2 else law, group.items
                added = rows[group.kind // 2]
                if relation.popularity:  # users hold the spikes
                    of_item, added = (
                        self._popular(of_item[:1] * added, a, grid),
                        np.ones_like(added),
                    )
                elif self._history is not None:
                    of_item = self._normal(float(self._tau[items[0]]), grid)
                rows_of = group.densities(x, np.concatenate([of_item * added, of_item]))
                if part.are_known and self._history is None:
                    # Without a spike such an item is certain but for its noise.
                    none, own_f = (1 - share[items]) * rows_of[3:], x[items] / a
                    rows_of[1] += none[0] * own_f - none[1]
                    rows_of[2] += none[0] * (own_f**2 + (self._sd[items] / a) ** 2) - none[2]
                m[:, items] = rows_of[:_ROWS]
        m[[0, 3]] = np.maximum(m[[0, 3]], 0.0)
        m[:, m[0] < self._faint] = 0.0  # rounding
        density = m[0] + self._floor
        # An estimate that the law does not explain stays: 0 below 0, else the frequency with its
        # noise, or 1/d if a spike may explain it.
        own = np.where(x < 0, 0.0, np.where(share > 0, 1 / d, np.clip(x / a, 0.0, 1.0)))
        possible = d - int(self._empty.sum())  # items that anybody may hold
        prior_variance = possible * max(shape.second_moment() - possible**-2, _LEAST_VARIANCE)
        if self._history is not None:
            mean, prior_variance = self._history.mean, float(self._history.variance.sum())
            own = np.clip(mean + x / a, 0.0, 1.0)
            m[:3] = self._with_history(m, a)
        noise = np.where(own == 0, 0.0, self._sd / a)
        mean = (m[1] + self._floor * own) / density
        square = (m[2] + self._floor * (own**2 + noise**2)) / density
        mean[self._empty] = square[self._empty] = 0.0
        np.clip(mean, 0.0, 1.0, out=mean)
        np.clip(square, mean**2, 1.0, out=square)
        is_possible = (x >= 0) & (share > 0) & (share.min() < 1)  # spikes on all point to none
        spike = np.clip(1 - (1 - share) * m[3] / density, 0.0, 1.0) * is_possible
        return Moments(mean, square, spike, prior_variance)

    @staticmethod
    def _popular(law: ComplexArray, a: float, grid: Grid) -> ComplexArray:
        """Return the transforms of a law of a f, times f^j for j = 0, 1, 2."""
        f = np.arange(grid.size) * (grid.step / a)
        f[f > 2 * grid.top / a] = 0.0  # below 0, on the circle: rounding
        return np.fft.rfft(f ** np.arange(3)[:, None] * np.fft.irfft(law, grid.size), axis=1)

    @staticmethod
    def _normal(tau: float, grid: Grid) -> ComplexArray:
        """Return the transforms of n^j for j = 0, 1, 2, n being normal of deviation tau.

        The density of n is among the noise. They are those of its derivatives (Tweedie's formula).
        """
        turn = 1j * grid.omega  # one derivative
        return np.array([np.ones_like(turn), -(tau**2) * turn, tau**2 + tau**4 * turn**2])

    def _with_history(self, m: FloatArray, a: float) -> FloatArray:
        """Return the moments of f from those of n = a (f - mean) + noise.

        Given n, the distance of f from its mean is normal, of mean gain n.
        """
        assert self._history is not None
        mean, variance, tau2 = self._history.mean, self._history.variance, self._tau**2
        gain = a * variance / tau2
        rest = variance * self._sd**2 / tau2
        first = mean * m[0] + gain * m[1]
        return np.stack(
            [m[0], first, gain**2 * m[2] + 2 * mean * first - mean**2 * m[0] + rest * m[0]]
        )


def _grouped_by_shares(
    choices: Sequence[Choice], log_prior: float
) -> Iterator[tuple[list[Choice], FloatArray]]:
    """Yield together the choices of equal shift and scale: they share transforms.

    With them come the logarithms of their prior probabilities, to which `log_prior` is added.
    """

    def shares(choice: Choice) -> tuple[float, float]:
        return choice[0].c, choice[0].scale

    for _, grouped in groupby(sorted(choices, key=shares), shares):
        group = list(grouped)
        log_priors = np.array(
            [
                relation.log_weight + PRIOR.share_decay * math.log(relation.a) + spikes.log_prior
                for relation, spikes in group
            ]
        )
        yield group, log_priors + log_prior
