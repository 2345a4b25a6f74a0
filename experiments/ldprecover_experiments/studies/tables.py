"""Tables of strings in Markdown or HTML, and the paper's tables of means over the trials."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldprecover_client.notebook import data_frame, html_table
from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.studies.measures import Outcome
from ldprecover_experiments.studies.paper import METHODS, Experiment
from ldprecover_experiments.studies.parameters import Cell
from ldprecover_experiments.studies.run_file import csv_line

COLUMNS = (
    *("data", "protocol", "attack", "model", "beta", "epsilon", "eta", "xi", "method", "trials"),
    *("mse", "mse_sd", "fg", "malicious_mse"),
)
"""Columns of summary.csv; `mse_sd` is the standard deviation over trials, empty for one."""


@dataclass(frozen=True)
class Table:
    """A header and rows of strings; the last `numbers` columns are numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    numbers: int = 0

    def markdown(self) -> str:
        """Return the lines of the table, without the title."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return html_table(self.columns, self.rows, self.title)


def frame(columns: Mapping[str, Any], index: Sequence[str] | None = None) -> Any:
    """Return columns as a pandas data frame. Raises ExperimentError without pandas."""
    try:
        return data_frame(columns, index)
    except ImportError as error:
        raise ExperimentError(str(error)) from error


@dataclass(frozen=True)
class Mean:
    """Means over the trials of one method in one setting."""

    trials: int
    mse: float
    mse_sd: float | None
    fg: float | None
    malicious_mse: float | None


Summary = Mapping[Cell, Mapping[str, Mean]]
"""A setting -> method -> means."""


def summarise(cells: Mapping[Cell, Sequence[Outcome]]) -> Summary:
    """Return the means over each setting's trials."""
    trials: dict[Cell, dict[str, list[Outcome]]] = {}
    for cell, outcomes in cells.items():
        by_method = trials.setdefault(cell.setting, {})
        for outcome in outcomes:
            by_method.setdefault(outcome.method, []).append(outcome)
    return {
        setting: {name: _mean(each) for name, each in methods.items()}
        for setting, methods in trials.items()
    }


def summary_csv(summary: Summary) -> str:
    """Return the means as CSV text, four significant digits."""
    lines = [csv_line(COLUMNS)]
    for cell, methods in summary.items():
        *parameters, _ = map(shown_parameter, cell.columns.values())
        for name, mean in methods.items():
            numbers = (mean.mse, mean.mse_sd, mean.fg, mean.malicious_mse)
            digits = [None if value is None else f"{value:.4g}" for value in numbers]
            lines.append(csv_line((*parameters, name, mean.trials, *digits)))
    return "".join(lines)


def tables(experiment: Experiment, data: Iterable[str], summary: Summary) -> Iterator[Table]:
    """Yield the table of an experiment for each data set, with the cells that were run."""
    gains = experiment.number == "fg"
    for name in data:
        cells = [cell for cell in experiment.cells(name, 1) if cell in summary]
        present = [m for m in experiment.columns if any(m in summary[cell] for cell in cells)]
        varied = [experiment.varied] if experiment.varied else []
        rows = []
        for cell in cells:
            means = summary[cell]
            row = [f"{cell.protocol} {cell.label}", *(f"{getattr(cell, key):g}" for key in varied)]
            rows.append([*row, *(shown(means.get(method), gains=gains) for method in present)])
        headers = {m: each.get("header", each["label"]) for m, each in METHODS.items()}
        headers |= experiment.headers
        yield Table(
            ("attack", *varied, *(headers[method] for method in present)),
            rows,
            f"{experiment.name} ({experiment.where}): {experiment.shows}; {name}, "
            f"{'FG' if gains else 'MSE'}",
            len(varied) + len(present),
        )


def shown(mean: Mean | None, *, gains: bool = False) -> str:
    """Return the mean error, or gain, as text; empty without a mean."""
    if mean is None:
        return ""
    return shown_gain(mean.fg) if gains else shown_error(mean.mse)


def shown_parameter(value: object) -> str:
    """Return a parameter as text, a number without trailing zeros."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def shown_error(value: float) -> str:
    """Return an error with two digits, so that tables fit 80 columns."""
    return "refused" if np.isnan(value) else re.sub("e-0?", "e-", f"{value:.1e}")


def shown_gain(value: float | None) -> str:
    """Return a frequency gain as text; empty without targets."""
    return "" if value is None else f"{round(value, 2) + 0.0:.2f}"


def _mean(trials: list[Outcome]) -> Mean:
    errors = np.array([outcome.mse for outcome in trials])
    means = {}
    for name in ("fg", "malicious_mse"):
        values = [value for outcome in trials if (value := getattr(outcome, name)) is not None]
        means[name] = float(np.mean(values)) if values else None
    sd = float(errors.std(ddof=1)) if len(trials) > 1 else None
    return Mean(len(trials), float(errors.mean()), sd, **means)
