"""Un-mixing: empirical Bayes on the simplex, told nothing about the attack."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.simplex import project_simplex
from ldprecover.recovery.unmixing.history import DRIFTS, Past, PastModel
from ldprecover.recovery.unmixing.model.grid import grid_over
from ldprecover.recovery.unmixing.model.hypotheses import Choice, Guess
from ldprecover.recovery.unmixing.model.mixture import Mixture
from ldprecover.recovery.unmixing.model.posterior import Unmixed, averaged
from ldprecover.recovery.unmixing.model.relations import Relation, Sums
from ldprecover.recovery.unmixing.model.search import Guesses, attacks, likely
from ldprecover.recovery.unmixing.model.shapes import ATTACKED, COARSE, HONEST, Shape, shapes
from ldprecover.recovery.unmixing.model.spikes import NONE, Spikes, on_some, on_targets
from ldprecover.types import FloatArray

LEAST_ITEMS = 16
"""Fewer items tell too little of each other: they are projected."""

_HONEST, _ATTACK = math.log(0.8), math.log(0.2)
_SEARCHED = -math.log(20)  # for a shift that is chosen among many
_TOLD, _UNTOLD = (
    math.log(0.9),
    math.log(0.1),
)  # of attacks on the targets, and on other items, where targets are given
_PAST = math.log(0.9)
_MOST, _MOST_PAST = 150, 60  # hypotheses
_LOW = 0.15  # the quantile of the estimates that bounds their shift
_QUICK = 10  # spikes
_SEARCH, _USUAL = (
    0.8,
    2000,
)  # the share of the work that the search for hypotheses is, and how many there are, roughly
_HALF = 0.5  # of the targets, that reports which the screens keep may support


def unmix(
    oracle: FrequencyOracle,
    z: FloatArray,
    sd: FloatArray,
    *,
    targets: Sequence[int] = (),
    shared: bool = False,
    canaries: Sequence[int] = (),
    history: Past | None = None,
    attack: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Unmixed:
    """Return what the d estimates z, with noise of deviations sd, say of genuine users' frequencies
    and of an attack.

    Each estimate is a f - c + s + e: f by one law for all items, or near what it was in the
    `history`; c a shift, s spikes on some items, or on the `targets`; e the noise. `shared` says
    that the targets are items which too many reports were seen to share: such reports support the
    others less, whatever the protocol. `canaries` are items that nobody holds: they tell the shift,
    unless they are raised. Laws, shifts and spikes are averaged over by how likely they make the
    estimates, and the frequencies by the condition that they sum to one. Below 16 items z is
    projected on the simplex instead. `attack` False takes all reports as honest. `progress` is
    called with the share of the work that is done, roughly: how many hypotheses there are to look
    at is not known beforehand.

    Cost: some thousand densities of d items, each made by a Fourier transform. Raises
    ParameterError for a protocol that does not say what its malicious reports support.
    """
    d = z.size
    if d < LEAST_ITEMS:
        return Unmixed(
            project_simplex(z), sd * math.sqrt(1 - 1 / d), 0.0, 0.0, (0.0, 0.0, 0.0), np.zeros(d)
        )
    tell = progress or _nobody
    setting = _Setting(
        oracle,
        z,
        sd,
        tuple(targets),
        shared,
        attack,
        tuple(canaries),
        lambda share: tell(_SEARCH * share),
    )
    if shared and targets:
        setting.share(oracle, len(targets))
    found = setting.without_past()
    if history is not None:
        found += setting.with_past(history)
    return averaged(
        found,
        unidentified=not setting.sums.displacements,
        progress=lambda share: tell(_SEARCH + (1 - _SEARCH) * share),
    )


def _nobody(share: float) -> None:
    """Tell nobody."""


def past_of(oracle: FrequencyOracle, z: FloatArray, sd: FloatArray) -> Past:
    """Return what an earlier round without an attack, of estimates z with noise sd, says of the
    frequencies.
    """
    found = unmix(oracle, z, sd, attack=False)
    return Past(found.frequencies, found.sd**2)


class _Setting:
    """A round: its estimates, what their sum tells, and how far they may be shifted."""

    def __init__(
        self,
        oracle: FrequencyOracle,
        z: FloatArray,
        sd: FloatArray,
        targets: tuple[int, ...],
        seen: bool,
        attack: bool,
        canaries: tuple[int, ...],
        progress: Callable[[float], None],
    ) -> None:
        self.sums = Sums.of(oracle, z, sd)
        self._sharing: Sums | None = None
        self._z, self._sd, self._targets, self._attack = z, sd, targets, attack
        self._canaries = canaries
        self._tell, self._looked_at = progress, 0
        middle = float(np.median(sd))
        self._largest = max(0.0, -float(np.quantile(z, _LOW))) + 2 * middle
        self._finest = middle / (2 * math.sqrt(z.size))
        self._top = max(float(z.max()), 0.0) + self._largest
        # What is equal on all items is a shift, where shifts are searched.
        self._spikes = on_some(z.size, uniform=not self.sums.displacements)
        # Where nothing is shifted, which items the surplus is on is not told: it would go to
        # popular ones.
        self._all_known = seen or not self.sums.displacements
        self._prior = _ATTACK + (_SEARCHED if self.sums.displacements else 0.0)

    def share(self, oracle: FrequencyOracle, t: int) -> None:
        """Have reports that support half of the t targets, and no more items than honest ones,
        displace the others.
        """
        if self.sums.displacements or self.sums.fixed or oracle.q >= _HALF:
            return
        displaced = t * (_HALF - oracle.q) / (self._z.size - t) / (oracle.p - oracle.q)
        self._sharing = replace(self.sums, displacements=(displaced,))

    def without_past(self) -> list[Guess]:
        """Return the likely hypotheses without the earlier rounds."""
        grid = grid_over(
            float(self._z.min()), self._top, float(self._sd.min()), float(self._sd.max())
        )
        model = Mixture(self._z, self._sd, grid, self._targets, self._canaries)
        family = partial(
            self._family, model.guesses, laws=self._shapes(ATTACKED), coarse=self._shapes(COARSE)
        )

        def guesses() -> Iterator[Guess]:
            yield from model.guesses(self._shapes(HONEST), [self._honest], _HONEST)
            if not self._attack:
                return
            prior = self._prior + (_UNTOLD if self._targets else 0.0)
            yield from family(prior, spikes=self._spikes, quick=self._spikes)
            encoded = self.sums.encoded_reports()
            if encoded is not None:
                everything = [(encoded, spikes) for spikes in on_some(self._z.size, uniform=True)]
                yield from model.guesses(self._shapes(ATTACKED), everything, prior)
            if self._targets:
                spikes = on_targets(self._targets, self._z.size, all_known=self._all_known)
                yield from family(
                    self._prior + _TOLD, spikes=spikes, quick=spikes, alone=False, unshifted=True
                )
                if self._sharing is not None:
                    yield from family(
                        self._prior + _TOLD,
                        spikes=spikes,
                        quick=spikes,
                        alone=False,
                        sums=self._sharing,
                    )

        return likely(self._counted(guesses()), _MOST)

    def with_past(self, past: Past) -> list[Guess]:
        """Return the likely hypotheses with the earlier rounds."""
        reach = math.hypot(float(self._sd.max()), past.widest())
        grid = grid_over(
            float((self._z - past.mean).min()), self._top, float(self._sd.min()), reach
        )
        model = PastModel(self._z, self._sd, past, grid)
        quick = [
            each
            for each in self._spikes
            if not each.narrow or each.k in (_QUICK, self._z.size // 2)
        ]

        def guesses() -> Iterator[Guess]:
            yield from model.guesses(DRIFTS, [self._honest], _PAST + _HONEST)
            if self._attack:
                yield from self._family(
                    model.guesses,
                    _PAST + self._prior,
                    laws=DRIFTS,
                    coarse=DRIFTS[1:2],
                    spikes=self._spikes,
                    quick=quick,
                    unshifted=True,
                )

        return likely(self._counted(guesses()), _MOST_PAST)

    def _counted(self, guesses: Iterable[Guess]) -> Iterator[Guess]:
        """Yield the hypotheses, and tell of each: it brings the end nearer, wherever that is."""
        for guess in guesses:
            self._looked_at += 1
            self._tell(self._looked_at / (self._looked_at + _USUAL))
            yield guess

    def _shapes(self, kind: str) -> tuple[Shape, ...]:
        return shapes(kind, self._z.size - len(self._canaries))

    @property
    def _honest(self) -> Choice:
        return Relation(1.0, 0.0, 0.0, self.sums.honest), NONE

    def _family(
        self,
        guesses: Guesses,
        prior: float,
        *,
        laws: Sequence[Any],
        coarse: Sequence[Any],
        spikes: Sequence[Spikes],
        quick: Sequence[Spikes],
        alone: bool = True,
        unshifted: bool = False,
        sums: Sums | None = None,
    ) -> Iterator[Guess]:
        return attacks(
            guesses,
            sums or self.sums,
            prior=prior,
            laws=laws,
            coarse=coarse,
            spikes=spikes,
            quick=quick,
            alone=alone,
            unshifted=unshifted,
            largest=self._largest,
            finest=self._finest,
        )
