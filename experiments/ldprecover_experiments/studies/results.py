"""The results of a study, as JSON, CSV, data frame, table and picture."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from io import StringIO
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter

from ldprecover import ParameterError
from ldprecover.sentences import counted
from ldprecover_experiments.simulation.tables import TextTable
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.figures import Looks, draw_heights
from ldprecover_experiments.studies.measures import MethodOutcome
from ldprecover_experiments.studies.rows import CellRow
from ldprecover_interface.notebook import data_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VARIED = ("data", "protocol", "epsilon", "beta", "eta", "questions", "xi")
_UNSTATED = {"questions": 1, "xi": 0.0}
"""Values of parameters that titles leave out."""


@dataclass(frozen=True, kw_only=True)
class MeanOutcome:
    """Means over the trials of one method in one setting.

    `mse_sd` is the standard deviation between trials and `mse_se` the standard error of the mean,
    None for one trial.
    """

    trials: int
    mse: float
    mse_sd: float | None
    fg: float | None
    malicious_mse: float | None
    mse_se: float | None

    @classmethod
    def of(cls, outcomes: Sequence[MethodOutcome]) -> MeanOutcome:
        """Return the means of one method's outcomes."""
        errors = [outcome.mse for outcome in outcomes]
        trials = len(errors)
        sd = float(np.std(errors, ddof=1)) if trials > 1 else None
        return cls(
            trials=trials,
            mse=float(np.mean(errors)),
            mse_sd=sd,
            fg=_mean(outcome.fg for outcome in outcomes),
            malicious_mse=_mean(outcome.malicious_mse for outcome in outcomes),
            mse_se=None if sd is None else sd / trials**0.5,
        )


def _mean(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None


@dataclass(frozen=True, eq=False)
class Results:
    """The cells of a study in order, at least one, each with one outcome for each method."""

    name: str
    cells: Annotated[Sequence[CellRow], Field(min_length=1)]

    def __repr__(self) -> str:
        return f"Results({self.name}, {len(self.cells):,} cells, methods {', '.join(self.methods)})"

    @cached_property
    def means(self) -> Mapping[Cell, Mapping[str, MeanOutcome]]:
        """The means over the trials, by setting and method."""
        outcomes: dict[Cell, dict[str, list[MethodOutcome]]] = {}
        for row in self.cells:
            by_method = outcomes.setdefault(row.cell.setting, {})
            for outcome in row.outcomes:
                by_method.setdefault(outcome.method, []).append(outcome)
        return {
            setting: {name: MeanOutcome.of(each) for name, each in by_method.items()}
            for setting, by_method in outcomes.items()
        }

    @property
    def varied(self) -> list[str]:
        """The parameters that vary among the cells with an attack."""
        return [key for key in _VARIED if len({getattr(cell, key) for cell in self._attacked}) > 1]

    @property
    def methods(self) -> list[str]:
        """The names of the methods, in order."""
        return list(dict.fromkeys(outcome.method for outcome in self.outcomes))

    @property
    def outcomes(self) -> list[MethodOutcome]:
        """The outcomes of all cells, in order."""
        return [outcome for row in self.cells for outcome in row.outcomes]

    @property
    def refusals(self) -> dict[tuple[str, str], int]:
        """The number of cells by method and reason of its refusal or failure."""
        return Counter(
            (each.method, each.refused) for each in self.outcomes if each.refused is not None
        )

    def to_json(self) -> str:
        """Return the results as one JSON object; the error of a method that refuses is null."""
        return _JSON.dump_json(self, exclude_none=True).decode()

    @staticmethod
    def from_json(text: str | bytes) -> Results:
        """Return what `to_json` wrote. Raises ParameterError for anything else."""
        try:
            return _JSON.validate_json(text)
        except ValueError as error:
            raise ParameterError(f"these are not the results of a study: {error}") from error

    def to_csv(self) -> str:
        """Return the means as CSV: a row for each setting and method, four significant digits."""
        text = StringIO()
        writer = csv.DictWriter(text, list(self._mean_records[0]), lineterminator="\n")
        writer.writeheader()
        for record in self._mean_records:
            writer.writerow(
                {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in record.items()}
            )
        return text.getvalue()

    def to_frame(self, *, means: bool = False) -> Any:
        """Return a pandas data frame with a row for each cell and method.

        Its columns are the fields of Cell and MethodOutcome, and the model of the attack. With
        `means` it has a row for each setting and method: the number of trials, the means over them
        of `mse`, `fg` and `malicious_mse`, and of `mse` the standard deviation between trials
        `mse_sd` and the standard error of the mean `mse_se`, None for one trial. Raises ImportError
        without pandas.
        """
        records = self._mean_records if means else self._records
        return data_frame({name: [record[name] for record in records] for name in records[0]})

    def table(self, *, gains: bool = False, headers: Mapping[str, str] | None = None) -> TextTable:
        """Return the mean errors, or frequency gains, of every method: a row for each setting.

        Only parameters that vary have a column. Settings without targets have no gains. `headers`
        are those of the methods to show, by default of all their names.
        """
        headers = headers or {method: method for method in self.methods}
        varied = self.varied
        rows = []
        for cell, means in self.means.items():
            if gains and all(mean.fg is None for mean in means.values()):
                continue
            row = [*(_shown_parameter(getattr(cell, key)) for key in varied), cell.label]
            rows.append([*row, *(_shown(means.get(method), gains=gains) for method in headers)])
        title = f"{self.name}: {'FG' if gains else 'MSE'}, {self._constant}"
        return TextTable((*varied, "attack", *headers.values()), rows, title, len(headers))

    def plot(self, number: str = "mse", *, looks: Looks | None = None) -> Figure:
        """Return a matplotlib figure: a panel for each data set, protocol and parameter but one.

        `number` is "mse", "fg" or "malicious_mse"; `looks` are those of the methods to draw, by
        default of all. Raises ExperimentError without matplotlib.
        """
        if number not in ("mse", "fg", "malicious_mse"):
            raise ParameterError(f"number must be mse, fg or malicious_mse, not {number!r}")
        heights = {
            cell: {method: getattr(mean, number) for method, mean in means.items()}
            for cell, means in self.means.items()
        }
        looks = looks or {method: {} for method in self.methods}
        return draw_heights(heights, self.varied, number, looks)

    @property
    def tables(self) -> list[TextTable]:
        """The table of errors, and with targets that of gains."""
        tables = [self.table()]
        if any(outcome.fg is not None for outcome in self.outcomes):
            tables.append(self.table(gains=True))
        return tables

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables)

    @property
    def _records(self) -> list[dict[str, Any]]:
        return [
            row.cell.columns | asdict(outcome) for row in self.cells for outcome in row.outcomes
        ]

    @cached_property
    def _mean_records(self) -> list[dict[str, Any]]:
        records = []
        for cell, by_method in self.means.items():
            setting = cell.columns
            del setting["trial"]
            for method, mean in by_method.items():
                records.append(setting | {"method": method} | asdict(mean))
        return records

    @property
    def _attacked(self) -> list[Cell]:
        return [cell for cell in self.means if cell.attack.malicious] or list(self.means)

    @property
    def _constant(self) -> str:
        """The parameters that do not vary, and the number of trials, as text."""
        first = self._attacked[0]
        parts = [
            f"{key} {_shown_parameter(getattr(first, key))}"
            for key in _VARIED
            if key not in self.varied and getattr(first, key) != _UNSTATED.get(key)
        ]
        trials = len({row.cell.trial for row in self.cells})
        return ", ".join([*parts, counted(trials, "trial")])


_JSON = TypeAdapter(Results)


def _shown(mean: MeanOutcome | None, *, gains: bool) -> str:
    """Return the mean error, or gain, as text; empty without a mean.

    An error has two digits, so that tables fit 80 columns.
    """
    if mean is None:
        return ""
    if gains:
        return "" if mean.fg is None else f"{round(mean.fg, 2) + 0.0:.2f}"
    return "refused" if isnan(mean.mse) else re.sub("e-0?", "e-", f"{mean.mse:.1e}")


def _shown_parameter(value: object) -> str:
    """Return a parameter as text, a number without trailing zeros."""
    return f"{value:g}" if isinstance(value, float) else str(value)
