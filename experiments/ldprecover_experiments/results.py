"""What came out of a study: each cell with what every method made of it; as JSON, data frame, table and picture."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from math import isnan, nan
from typing import TYPE_CHECKING, Any, Self

from ldprecover import ParameterError
from ldprecover_experiments.measures import Outcome
from ldprecover_experiments.setting import Cell
from ldprecover_experiments.tables import Mean, Summary, Table, frame, shown, summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Results"]

_VARIED = ("data", "protocol", "epsilon", "beta", "eta")


@dataclass(frozen=True, eq=False)
class Results:
    """The cells of a study, in its order, and the outcomes of each, one a method in the methods' order."""

    name: str
    cells: Mapping[Cell, Sequence[Outcome]]

    @cached_property
    def means(self) -> Summary:
        """The means over the trials, by setting and method."""
        return summarise(self.cells)

    @property
    def methods(self) -> list[str]:
        """The names of the methods, in order."""
        return list(dict.fromkeys(outcome.method for outcome in self.outcomes))

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of all cells, in order."""
        return [outcome for outcomes in self.cells.values() for outcome in outcomes]

    def to_json(self) -> str:
        """Return the results as one JSON object; what a method refuses is null."""
        rows = [
            asdict(cell) | {"outcomes": [asdict(o) | {"mse": None if isnan(o.mse) else o.mse} for o in outcomes]}
            for cell, outcomes in self.cells.items()
        ]
        return json.dumps({"name": self.name, "cells": rows}, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return what `to_json` wrote. Raises ParameterError for anything else."""
        try:
            given = json.loads(text)
            cells = {
                Cell(**{each.name: row[each.name] for each in fields(Cell)}): [
                    Outcome(**o | {"mse": nan if o["mse"] is None else o["mse"]}) for o in row["outcomes"]
                ]
                for row in given["cells"]
            }
            return cls(given["name"], cells)
        except (ValueError, KeyError, TypeError) as error:
            raise ParameterError(f"these are no results of a study: {error}") from error

    def to_frame(self) -> Any:
        """Return a data frame of pandas, a row for each cell and method. Raises ExperimentError without pandas."""
        rows = [asdict(cell) | asdict(outcome) for cell, outcomes in self.cells.items() for outcome in outcomes]
        return frame({name: [row[name] for row in rows] for name in (rows[0] if rows else {})})

    def table(self, *, gains: bool = False) -> Table:
        """Return the mean errors, or frequency gains, of every method: a row for each setting.

        A parameter that is the same wherever there is an attack has no column; without targets there are no gains.
        """
        settings = {group: Cell(*group) for group in self.means}  # type: ignore[arg-type]
        if gains:
            settings = {
                g: cell for g, cell in settings.items() if any(m.fg is not None for m in self.means[g].values())
            }
        attacked = [cell for cell in settings.values() if cell.attack != "none"] or list(settings.values())
        varied = [key for key in _VARIED if len({getattr(cell, key) for cell in attacked}) > 1]
        rows = [
            [_text(getattr(cell, key)) for key in varied]
            + [cell.label]
            + [shown(self.means[group].get(method), gains=gains) for method in self.methods]
            for group, cell in settings.items()
        ]
        title = f"{self.name}: {'FG' if gains else 'MSE'}, {self._constant(attacked, varied)}"
        return Table((*varied, "attack", *self.methods), rows, title, len(self.methods))

    def plot(self, number: str = "mse") -> "Figure":
        """Return a figure of matplotlib: a panel for each data set and protocol, a line or bars for each method.

        `number` is "mse" or "fg". Raises ExperimentError without matplotlib.
        """
        from ldprecover_experiments.figures import draw_results

        return draw_results(self, number)

    def _repr_html_(self) -> str:
        tables = [self.table()]
        if any(outcome.fg is not None for outcome in self.outcomes):
            tables.append(self.table(gains=True))
        return "".join(table._repr_html_() for table in tables)

    def mean(self, cell: Cell, method: str) -> Mean | None:
        """Return the means of a method in a cell's setting."""
        return self.means.get(cell.group, {}).get(method)

    def _constant(self, cells: Sequence[Cell], varied: Sequence[str]) -> str:
        said = [f"{key} {_text(getattr(cells[0], key))}" for key in _VARIED if cells and key not in varied]
        trials = {mean.trials for methods in self.means.values() for mean in methods.values()}
        return ", ".join([*said, f"{max(trials, default=0)} trial{'' if trials == {1} else 's'}"])


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
