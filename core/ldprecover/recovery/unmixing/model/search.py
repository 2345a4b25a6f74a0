"""Which hypotheses are looked at: all without an attack, and those with one at the shifts that fit
best.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ldprecover.recovery.unmixing.model.hypotheses import Choice, Guess
from ldprecover.recovery.unmixing.model.relations import Relation, Sums
from ldprecover.recovery.unmixing.model.spikes import Spikes

_SHIFTS, _ZOOMED, _ZOOMS = 13, 3, 3
_NEAR = 6.0  # nats
_LIKELY = 12.0  # nats
_SHIFT_ALONE = math.log(0.25)

Guesses = Callable[[Sequence[Any], Sequence[Choice], float], Iterator[Guess]]


def attacks(
    guesses: Guesses,
    sums: Sums,
    *,
    prior: float,
    laws: Sequence[Any],
    coarse: Sequence[Any],
    spikes: Sequence[Spikes],
    quick: Sequence[Spikes],
    alone: bool,
    unshifted: bool,
    largest: float,
    finest: float,
) -> Iterator[Guess]:
    """Yield the hypotheses of a family of attacks: `laws` of the frequencies with `spikes`.

    Where attacks shift the estimates, the shift is searched up to `largest`, in steps down to
    `finest`, by the best hypothesis with the `coarse` laws and `quick` spikes; a shift `alone`,
    without spikes, may be one. `unshifted` adds small shares of malicious reports that shift
    nothing.
    """

    def choices(relations: Iterable[Relation], kinds: Sequence[Spikes]) -> list[Choice]:
        found: list[Choice] = []
        for relation in relations:
            if relation.rho > 0:
                found += [(relation, each) for each in kinds]
            elif alone:
                found.append((relation, Spikes(1, False, _SHIFT_ALONE)))
        return found

    def value(c: float) -> float:
        found = guesses(coarse, choices(sums.at(c), quick), prior)
        return max((guess.score for guess in found), default=-math.inf)

    shifts = {0.0: 0.0}
    if sums.displacements:
        shifts = best_shifts(value, largest, finest)
    for c, log_weight in shifts.items():
        yield from guesses(laws, choices(sums.at(c), spikes), prior + log_weight)
    if unshifted:
        yield from guesses(laws, choices(sums.unshifted(), spikes), prior)


def best_shifts(
    value: Callable[[float], float], largest: float, finest: float
) -> dict[float, float]:
    """Return the shift of the largest value and its neighbours in the last step, with the
    logarithms of their weights.

    The weights, 1, 2 and 1, are those of the trapezoidal rule over the shifts between, four in all.
    Values more than six nats below the best, and shifts below 0, are left out.
    """
    step = largest / (_SHIFTS - 1)
    seen = {i * step: value(i * step) for i in range(_SHIFTS)}
    best = max(seen, key=seen.__getitem__)
    for _ in range(_ZOOMS):
        if step < finest:
            break
        step /= _ZOOMED
        near = [best + i * step for i in range(1 - _ZOOMED, _ZOOMED) if i and best + i * step >= 0]
        seen |= {c: value(c) for c in near}
        best = max(seen, key=seen.__getitem__)
    around = {c: seen[c] for c in seen if abs(c - best) < 1.5 * step}
    return {
        c: math.log(2) if c == best else 0.0
        for c, each in around.items()
        if each > seen[best] - _NEAR
    }


def likely(guesses: Iterable[Guess], most: int) -> list[Guess]:
    """Return the best hypotheses, `most` of them, but none that is less likely by a factor of
    e^12.
    """
    ordered = sorted(guesses, key=lambda guess: -guess.score)[:most]
    return [guess for guess in ordered if guess.score > ordered[0].score - _LIKELY]
