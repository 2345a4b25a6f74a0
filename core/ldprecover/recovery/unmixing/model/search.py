"""The search for likely hypotheses of an attack: the shift is searched, all else is enumerated."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.recovery.unmixing.model.hypotheses import Choice, Hypothesis
from ldprecover.recovery.unmixing.model.mixture import Mixture
from ldprecover.recovery.unmixing.model.relations import Relation, Sums
from ldprecover.recovery.unmixing.model.shapes import Shape
from ldprecover.recovery.unmixing.model.spikes import Spikes
from ldprecover.recovery.unmixing.prior import PRIOR


@dataclass(frozen=True, eq=False)
class AttackFamily:
    """Attack hypotheses with the same sums: each law with each relation and each of the spikes.

    Shifts are at most `largest`, and are searched in steps of about `finest`. `shift_alone` adds
    attacks that shift the estimates and raise no item; `unshifted` adds small shares of malicious
    reports that shift nothing.
    """

    sums: Sums
    largest: float
    finest: float
    log_prior: float
    laws: Sequence[Shape]
    spikes: Sequence[Spikes]
    shift_alone: bool = True
    unshifted: bool = False

    def hypotheses(self, model: Mixture) -> Iterator[Hypothesis]:
        """Yield the hypotheses at the shifts that fit best."""
        log_weights = self._best_shifts(model) if self.sums.displacements else {0.0: 0.0}
        for c, log_weight in log_weights.items():
            yield from self._at(model, self.sums.at(c), self.laws, log_weight)
        if self.unshifted:
            yield from self._at(model, self.sums.unshifted(), self.laws)

    def _at(
        self,
        model: Mixture,
        relations: Iterable[Relation],
        laws: Sequence[Shape],
        log_weight: float = 0.0,
    ) -> Iterator[Hypothesis]:
        choices: list[Choice] = []
        for relation in relations:
            if relation.rho > 0:
                choices += [(relation, each) for each in self.spikes]
            elif self.shift_alone:
                choices.append((relation, Spikes(1, False, math.log(PRIOR.shift_alone))))
        return model.hypotheses(laws, choices, self.log_prior + log_weight)

    def _best_shifts(self, model: Mixture) -> dict[float, float]:
        """Return the shift of the highest score and its neighbours, with the logs of their weights.

        The search looks at every third law. The weights, 1, 2 and 1, are those of the trapezoidal
        rule. Neighbours more than `PRIOR.close` nats below the best are left out.
        """
        low, high = 0.0, self.largest
        while True:
            shifts = np.linspace(low, high, PRIOR.shifts)
            step = float(shifts[1] - low)
            scores = [
                max(
                    (each.score for each in self._at(model, self.sums.at(c), self.laws[::3])),
                    default=-math.inf,
                )
                for c in shifts.tolist()
            ]
            best = int(np.argmax(scores))
            if step < self.finest:
                break
            low, high = max(float(shifts[best]) - step, 0.0), float(shifts[best]) + step
        around = range(max(best - 1, 0), min(best + 2, len(scores)))
        return {
            float(shifts[i]): math.log(2) if i == best else 0.0
            for i in around
            if scores[i] > scores[best] - PRIOR.close
        }


def likely(hypotheses: Iterable[Hypothesis], limit: int | None = None) -> list[Hypothesis]:
    """Return the best `limit` hypotheses within `PRIOR.likely` nats of the best one."""
    ordered = sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[:limit]
    return [each for each in ordered if each.score > ordered[0].score - PRIOR.likely]
