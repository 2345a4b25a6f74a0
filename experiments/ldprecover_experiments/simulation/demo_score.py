"""The score of a demo: the errors of its estimates against the truth, and the verdict on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldprecover import project_simplex
from ldprecover_experiments.simulation.demo_words import (
    PROJECTION,
    TOLD,
    listed,
    method_words,
    points,
    sentence,
    times,
)
from ldprecover_experiments.simulation.poisoned_round import Targets, Vector, errors

BEFORE, AFTER = "before the attack", "after the attack"
"""Names of the estimates from the genuine reports and from all reports."""

HELPS = 1.05
"""A method helps if the projection's error is at least this many times its own."""

_ALONE = (
    "LDPRecover alone knows the counts and a share, so it takes as much from every item above zero "
    "as from the raised ones; it needs to be told the targets."
)

_HARM, _GAIN = 1.1, 0.01
"""An attack does harm if it multiplies the error by this, or moves its targets by this."""

_SAME = 0.02
"""Estimates are the same if their distance is at most this part of the distance to the truth."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The figures of one estimate; methods with the same estimate share a row.

    `mse` is the error against the truth, and `harm` its ratio to the error before the attack.
    `gain` is how far the targets together stand above the estimate before the attack, and `excess`
    how far above the truth, None without targets. `times` is the ratio of the projection's error to
    this one: above 1 this one is better. A ratio is None if it divides by zero.
    """

    names: tuple[str, ...]
    mse: float
    harm: float | None
    gain: float | None
    excess: float | None
    times: float | None

    @property
    def name(self) -> str:
        """The first name."""
        return self.names[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """The estimates of a demo over d items.

    `true` holds the frequencies f_X of the genuine users, `genuine` and `poisoned` the estimates
    before and after the attack, `recovered` the recoveries by name. `targets` are the indices that
    the attack raises, None for an attack without targets.
    """

    items: tuple[str, ...]
    targets: Targets | None
    true: Vector
    genuine: Vector
    poisoned: Vector
    recovered: Mapping[str, Vector]
    malicious: int
    """Number of malicious users."""

    @cached_property
    def columns(self) -> Mapping[str, Vector]:
        """The estimates by name: before and after the attack, the projection, each method."""
        return {
            BEFORE: self.genuine,
            **({AFTER: self.poisoned} if self.malicious else {}),
            PROJECTION: project_simplex(self.poisoned),
            **self.recovered,
        }

    @cached_property
    def rows(self) -> Sequence[Row]:
        """The rows: before and after the attack, then the methods, largest error first."""
        before, *others = self.columns
        groups: list[list[str]] = []
        for name in others:
            twins = (group for group in groups if self._same(group[0], name))
            if (group := next(twins, None)) is None:
                groups.append([name])
            else:
                group.append(name)
        rows = [self._row(group) for group in groups]
        rows.sort(key=lambda row: (row.name != AFTER, -row.mse))
        return [self._row([before]), *rows]

    @cached_property
    def helpful(self) -> Sequence[Row]:
        """The methods that do better than the projection, best first."""
        methods = [row for row in reversed(self.rows) if row.name in self.recovered]
        return [row for row in methods if row.times is None or row.times >= HELPS]

    @property
    def headline(self) -> str:
        """The verdict in one sentence or two."""
        if not self.helpful:
            nothing = "No recovery does better than projection alone here."
            return nothing if self._does_harm else self._harmless
        best, *others = self.helpful
        better = f"{times(best.times)} times better than projection alone."
        if not self._does_harm:
            return f"{self._harmless} {sentence(best.name)} is {better}"
        method = best.name.removesuffix(TOLD)
        rivals = [row for row in others if row.name.removesuffix(TOLD) != method]
        second = [f"{sentence(row.name)}: {times(row.times)} times." for row in rivals[:1]]
        return " ".join([f"{sentence(best.name)} wins: {better}", *second])

    @property
    def details(self) -> Sequence[str]:
        """Sentences on the attack, on the error that remains, and on methods that do not help."""
        by_name = {name: row for row in self.rows for name in row.names}
        details = []
        if self.malicious:
            row = by_name[AFTER]
            moved = ""
            if self._subject and row.gain is not None:
                verb = "raised" if row.gain >= 0 else "lowered"
                moved = f", and {verb} the {self._subject} by {points(row.gain)}"
            details.append(f"The attack made the error {times(row.harm)} times as large{moved}.")
        for name in [PROJECTION, *(row.name for row in self.helpful[:1])]:
            row = by_name[name]
            off = ""
            if self._subject and row.excess is not None:
                where = "high" if row.excess >= 0 else "low"
                off = f", and the {self._subject} {points(row.excess)} too {where}"
            error = f"{times(row.harm)} times the error before the attack"
            details.append(f"{sentence(name)} leaves {error}{off}.")
        helpful = {name for row in self.helpful for name in row.names}
        if useless := [name for name in by_name if name in self.recovered and name not in helpful]:
            details.append(f"No better than projection alone: {listed(useless)}.")
        if self.malicious and method_words("ldprecover") in useless:
            details.append(_ALONE)
        return details

    def as_json(self) -> dict[str, Any]:
        """Return the verdict, the indices of the targets, and frequencies by item.

        `recovered` are those of the method that does best, and `best` names it, as a sentence
        begins. Both are None if no method does better than the projection.
        """
        best = self.helpful[0].name if self.helpful else None
        return {
            "headline": self.headline,
            "details": self.details,
            "targets": list(self.targets or ()),
            "truth": self.true.tolist(),
            "genuine": self.genuine.tolist(),
            "poisoned": self.poisoned.tolist(),
            "recovered": best and self.recovered[best].tolist(),
            "best": best and sentence(best),
        }

    @property
    def _does_harm(self) -> bool:
        after = next((row for row in self.rows if row.name == AFTER), None)
        if after is None:
            return False
        return after.harm is None or after.harm >= _HARM or abs(after.gain or 0.0) >= _GAIN

    @property
    def _harmless(self) -> str:
        return "The attack did no harm here." if self.malicious else "Nobody attacked."

    @property
    def _subject(self) -> str:
        """The targets as a phrase; empty without targets or attack."""
        if self.targets is None or not self.malicious:
            return ""
        return "target" if len(self.targets) == 1 else f"{len(self.targets):,} targets together"

    def _same(self, name: str, other: str) -> bool:
        estimate = self.columns[name]
        distance = np.linalg.norm(estimate - self.columns[other])
        return bool(distance <= _SAME * np.linalg.norm(estimate - self.true))

    def _row(self, names: Sequence[str]) -> Row:
        mse, gain = self._errors(names[0])
        before, beside = (self._errors(name)[0] for name in (BEFORE, PROJECTION))
        above = self.columns[names[0]] - self.true
        return Row(
            names=tuple(names),
            mse=mse,
            harm=mse / before if before else None,
            gain=gain,
            excess=None if self.targets is None else float(above[list(self.targets)].sum()),
            times=beside / mse if mse and names[0] not in (BEFORE, AFTER) else None,
        )

    def _errors(self, name: str) -> tuple[float, float | None]:
        return errors(self.columns[name], self.true, self.genuine, self.targets)
