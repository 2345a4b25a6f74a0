"""The results of a study, as JSON, CSV, data frame, table and picture."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter

from ldprecover import ParameterError
from ldprecover.sentences import counted
from ldprecover_experiments.simulation.drawing import has_matplotlib
from ldprecover_experiments.simulation.tables import TextTable
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.figures import AXES, Labels, draw_means, save
from ldprecover_experiments.studies.latex import Mean, latex_means, power_of
from ldprecover_experiments.studies.measures import MethodOutcome
from ldprecover_experiments.studies.records import parsed, write_files
from ldprecover_experiments.studies.rows import CellRow
from ldprecover_interface.csv import to_csv
from ldprecover_interface.notebook import data_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VARIED = ("data", "protocol", *AXES)
_UNSTATED = {"questions": 1, "xi": 0.0}
"""Values of parameters that titles leave out."""

NUMBERS = ("mse", "fg", "malicious_mse")
"""The errors that tables and figures show."""

_REFERENCES = ("genuine", "oracle")
"""Estimates that no recovery can be compared with: only a simulator can make them."""


@dataclass(frozen=True, kw_only=True)
class MeanOutcome:
    """Means over the trials of one method in one setting, of the fields of MethodOutcome.

    A name with `_standard_error` is the standard error of a mean, None for one trial.
    """

    trials: int
    mse: float
    mse_standard_error: float | None
    fg: float | None
    fg_standard_error: float | None
    malicious_mse: float | None
    malicious_mse_standard_error: float | None
    coverage: float | None
    variance: float | None
    attack_probability: float | None

    @classmethod
    def of(cls, outcomes: Sequence[MethodOutcome]) -> MeanOutcome:
        """Return the means of one method's outcomes."""
        means: dict[str, Any] = {}
        for name in (*NUMBERS, "coverage", "variance", "attack_probability"):
            values = [value for each in outcomes if (value := getattr(each, name)) is not None]
            means[name] = float(np.mean(values)) if values else None
            if name in NUMBERS:
                sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
                means[f"{name}_standard_error"] = None if sd is None else sd / len(values) ** 0.5
        return cls(trials=len(outcomes), **means)

    def with_error(self, number: str) -> Mean:
        """Return the mean of one of NUMBERS and its standard error."""
        return getattr(self, number), getattr(self, f"{number}_standard_error")


@dataclass(frozen=True, eq=False)
class Results:
    """The cells of a study in order, at least one, each with one outcome for each method.

    `record` is that of the study.
    """

    name: str
    cells: Annotated[Sequence[CellRow], Field(min_length=1)]
    record: Mapping[str, Any] = field(default_factory=dict)

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
        return parsed(_JSON, text)

    def to_csv(self) -> str:
        """Return the means as CSV: a row for each setting and method."""
        records = self._mean_records
        return to_csv(list(records[0]), (list(record.values()) for record in records)).decode()

    def to_frame(self, *, means: bool = False) -> Any:
        """Return a pandas data frame with a row for each cell and method.

        Its columns are the fields of Cell and MethodOutcome, and the model of the attack. With
        `means` it has a row for each setting and method, with the columns of the CSV: the fields of
        Cell and MeanOutcome. Raises ImportError without pandas.
        """
        records = self._mean_records if means else self._records
        return data_frame({name: [record[name] for record in records] for name in records[0]})

    def table(self, number: str = "mse", *, labels: Labels | None = None) -> TextTable:
        """Return the means of one of NUMBERS: a row for each setting, a column for each method.

        Only parameters that vary have a column. Settings without this number have no row. `labels`
        are those of the methods to show, by default of all their names. Raises ParameterError.
        """
        settings = self._with_error(number)
        labels = labels or {method: method for method in self.methods}
        rows, means = [], []
        for cell, by_method in settings.items():
            parameters = [_shown_parameter(getattr(cell, key)) for key in self.varied]
            means.append([by_method.get(method, (None, None)) for method in labels])
            numbers = [_shown(mean, number) for mean, _ in means[-1]]
            rows.append([*parameters, cell.label, *numbers])
        power = 0 if number == "fg" else power_of(means)
        is_ranked = [method not in _REFERENCES for method in labels]
        name = number.split("_")[-1].upper()
        scale = f" in $10^{{{power}}}$" if power else ""
        return TextTable(
            (*self.varied, "attack", *labels.values()),
            rows,
            f"{self.name}: {name}, {self._constant}",
            len(labels),
            latex_numbers=[latex_means(row, power, is_ranked) for row in means],
            latex_unit=rf"{name}{scale}, mean $\pm$ standard error",
        )

    def plot(
        self, number: str = "mse", *, labels: Labels | None = None, wide: bool = False
    ) -> Figure:
        """Return a matplotlib figure of one of NUMBERS: means as dots, standard errors as lines.

        It is 3.5 inches wide, or 7. There is a panel for each data set, protocol and parameter but
        one. `labels` are as for `table`. Raises ParameterError, and ExperimentError without
        matplotlib.
        """
        labels = labels or {method: method for method in self.methods}
        return draw_means(self._with_error(number), self.varied, number, labels, wide=wide)

    def write(
        self,
        stem: Path,
        numbers: Sequence[str] = ("mse", "fg"),
        *,
        labels: Labels | None = None,
        wide: bool = False,
    ) -> None:
        """Write JSON, CSV, and of each number that is there a table and, with matplotlib, a figure.

        The files are `stem` with .json, .csv, .tex, .pdf and .svg; a second number has its name
        after the stem.
        """
        shown = {
            "" if number == numbers[0] else f"-{number}": number
            for number in numbers
            if self._with_error(number)
        }
        tables = {name: self.table(number, labels=labels) for name, number in shown.items()}
        write_files(stem, self.to_json(), self.to_csv(), tables)
        if has_matplotlib():
            for name, number in shown.items():
                save(self.plot(number, labels=labels, wide=wide), f"{stem}{name}")

    @property
    def tables(self) -> list[TextTable]:
        """The table of errors, and with targets that of gains."""
        return [self.table(number) for number in ("mse", "fg") if self._with_error(number)]

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

    def _with_error(self, number: str) -> dict[Cell, dict[str, Mean]]:
        """Return means and standard errors by setting and method, of settings that have some."""
        if number not in NUMBERS:
            raise ParameterError(f"number must be one of {', '.join(NUMBERS)}, not {number!r}")
        return {
            cell: {method: mean.with_error(number) for method, mean in by_method.items()}
            for cell, by_method in self.means.items()
            if any(getattr(mean, number) is not None for mean in by_method.values())
        }

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


def _shown(mean: float | None, number: str) -> str:
    """Return the mean error, or gain, as text; empty without a mean.

    An error has two digits, so that tables fit 80 columns.
    """
    if mean is None:
        return ""
    if number == "fg":
        return f"{round(mean, 2) + 0.0:.2f}"
    return "refused" if isnan(mean) else re.sub("e-0?", "e-", f"{mean:.1e}")


def _shown_parameter(value: object) -> str:
    """Return a parameter as text, a number without trailing zeros."""
    return f"{value:g}" if isinstance(value, float) else str(value)
