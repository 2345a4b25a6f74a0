"""Means over the trials, as a file and as tables."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from ldprecover_cli.output import plain, plain_table
from ldprecover_cli.reproduce.cells import Cell
from ldprecover_cli.reproduce.experiments import Experiment
from ldprecover_cli.reproduce.methods import LABELS, Outcome

__all__ = ["COLUMNS", "Mean", "Summary", "label_of", "summarise", "summary_csv", "tables"]

COLUMNS = (
    *("data", "protocol", "attack", "model", "beta", "epsilon", "eta", "xi", "method", "trials"),
    *("mse", "mse_sd", "fg", "malicious_mse"),
)
"""Of the file of means; `mse_sd` is the standard deviation of a trial, empty for one trial."""

_SHOWN = ("poisoned", "norm-sub", "ldprecover", "ldprecover-star", "detection", "detection-projected", "oracle")


_HEADERS = {
    "norm-sub": "Norm-\nSub",
    "ldprecover": "LDP-\nRecover",
    "ldprecover-star": "LDP-\nRecover*",
    "ldprecover-km": "LDP-\nRecover-KM",
    "detection": "Detec-\ntion",
    "detection-projected": "same,\nproj.",
    "k-means-raw": "k-\nmeans",
    "k-means": "same,\nproj.",
}


@dataclass(frozen=True)
class Mean:
    """Means over the trials of one method in one setting."""

    trials: int
    mse: float
    mse_sd: float | None
    fg: float | None
    malicious_mse: float | None


Summary = Mapping[tuple[str | float, ...], Mapping[str, Mean]]
"""A cell's group -> method -> means."""


def summarise(cells: Mapping[Cell, list[Outcome]]) -> Summary:
    """Return the means over each setting's trials."""
    found: dict[tuple[str | float, ...], dict[str, list[Outcome]]] = {}
    for cell, outcomes in cells.items():
        of_group = found.setdefault(cell.group, {})
        for outcome in outcomes:
            of_group.setdefault(outcome.method, []).append(outcome)
    return {group: {name: _mean(trials) for name, trials in methods.items()} for group, methods in found.items()}


def summary_csv(summary: Summary) -> str:
    """Return the means as CSV text, four significant digits."""
    lines = [",".join(COLUMNS)]
    for group, methods in summary.items():
        for name, mean in methods.items():
            numbers = (mean.mse, mean.mse_sd, mean.fg, mean.malicious_mse)
            cells = [
                _quoted(str(group[0])),
                *(f"{value:g}" if isinstance(value, float) else value for value in group[1:]),
            ]
            cells += [name, str(mean.trials), *("" if value is None else f"{value:.4g}" for value in numbers)]
            lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def tables(experiment: Experiment, data: Iterable[str], summary: Summary) -> Iterator[tuple[str, Table]]:
    """Yield title and table of an experiment over each data set, as far as it was run: errors, or gains."""
    gains = experiment.name == "fg"
    for name in data:
        groups = [group for cell in experiment.cells(name, 1) if (group := cell.group) in summary]
        present = [method for method in _shown(experiment) if any(method in summary[group] for group in groups)]
        what = "FG" if gains else "MSE"
        title = plain(f"{experiment.name} ({experiment.where}): {experiment.shows}; {name}, {what}")
        varied = [experiment.varied] if experiment.varied else []
        names = _HEADERS | ({"poisoned": "before"} if experiment.name == "table1" else {})
        headers = [names.get(method, LABELS[method]) for method in present]
        table = plain_table("attack", *varied, *headers, numbers=len(varied) + len(present))
        table.columns[0].no_wrap = True
        for group in groups:
            cell = Cell(*group)  # type: ignore[arg-type]
            means = summary[group]
            row = [f"{getattr(cell, key):g}" for key in varied]
            row += [_shown_number(means.get(method), gains) for method in present]
            table.add_row(f"{cell.protocol} {label_of(cell)}", *row)
        yield title, table


def label_of(cell: Cell) -> str:
    """Return the name of the cell's attack, with its report model where that is not the paper's."""
    plain_name = cell.model in ("one-hot", "none") or cell.attack == "honest"
    return cell.attack if plain_name else f"{cell.attack} ({cell.model})"


def _shown(experiment: Experiment) -> tuple[str, ...]:
    special = {
        "table1": ("poisoned", "norm-sub", "ldprecover", "uniform"),
        "km": ("poisoned", "norm-sub", "k-means-raw", "k-means", "ldprecover-km"),
    }
    return special.get(experiment.name, _SHOWN)


def _shown_number(mean: Mean | None, gains: bool) -> str:
    value = None if mean is None else mean.fg if gains else mean.mse
    if value is None:
        return ""
    # Two digits fit eighty columns; the file has four.
    return f"{round(value, 2) + 0.0:.2f}" if gains else re.sub("e-0?", "e-", f"{value:.1e}")


def _mean(trials: list[Outcome]) -> Mean:
    errors = np.array([outcome.mse for outcome in trials])
    return Mean(
        trials=len(trials),
        mse=float(errors.mean()),
        mse_sd=float(errors.std(ddof=1)) if len(trials) > 1 else None,
        fg=_average([outcome.fg for outcome in trials]),
        malicious_mse=_average([outcome.malicious_mse for outcome in trials]),
    )


def _average(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text
