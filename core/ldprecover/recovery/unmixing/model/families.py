"""Families of hypotheses: attacks, whose shift is searched, and what users hold without one."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ldprecover.recovery.unmixing.model.effects import NONE, Relation, Spikes, Sums, on_targets
from ldprecover.recovery.unmixing.model.mixture import Choice, Hypothesis, Mixture
from ldprecover.recovery.unmixing.model.shapes import Shape, free_levels, shapes
from ldprecover.recovery.unmixing.prior import PRIOR
from ldprecover.types import FloatArray

_MOST_POPULARITY = 0.99  # a share of the users
_LEAST_POPULARITY = 0.001
_POPULARITIES = [0.5, 0.9, 0.98]  # that dominant items may have
_DOMINANT, _CLEAR = 0.2, 4.0  # a share of the users, and deviations of noise


@dataclass(frozen=True, eq=False, kw_only=True)
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
        sums = self.sums
        noise = (1 - sums.total) * (sums.shared / sums.error) ** 2 / sums.d  # that all items share
        log_weights = self._best_shifts(model) if sums.displacements else {0.0: 0.0, noise: 0.0}
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


def remainder_hypotheses(
    z: FloatArray,
    sd: FloatArray,
    honest: float,
    log_prior: float,
    *,
    targets: Sequence[int],
    canaries: Sequence[int],
    sums: Sums,
) -> Iterator[Hypothesis]:
    """Yield the hypotheses of all shapes and of free levels, and of popular targets.

    The estimates z with noise sd are `honest`, the share of honest reports, times f. The `targets`
    may be more popular than the law of the other items says, which is as likely. The `canaries` are
    held by nobody. The noise that all items share is removed, as far as the sum of z tells it.
    """
    distance, variance = honest - float(z.sum()), float(sd @ sd) + sums.shared**2
    log_weight = 0.0 if sums.fixed else -(distance**2) / (2 * variance)
    z = z + distance * (sums.shared**2 / variance) / z.size
    total = float(z.sum()) / honest
    popularities, price, are_named = _POPULARITIES, 0.0, bool(targets)
    if targets:
        surplus = float(z[list(targets)].sum()) / honest - total * len(targets) / z.size
        popularities = [min(surplus, _MOST_POPULARITY)]
    else:  # items that hold much of the mass leave less to the law of the others
        targets = np.flatnonzero(z > np.maximum(_DOMINANT * honest, _CLEAR * sd)).tolist()
        price = len(targets) * math.log(z.size)  # as of free levels
    model = Mixture(z, sd, 2 * float(sd.max()), targets, canaries)
    listed = shapes(z.size - len(canaries), bounded=True)
    if targets and min(popularities) > _LEAST_POPULARITY:
        # How much dominant items hold is not known as exactly as equal spikes would say.
        spikes = on_targets(targets, z.size, all_known=True)[: 2 if are_named else 1]
        relations = [Relation(honest, 0.0, 0.0, log_weight, each) for each in popularities]
        choices = [(relation, each) for relation in relations for each in spikes]
        yield from model.hypotheses(listed, choices, log_prior - price)
    relation = Relation(honest, 0.0, 0.0, log_weight)
    possible = np.ones(z.size, np.bool_)
    possible[list(canaries)] = False
    free = free_levels(z[possible] / honest, sd[possible] / honest)
    yield from model.hypotheses((*listed, free), [(relation, NONE)], log_prior)


def likely(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Return the best hypotheses, within `PRIOR.likely` nats of the best one."""
    ordered = sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
    least = ordered[0].score - PRIOR.likely if ordered else 0.0
    return [each for each in ordered[: PRIOR.most_hypotheses] if each.score > least]
