"""Figures of the paper's experiments and of a study.

The files are PNG and SVG; equal means give equal bytes.
"""

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldprecover import ParameterError
from ldprecover_experiments.simulation.drawing import bars, grid, legend, plain_label
from ldprecover_experiments.studies.cell_file import replaced
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.paper import EXPERIMENTS, METHODS, PROTOCOLS, Experiment
from ldprecover_experiments.studies.tables import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {"beta": "β", "epsilon": "ε", "eta": "η", "xi": "ξ"}
_LOOK: dict[Any, Any] = {
    "svg.hashsalt": "ldprecover",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "legend.fontsize": 8.0,
}
_LINE: dict[str, Any] = {"marker": ".", "linewidth": 1}


def draw_figures(names: Sequence[str], data: Sequence[str], summary: Summary, folder: Path) -> None:
    """Draw the figures of the named experiments into a folder."""
    import matplotlib as mpl

    with mpl.rc_context(_LOOK):
        for name, figure in _figures(names, data, summary):
            _save(figure, folder / name)


def _save(figure: "Figure", path: Path) -> None:
    """Write a figure with its legend as PNG and SVG."""
    legend(figure)
    for suffix, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
        picture = BytesIO()
        figure.savefig(picture, format=suffix, **options)
        replaced(path.with_name(f"{path.name}.{suffix}"), picture.getvalue())


def _figures(
    names: Sequence[str], data: Sequence[str], summary: Summary
) -> Iterator[tuple[str, "Figure"]]:
    sweeps = [name for name in names if name.startswith("sweep-")]
    for name in names:
        experiment = EXPERIMENTS[name]
        if name in ("mse", "fg"):
            yield name, _bars(experiment, data, summary)
        elif experiment.varied and name not in sweeps:
            rows = [[(experiment, source, protocol) for protocol in PROTOCOLS] for source in data]
            yield name, _errors(rows, None, summary)
    for source in data if sweeps else ():
        for attack in ("aa-peaked", "aa-diffuse"):
            rows = [[(EXPERIMENTS[each], source, p) for each in sweeps] for p in PROTOCOLS]
            name = f"sweeps-{re.sub(r'[^A-Za-z0-9]+', '-', source)}-{attack}"
            yield name, _errors(rows, attack, summary)


def _errors(
    rows: Sequence[Sequence[tuple[Experiment, str, str]]], attack: str | None, summary: Summary
) -> "Figure":
    """Return a figure of rows of panels, each of an experiment, a data set and a protocol."""
    figure, axes = grid(len(rows), len(rows[0]))
    for row, shown in zip(axes, rows, strict=True):
        for panel, (experiment, source, protocol) in zip(row, shown, strict=True):
            cells = [
                cell
                for cell in experiment.cells(source, 1)
                if cell.protocol == protocol and attack in (None, str(cell.attack))
            ]
            _draw(panel, experiment, cells, summary)
            title = [plain_label(source), protocol.upper(), *([attack] if attack else [])]
            panel.set_title(", ".join(title))
        row[0].set_ylabel("MSE")
    return figure


def _draw(panel: "Axes", experiment: Experiment, cells: Sequence[Cell], summary: Summary) -> None:
    assert experiment.varied is not None, experiment.name
    labels = dict.fromkeys(cell.label for cell in cells)
    for label, style in zip(labels, ("-", "--", ":"), strict=False):
        line = [cell for cell in cells if cell.label == label]
        x = [getattr(cell, experiment.varied) for cell in line]
        for method in experiment.figure_methods:
            heights = _heights(summary, line, method, experiment.number)
            if points := [point for point in zip(x, heights, strict=True) if not isnan(point[1])]:
                name, colour = METHODS[method]["label"], METHODS[method]["colour"]
                name = f"{name}, {label}" if len(labels) > 1 else name
                panel.plot(*zip(*points, strict=True), style, label=name, color=colour, **_LINE)
    panel.set_yscale("log")
    panel.set_xlabel(AXES[experiment.varied])


def _by_data(
    data: Sequence[str], protocols: Sequence[str]
) -> tuple["Figure", list[tuple["Axes", str, str]]]:
    """Return a figure, and its panels with their data sets and protocols, which are the titles."""
    figure, axes = grid(len(data), len(protocols), width=4.0)
    panels = [
        (panel, source, protocol)
        for row, source in zip(axes, data, strict=True)
        for panel, protocol in zip(row, protocols, strict=True)
    ]
    for panel, source, protocol in panels:
        panel.set_title(f"{plain_label(source)}, {protocol.upper()}")
    return figure, panels


def _bars(experiment: Experiment, data: Sequence[str], summary: Summary) -> "Figure":
    figure, panels = _by_data(data, PROTOCOLS)
    number = experiment.number
    for panel, source, protocol in panels:
        cells = [cell for cell in experiment.cells(source, 1) if cell.protocol == protocol]
        heights = {m: _heights(summary, cells, m, number) for m in experiment.figure_methods}
        shown = {m: values for m, values in heights.items() if not all(map(isnan, values))}
        bars(
            panel,
            [re.sub("[ -]", "\n", cell.label) for cell in cells],
            {METHODS[method]["label"]: values for method, values in shown.items()},
            [METHODS[method]["colour"] for method in shown],
            fontsize=6,
        )
        if number == "mse":
            panel.set_yscale("log")
        else:
            panel.set_yscale("symlog", linthresh=0.1)
            panel.axhline(0, color="black", linewidth=0.6)
        if protocol == PROTOCOLS[0]:
            panel.set_ylabel(number.upper())
    return figure


def draw_results(means: Summary, parameters: Sequence[str], number: str) -> "Figure":
    """Return the figure of a study in which these parameters vary.

    It has a panel for each data set and protocol. One varied parameter gives lines; several, or
    none, give a group of bars for each setting. `number` is "mse" or "fg". Raises ParameterError,
    and ExperimentError without matplotlib.
    """
    if number not in ("mse", "fg"):
        raise ParameterError(f'number must be "mse" or "fg", not {number!r}')
    data, protocols = (
        list(dict.fromkeys(getattr(cell, key) for cell in means)) for key in ("data", "protocol")
    )
    varied = [key for key in parameters if key in AXES]
    methods = list(dict.fromkeys(name for by_method in means.values() for name in by_method))
    figure, panels = _by_data(data, protocols)
    for panel, source, protocol in panels:
        cells = [cell for cell in means if (cell.data, cell.protocol) == (source, protocol)]
        if len(varied) == 1:
            for attack in dict.fromkeys(cell.label for cell in cells):
                line = [cell for cell in cells if cell.label == attack]
                x = [getattr(cell, varied[0]) for cell in line]
                for m in methods:
                    heights = _heights(means, line, m, number)
                    panel.plot(x, heights, marker=".", label=plain_label(f"{m}, {attack}"))
            panel.set_xlabel(AXES[varied[0]])
        else:
            ticks = [
                plain_label(
                    ", ".join([c.label, *(f"{AXES[key]} {getattr(c, key):g}" for key in varied)])
                )
                for c in cells
            ]
            series = {plain_label(m): _heights(means, cells, m, number) for m in methods}
            bars(panel, ticks, series, rotation=30, ha="right", fontsize=6)
        panel.set_ylabel(number.upper())
        if number == "mse":
            panel.set_yscale("log")
        else:
            panel.axhline(0, color="black", linewidth=0.6)
    legend(figure)
    return figure


def _heights(means: Summary, cells: Sequence[Cell], method: str, number: str) -> list[float]:
    """Return the mean of a method in each setting, NaN if it has none."""
    values = (getattr(means.get(cell, {}).get(method), number, None) for cell in cells)
    return [nan if value is None else float(value) for value in values]
