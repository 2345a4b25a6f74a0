"""The score of a drill: the errors of its estimates and recoveries against the truth."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ldprecover import project_simplex
from ldprecover_experiments.measures import errors
from ldprecover_experiments.poisoned_round import Targets, Vector

PROJECTION = "projection alone"
"""The poisoned estimate projected on the simplex (Norm-Sub), the baseline of every method."""

_ALIKE = 0.005
"""Relative difference below which two errors count as equal."""


@dataclass(frozen=True, eq=False)
class Recovered:
    """A method's estimate and notes, or the reason of its refusal."""

    estimate: Vector | None
    notes: tuple[str, ...] = ()
    refused: str | None = None


@dataclass(frozen=True)
class Row:
    """The figures of one estimate.

    `mse` is the error against the truth, `fg` the gain of the targets over the genuine estimate,
    None without targets. `times` is the error of the projection over this one: above 1 this one is
    better. `says` is a sentence with these figures.
    """

    name: str
    mse: float | None
    fg: float | None
    times: float | None
    says: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Score:
    """The estimates of a drill over d items.

    `true` holds the frequencies f_X of the genuine users, `genuine` and `poisoned` the estimates
    before and after the attack, `recovered` the recoveries by name. `targets` are the indices that
    the attack raises, None for an attack without targets.
    """

    items: tuple[str, ...]
    targets: Targets | None
    true: Vector
    genuine: Vector
    poisoned: Vector
    recovered: Mapping[str, Recovered]
    malicious: int
    """Number of malicious users."""

    @cached_property
    def projected(self) -> Vector:
        """The projection of the poisoned estimate on the simplex."""
        return project_simplex(self.poisoned)

    def rows(self) -> Sequence[Row]:
        """Return the rows: genuine, poisoned, projection alone, then each method."""
        floor, before = self._errors(self.genuine), self._errors(self.poisoned)
        attack = (
            "Nobody attacked."
            if not self.malicious
            else f"The attack made the error {_ratio(before[0], floor[0])}."
        )
        own = "Before the attack: what privacy alone costs."
        every = {PROJECTION: Recovered(self.projected), **self.recovered}
        return [
            Row("genuine", *floor, None, own),
            Row("poisoned", *before, None, attack),
            *(self._row(name, each) for name, each in every.items()),
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the rows, and each estimate as a column over the items."""
        estimates = {
            "true": self.true,
            "genuine": self.genuine,
            "poisoned": self.poisoned,
            PROJECTION: self.projected,
            **{name: each.estimate for name, each in self.recovered.items()},
        }
        return {
            "rows": [asdict(row) for row in self.rows()],
            "items": list(self.items),
            "targets": None if self.targets is None else list(self.targets),
            "columns": {name: f.tolist() for name, f in estimates.items() if f is not None},
        }

    def _errors(self, estimate: Vector) -> tuple[float, float | None]:
        return errors(estimate, self.true, self.genuine, self.targets)

    def _row(self, name: str, recovered: Recovered) -> Row:
        if recovered.estimate is None:
            return Row(name, None, None, None, f"It refuses: {recovered.refused}")
        before, beside = (self._errors(f)[0] for f in (self.poisoned, self.projected))
        after, gain = self._errors(recovered.estimate)
        says, times = _left(before, after), None
        if name != PROJECTION:
            times = beside / after if after else None
            says += f" {_beside(beside, after)}"
        return Row(name, after, gain, times, says, recovered.notes)


def _left(before: float, after: float) -> str:
    if after > before:
        return f"It makes the poisoned estimate worse: its error is {_ratio(after, before)}."
    share = 100 * after / before if before else 0.0
    return f"It leaves {share:.3g} % of the poisoned error."


def _beside(projection: float, after: float) -> str:
    if abs(after - projection) <= _ALIKE * projection:
        return "That is what projection alone does: it does not help here."
    if after > projection:
        return f"Projection alone does better: its error is {_ratio(projection, after)}."
    return f"Its error is {_ratio(after, projection)} than that of projection alone."


def _ratio(error: float, other: float) -> str:
    """Return the ratio of two errors as a phrase."""
    if not error or not other:
        return "larger" if error > other else "smaller" if error < other else "the same"
    larger = error >= other
    return f"{max(error, other) / min(error, other):.3g} times {'larger' if larger else 'smaller'}"
