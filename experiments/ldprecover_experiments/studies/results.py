"""The results of a study, as JSON, data frame, table and picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel

from ldprecover import ParameterError
from ldprecover_experiments.simulation.tables import Table
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.figures import draw_results
from ldprecover_experiments.studies.measures import Outcome
from ldprecover_experiments.studies.tables import (
    Summary,
    shown,
    shown_parameter,
    summarise,
)
from ldprecover_interface.notebook import data_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VARIED = ("data", "protocol", "epsilon", "beta", "eta", "questions")


class _Row(BaseModel):
    cell: Cell
    outcomes: list[Outcome]


class _Document(BaseModel):
    name: str
    cells: list[_Row]


@dataclass(frozen=True, eq=False)
class Results:
    """The cells of a study in order, each with one outcome for each method.

    Raises ParameterError without cells.
    """

    name: str
    cells: Mapping[Cell, Sequence[Outcome]]

    def __post_init__(self) -> None:
        if not self.cells:
            raise ParameterError("results are of at least one cell")

    def __repr__(self) -> str:
        return f"Results({self.name}, {len(self.cells):,} cells, methods {', '.join(self.methods)})"

    @cached_property
    def means(self) -> Summary:
        """The means over the trials, by setting and method."""
        return summarise(self.cells)

    @property
    def varied(self) -> list[str]:
        """The parameters that vary among the cells with an attack."""
        return [key for key in _VARIED if len({getattr(cell, key) for cell in self._attacked}) > 1]

    @property
    def methods(self) -> list[str]:
        """The names of the methods, in order."""
        return list(dict.fromkeys(outcome.method for outcome in self.outcomes))

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of all cells, in order."""
        return [outcome for outcomes in self.cells.values() for outcome in outcomes]

    @property
    def refusals(self) -> dict[tuple[str, str], int]:
        """The number of cells by method and reason of its refusal or failure."""
        return Counter(
            (each.method, each.refused) for each in self.outcomes if each.refused is not None
        )

    def to_json(self) -> str:
        """Return the results as one JSON object; the error of a method that refuses is null."""
        rows = [_Row(cell=cell, outcomes=list(outcomes)) for cell, outcomes in self.cells.items()]
        return _Document(name=self.name, cells=rows).model_dump_json(exclude_none=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return what `to_json` wrote. Raises ParameterError for anything else."""
        try:
            document = _Document.model_validate_json(text)
            return cls(document.name, {row.cell: row.outcomes for row in document.cells})
        except ValueError as error:
            raise ParameterError(f"these are not the results of a study: {error}") from error

    def to_frame(self, *, means: bool = False) -> Any:
        """Return a pandas data frame with a row for each cell and method.

        Its columns are the fields of Cell and Outcome, and the model of the attack. With `means` it
        has a row for each setting and method: the number of trials, the means over them of `mse`,
        `fg` and `malicious_mse`, and of `mse` the standard deviation between trials `mse_sd` and
        the standard error of the mean `mse_se`, None for one trial. Raises ImportError without
        pandas.
        """
        if means:
            averages = [
                cell.columns
                | {"method": method}
                | asdict(mean)
                | {"mse_se": mean.mse_sd and mean.mse_sd / mean.trials**0.5}
                for cell, by_method in self.means.items()
                for method, mean in by_method.items()
            ]
            return data_frame(
                {name: [row[name] for row in averages] for name in averages[0] if name != "trial"}
            )
        rows = [
            cell.columns | asdict(outcome)
            for cell, outcomes in self.cells.items()
            for outcome in outcomes
        ]
        return data_frame({name: [row[name] for row in rows] for name in rows[0]})

    def table(self, *, gains: bool = False) -> Table:
        """Return the mean errors, or frequency gains, of every method: a row for each setting.

        Only parameters that vary have a column. Settings without targets have no gains.
        """
        varied = self.varied
        rows = []
        for cell, means in self.means.items():
            if gains and all(mean.fg is None for mean in means.values()):
                continue
            row = [*(shown_parameter(getattr(cell, key)) for key in varied), cell.label]
            rows.append([*row, *(shown(means.get(method), gains=gains) for method in self.methods)])
        title = f"{self.name}: {'FG' if gains else 'MSE'}, {self._constant}"
        return Table((*varied, "attack", *self.methods), rows, title, len(self.methods))

    def plot(self, number: str = "mse") -> Figure:
        """Return a matplotlib figure: a panel for each data set, protocol and parameter but one.

        `number` is "mse" or "fg". Raises ExperimentError without matplotlib.
        """
        return draw_results(self.means, self.varied, number)

    def _repr_html_(self) -> str:
        tables = [self.table()]
        if any(outcome.fg is not None for outcome in self.outcomes):
            tables.append(self.table(gains=True))
        return "".join(table._repr_html_() for table in tables)

    @property
    def _attacked(self) -> list[Cell]:
        return [cell for cell in self.means if cell.attack.malicious] or list(self.means)

    @property
    def _constant(self) -> str:
        """The parameters that do not vary, and the number of trials, as text."""
        first = self._attacked[0]
        parts = [
            f"{key} {shown_parameter(getattr(first, key))}"
            for key in _VARIED
            if key not in self.varied and (key != "questions" or first.questions > 1)
        ]
        trials = max(mean.trials for methods in self.means.values() for mean in methods.values())
        return ", ".join([*parts, f"{trials} trial{'' if trials == 1 else 's'}"])
