"""The search for likely hypotheses of an attack: the shift is searched, all else is enumerated."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

from ldprecover.recovery.unmixing.model.hypotheses import Choice, HypothesesOf, Hypothesis, Law
from ldprecover.recovery.unmixing.model.relations import Relation, Sums
from ldprecover.recovery.unmixing.model.spikes import Spikes
from ldprecover.recovery.unmixing.prior import PRIOR


@dataclass(frozen=True, eq=False)
class AttackFamily(Generic[Law]):
    """Attack hypotheses with the same sums: each law with each relation and each of the spikes.

    The shift is searched with the `coarse_laws` and `coarse_spikes`, by default all spikes.
    `shift_alone` adds attacks that shift the estimates and raise no item; `unshifted` adds small
    shares of malicious reports that shift nothing.
    """

    sums: Sums
    log_prior: float
    laws: Sequence[Law]
    coarse_laws: Sequence[Law]
    spikes: Sequence[Spikes]
    coarse_spikes: Sequence[Spikes] | None = None
    shift_alone: bool = True
    unshifted: bool = False

    def hypotheses(
        self, hypotheses_of: HypothesesOf[Law], shifts: "ShiftRange"
    ) -> Iterator[Hypothesis]:
        """Yield the hypotheses at the shifts that fit best."""
        log_weights = {0.0: 0.0}
        if self.sums.displacements:
            coarse = self.spikes if self.coarse_spikes is None else self.coarse_spikes

            def best_score(c: float) -> float:
                choices = self._choices(self.sums.at(c), coarse)
                each = hypotheses_of(self.coarse_laws, choices, self.log_prior)
                return max((hypothesis.score for hypothesis in each), default=-math.inf)

            log_weights = best_shifts(best_score, shifts)
        for c, log_weight in log_weights.items():
            choices = self._choices(self.sums.at(c), self.spikes)
            yield from hypotheses_of(self.laws, choices, self.log_prior + log_weight)
        if self.unshifted:
            choices = self._choices(self.sums.unshifted(), self.spikes)
            yield from hypotheses_of(self.laws, choices, self.log_prior)

    def _choices(self, relations: Iterable[Relation], spikes: Sequence[Spikes]) -> list[Choice]:
        choices: list[Choice] = []
        for relation in relations:
            if relation.rho > 0:
                choices += [(relation, each) for each in spikes]
            elif self.shift_alone:
                choices.append((relation, Spikes(1, False, math.log(PRIOR.shift_alone))))
        return choices


@dataclass(frozen=True)
class ShiftRange:
    """Shifts from 0 to `largest`, in steps of at least `finest`, in units of frequency."""

    largest: float
    finest: float


def best_shifts(score: Callable[[float], float], shifts: ShiftRange) -> dict[float, float]:
    """Return the shift of the highest score and its neighbours, with the logs of their weights.

    The weights, 1, 2 and 1, are those of the trapezoidal rule over the shifts between. Neighbours
    with a score more than `PRIOR.close` nats below the best, and below 0, are left out.
    """
    step = shifts.largest / (PRIOR.shifts - 1)
    scores = {i * step: score(i * step) for i in range(PRIOR.shifts)}
    best = max(scores, key=scores.__getitem__)
    for _ in range(PRIOR.zooms):
        if step < shifts.finest:
            break
        step /= PRIOR.zoom
        near = [best + i * step for i in range(1 - PRIOR.zoom, PRIOR.zoom) if i]
        scores |= {c: score(c) for c in near if c >= 0}
        best = max(scores, key=scores.__getitem__)
    return {
        c: math.log(2) if c == best else 0.0
        for c, each in scores.items()
        if abs(c - best) < 1.5 * step and each > scores[best] - PRIOR.close
    }


def likely(hypotheses: Iterable[Hypothesis], limit: int | None = None) -> list[Hypothesis]:
    """Return the best `limit` hypotheses within `PRIOR.likely` nats of the best one."""
    ordered = sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[:limit]
    return [each for each in ordered if each.score > ordered[0].score - PRIOR.likely]
