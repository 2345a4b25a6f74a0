"""The search for likely hypotheses of an attack: the shift is searched, all else is enumerated."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ldprecover.recovery.unmixing.model.hypotheses import Choice, Hypothesis, Model
from ldprecover.recovery.unmixing.model.relations import Relation, Sums
from ldprecover.recovery.unmixing.model.spikes import Spikes
from ldprecover.recovery.unmixing.prior import PRIOR

Law = TypeVar("Law")


@dataclass(frozen=True, eq=False)
class AttackFamily(Generic[Law]):
    """Attack hypotheses with the same sums: each law with each relation and each of the spikes.

    The shift is searched with the `coarse_laws` and `coarse_spikes`. `shift_alone` adds attacks
    that shift the estimates and raise no item; `unshifted` adds small shares of malicious reports
    that shift nothing.
    """

    sums: Sums
    log_prior: float
    laws: Sequence[Law]
    coarse_laws: Sequence[Law]
    spikes: Sequence[Spikes]
    coarse_spikes: Sequence[Spikes]
    shift_alone: bool = True
    unshifted: bool = False


@dataclass(frozen=True)
class ShiftRange:
    """Shifts from 0 to `largest`, in steps of at least `finest`, in units of frequency."""

    largest: float
    finest: float


def attack_hypotheses(
    model: Model[Law], family: AttackFamily[Law], shifts: ShiftRange
) -> Iterator[Hypothesis]:
    """Yield the hypotheses of a family at the shifts that fit best."""

    def choices(relations: Iterable[Relation], spikes: Sequence[Spikes]) -> list[Choice]:
        pairs: list[Choice] = []
        for relation in relations:
            if relation.rho > 0:
                pairs += [(relation, each) for each in spikes]
            elif family.shift_alone:
                pairs.append((relation, Spikes(1, False, math.log(PRIOR.shift_alone))))
        return pairs

    def best_score(c: float) -> float:
        coarse = choices(family.sums.at(c), family.coarse_spikes)
        hypotheses = model.hypotheses(family.coarse_laws, coarse, family.log_prior)
        return max((hypothesis.score for hypothesis in hypotheses), default=-math.inf)

    log_weights = {0.0: 0.0}
    if family.sums.displacements:
        log_weights = best_shifts(best_score, shifts)
    for c, log_weight in log_weights.items():
        pairs = choices(family.sums.at(c), family.spikes)
        yield from model.hypotheses(family.laws, pairs, family.log_prior + log_weight)
    if family.unshifted:
        pairs = choices(family.sums.unshifted(), family.spikes)
        yield from model.hypotheses(family.laws, pairs, family.log_prior)


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


def likely(hypotheses: Iterable[Hypothesis], limit: int) -> list[Hypothesis]:
    """Return the best `most` hypotheses within `PRIOR.likely` nats of the best one."""
    ordered = sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)[:limit]
    return [each for each in ordered if each.score > ordered[0].score - PRIOR.likely]
