"""Means over the trials, as CSV and as the paper's tables."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from typing import Any

import numpy as np

from ldprecover_experiments.simulation.tables import Table
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.measures import Outcome
from ldprecover_experiments.studies.paper import METHODS, Experiment


@dataclass(frozen=True)
class Mean:
    """Means over the trials of one method in one setting.

    `mse_sd` is the standard deviation, None for one trial.
    """

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
    """Return the means as CSV text: a row for each setting and method, four significant digits."""
    rows = [
        {key: shown_parameter(value) for key, value in cell.columns.items()}
        | {"method": name}
        | {key: f"{value:.4g}" for key, value in asdict(mean).items() if value is not None}
        for cell, methods in summary.items()
        for name, mean in methods.items()
    ]
    text = StringIO()
    columns = [key for key in next(iter(summary)).columns if key != "trial"]
    columns += ["method", *Mean.__annotations__]
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


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
    """Return the mean error, or gain, as text; empty without a mean.

    An error has two digits, so that tables fit 80 columns.
    """
    value = getattr(mean, "fg" if gains else "mse", None)
    if value is None:
        return ""
    if gains:
        return f"{round(value, 2) + 0.0:.2f}"
    return "refused" if np.isnan(value) else re.sub("e-0?", "e-", f"{value:.1e}")


def shown_parameter(value: object) -> str:
    """Return a parameter as text, a number without trailing zeros."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _mean(trials: list[Outcome]) -> Mean:
    means: dict[str, Any] = {}
    for name in ("mse", "fg", "malicious_mse"):
        values = [value for outcome in trials if (value := getattr(outcome, name)) is not None]
        means[name] = float(np.mean(values)) if values else None
    sd = float(np.std([outcome.mse for outcome in trials], ddof=1)) if len(trials) > 1 else None
    return Mean(len(trials), mse_sd=sd, **means)
