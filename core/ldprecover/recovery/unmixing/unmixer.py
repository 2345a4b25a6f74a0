"""Un-mixing: empirical Bayes on the simplex, without knowledge of the attack."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ldprecover.protocols import FrequencyOracle
from ldprecover.recovery.simplex import project_simplex
from ldprecover.recovery.unmixing.history import DRIFTS, History, HistoryModel
from ldprecover.recovery.unmixing.model.grid import grid_over
from ldprecover.recovery.unmixing.model.hypotheses import Choice, Hypothesis, Model
from ldprecover.recovery.unmixing.model.mixture import Mixture
from ldprecover.recovery.unmixing.model.posterior import Unmixed, averaged
from ldprecover.recovery.unmixing.model.relations import Relation, Sums
from ldprecover.recovery.unmixing.model.search import (
    AttackFamily,
    ShiftRange,
    attack_hypotheses,
    likely,
)
from ldprecover.recovery.unmixing.model.shapes import ATTACKED, COARSE, HONEST, Shape, shapes
from ldprecover.recovery.unmixing.model.spikes import NONE, on_some, on_targets
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import FloatArray

LEAST_ITEMS = 16
"""With fewer items there is too little to learn from the others: they are projected."""

_SEARCH = 0.8  # share of the time that the search for hypotheses takes, about
_USUAL_HYPOTHESES = 2000  # number of hypotheses that are looked at, about

Law = TypeVar("Law")


@dataclass(frozen=True)
class KnownItems:
    """Items about which something is known, by index.

    `targets` may be attacked. `shared` says that they were found because too many reports support
    several of them: such reports support the other items less, whatever the protocol. `canaries`
    are held by nobody.
    """

    targets: tuple[int, ...] = ()
    shared: bool = False
    canaries: tuple[int, ...] = ()


def unmix(
    oracle: FrequencyOracle,
    z: FloatArray,
    sd: FloatArray,
    *,
    known_items: KnownItems = KnownItems(),
    history: History | None = None,
    attack: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Unmixed:
    """Return the genuine users' frequencies and the attack, from d estimates z with noise sd.

    Each estimate is a f - c + s + e. The frequencies f follow one law for all items, or are near
    their `history`; c is a shift, s are spikes on some items or on the targets, and e is the noise.
    Laws, shifts and spikes are averaged over by the likelihood of the estimates, and the
    frequencies are conditioned on their sum of one. Fewer than 16 items are projected on the
    simplex instead. `attack` False takes all reports as honest. `progress` is called with the share
    of the work that is done, from 0 to 1, about: the number of hypotheses is not known beforehand.

    Cost: some thousand densities of d items, each from one Fourier transform. Raises ParameterError
    for a protocol that does not state its displacements.
    """
    d = z.size
    if d < LEAST_ITEMS:
        return Unmixed(
            project_simplex(z), sd * math.sqrt(1 - 1 / d), 0.0, 0.0, (0.0, 0.0, 0.0), np.zeros(d)
        )
    report_progress = progress or (lambda _: None)
    unmixer = _Unmixer(
        oracle, z, sd, known_items, attack, lambda share: report_progress(_SEARCH * share)
    )
    hypotheses = unmixer.without_history()
    if history is not None:
        hypotheses += unmixer.with_history(history)
    return averaged(
        hypotheses,
        unidentified=not unmixer.sums.displacements,
        progress=lambda share: report_progress(_SEARCH + (1 - _SEARCH) * share),
    )


def history_of(oracle: FrequencyOracle, z: FloatArray, sd: FloatArray) -> History:
    """Return the frequencies of an earlier round without an attack, from its estimates z."""
    unmixed = unmix(oracle, z, sd, attack=False)
    return History(unmixed.frequencies, unmixed.sd**2)


class _Unmixer:
    """The search for the likely hypotheses on one round."""

    def __init__(
        self,
        oracle: FrequencyOracle,
        z: FloatArray,
        sd: FloatArray,
        known_items: KnownItems,
        attack: bool,
        progress: Callable[[float], None],
    ) -> None:
        self.sums = Sums.of(oracle, z, sd)
        self._z, self._sd, self._known_items, self._attack = z, sd, known_items, attack
        self._progress, self._seen = progress, 0
        middle = float(np.median(sd))
        largest = max(0.0, -float(np.quantile(z, PRIOR.lowest_quantile))) + 2 * middle
        self._shifts = ShiftRange(largest, middle / (2 * math.sqrt(z.size)))
        self._top = max(float(z.max()), 0.0) + largest
        # Equal spikes on all items are a shift, and would be counted twice where it is searched.
        self._spikes = on_some(z.size, uniform=not self.sums.displacements)
        # Where nothing shifts, the estimates do not tell which items the surplus is on: other
        # attacked items would be the popular ones.
        self._all_known = known_items.shared or not self.sums.displacements
        self._log_attack = math.log(PRIOR.attack)
        if self.sums.displacements:
            self._log_attack -= math.log(PRIOR.shift_choices)
        self._shared_sums = self._displaced_by_sharing(oracle) if known_items.shared else None

    def _displaced_by_sharing(self, oracle: FrequencyOracle) -> Sums | None:
        """Return the sums if reports that share targets displace the other items, else None.

        Such reports support half of the t targets and no more items than honest ones.
        """
        t, share = len(self._known_items.targets), PRIOR.shared_support
        if not t or self.sums.displacements or self.sums.fixed or oracle.q >= share:
            return None
        displaced = t * (share - oracle.q) / (self._z.size - t) / (oracle.p - oracle.q)
        return replace(self.sums, displacements=(displaced,))

    def without_history(self) -> list[Hypothesis]:
        """Return the likely hypotheses without earlier rounds."""
        grid = grid_over(
            float(self._z.min()), self._top, float(self._sd.min()), float(self._sd.max())
        )
        known_items = self._known_items
        model = Mixture(self._z, self._sd, grid, known_items.targets, known_items.canaries)
        hypotheses = self._counted(self._mixture_hypotheses(model))
        return likely(hypotheses, PRIOR.most_hypotheses)

    def _mixture_hypotheses(self, model: Mixture) -> Iterator[Hypothesis]:
        targets = self._known_items.targets
        yield from model.hypotheses(
            self._shapes(HONEST), [self._honest], math.log(1 - PRIOR.attack)
        )
        if not self._attack:
            return
        laws, coarse_laws = self._shapes(ATTACKED), self._shapes(COARSE)
        elsewhere = math.log(PRIOR.attack_elsewhere) if targets else 0.0
        log_prior = self._log_attack + elsewhere
        family = AttackFamily(self.sums, log_prior, laws, coarse_laws, self._spikes, self._spikes)
        yield from self._attacks(model, family)
        encoded = self.sums.encoded_reports()
        if encoded is not None:
            everywhere = on_some(self._z.size, uniform=True)
            choices = [(encoded, spikes) for spikes in everywhere]
            yield from model.hypotheses(laws, choices, log_prior)
        if targets:
            spikes = on_targets(targets, self._z.size, all_known=self._all_known)
            on_them = AttackFamily(
                self.sums,
                self._log_attack + math.log(PRIOR.attack_on_targets),
                laws,
                coarse_laws,
                spikes,
                spikes,
                shift_alone=False,
                unshifted=True,
            )
            yield from self._attacks(model, on_them)
            if self._shared_sums is not None:
                shared = replace(on_them, sums=self._shared_sums, unshifted=False)
                yield from self._attacks(model, shared)

    def with_history(self, history: History) -> list[Hypothesis]:
        """Return the likely hypotheses with earlier rounds."""
        deviation = math.hypot(float(self._sd.max()), history.largest_deviation())
        grid = grid_over(
            float((self._z - history.mean).min()), self._top, float(self._sd.min()), deviation
        )
        model = HistoryModel(self._z, self._sd, history, grid)
        hypotheses = self._counted(self._history_hypotheses(model))
        return likely(hypotheses, PRIOR.most_hypotheses_with_history)

    def _history_hypotheses(self, model: HistoryModel) -> Iterator[Hypothesis]:
        log_history = math.log(PRIOR.history)
        yield from model.hypotheses(
            DRIFTS, [self._honest], log_history + math.log(1 - PRIOR.attack)
        )
        if not self._attack:
            return
        coarse_spikes = [
            each
            for each in self._spikes
            if not each.narrow or each.k in (PRIOR.coarse_spikes, self._z.size // 2)
        ]
        yield from self._attacks(
            model,
            AttackFamily(
                self.sums,
                log_history + self._log_attack,
                DRIFTS,
                DRIFTS[1:2],
                self._spikes,
                coarse_spikes,
                unshifted=True,
            ),
        )

    def _attacks(self, model: Model[Law], family: AttackFamily[Law]) -> Iterator[Hypothesis]:
        return attack_hypotheses(model, family, self._shifts)

    def _counted(self, hypotheses: Iterable[Hypothesis]) -> Iterator[Hypothesis]:
        """Yield the hypotheses, and report progress for each; their number is not known."""
        for hypothesis in hypotheses:
            self._seen += 1
            self._progress(self._seen / (self._seen + _USUAL_HYPOTHESES))
            yield hypothesis

    def _shapes(self, kind: str) -> tuple[Shape, ...]:
        """Return a list of shapes, for the items that somebody may hold."""
        return shapes(kind, self._z.size - len(self._known_items.canaries))

    @property
    def _honest(self) -> Choice:
        return Relation(1.0, 0.0, 0.0, self.sums.honest), NONE
