"""Figures of the paper's experiments and of a study.

The files are PNG and SVG; equal means give equal bytes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import cycle, product
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldprecover import ParameterError
from ldprecover_experiments.simulation.drawing import bars, grid, legend, plain_label
from ldprecover_experiments.studies.cell_file import replaced
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.paper import EXPERIMENTS, METHODS, PROTOCOLS
from ldprecover_experiments.studies.tables import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {"beta": "β", "epsilon": "ε", "eta": "η", "xi": "ξ", "questions": "k"}
_LOOK: dict[Any, Any] = {
    "svg.hashsalt": "ldprecover",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "legend.fontsize": 8.0,
}

Panel = tuple[str, Sequence[Cell], Sequence[str]]
"""A title, the settings, and the parameters that vary among them."""

Looks = Mapping[str, Mapping[str, str]]
"""Name of a method -> its label, and its colour if any."""


def draw_figures(names: Sequence[str], data: Sequence[str], summary: Summary, folder: Path) -> None:
    """Draw the figures of the named experiments into a folder."""
    import matplotlib as mpl

    with mpl.rc_context(_LOOK):
        for name, figure in _figures(names, data, summary):
            for suffix, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
                picture = BytesIO()
                figure.savefig(picture, format=suffix, **options)
                replaced(folder / f"{name}.{suffix}", picture.getvalue())


def _figures(
    names: Sequence[str], data: Sequence[str], summary: Summary
) -> Iterator[tuple[str, "Figure"]]:
    sweeps = []
    for name in names:
        experiment = EXPERIMENTS[name]
        looks = {method: METHODS[method] for method in experiment.figure_methods}
        varied = [experiment.varied] if experiment.varied else []
        if name.startswith("sweep-"):
            sweeps.append(experiment)
        elif looks:
            cells = [cell for source in data for cell in experiment.cells(source, 1)]
            yield name, _figure(_by_data(cells, varied), summary, looks, experiment.number)
    for source, attack in product(data, ("aa-peaked", "aa-diffuse")) if sweeps else ():
        rows = [
            [
                (
                    f"{plain_label(source)}, {protocol.upper()}, {attack}",
                    [
                        cell
                        for cell in sweep.cells(source, 1)
                        if (cell.protocol, str(cell.attack)) == (protocol, attack)
                    ],
                    [str(sweep.varied)],
                )
                for sweep in sweeps
            ]
            for protocol in PROTOCOLS
        ]
        name = f"sweeps-{re.sub(r'[^A-Za-z0-9]+', '-', source)}-{attack}"
        looks = {method: METHODS[method] for method in sweeps[0].figure_methods}
        yield name, _figure(rows, summary, looks, "mse")


def draw_results(means: Summary, parameters: Sequence[str], number: str) -> "Figure":
    """Return the figure of a study in which these parameters vary.

    It has a panel for each data set, protocol and value of all varied parameters but the one with
    most values, over which there are lines; without any, a group of bars for each setting.
    `number` is "mse" or "fg". Raises ParameterError, and ExperimentError without matplotlib.
    """
    if number not in ("mse", "fg"):
        raise ParameterError(f'number must be "mse" or "fg", not {number!r}')
    varied = [key for key in parameters if key in AXES]
    looks = {name: {"label": name} for by_method in means.values() for name in by_method}
    return _figure(_by_data(means, varied), means, looks, number)


def _by_data(cells: Iterable[Cell], varied: Sequence[str]) -> list[list[Panel]]:
    """Return a panel for each protocol in a row for each data set and value of what varies, but for
    the parameter with most values.
    """
    cells = list(cells)
    by_size = sorted(varied, key=lambda key: len({getattr(cell, key) for cell in cells}))
    split = ("data", *by_size[:-1])
    protocols = dict.fromkeys(cell.protocol for cell in cells)
    rows = dict.fromkeys(tuple(getattr(cell, key) for key in split) for cell in cells)
    return [
        [
            (
                ", ".join(
                    [plain_label(source), protocol.upper()]
                    + [
                        f"{AXES[key]} {value:g}"
                        for key, value in zip(split[1:], values, strict=True)
                    ]
                ),
                [
                    cell
                    for cell in cells
                    if (cell.protocol, *(getattr(cell, key) for key in split))
                    == (protocol, source, *values)
                ],
                by_size[-1:],
            )
            for protocol in protocols
        ]
        for source, *values in rows
    ]


def _figure(rows: Sequence[Sequence[Panel]], means: Summary, looks: Looks, number: str) -> "Figure":
    figure, axes = grid(len(rows), len(rows[0]))
    for row, panels in zip(axes, rows, strict=True):
        row[0].set_ylabel(number.split("_")[-1].upper())
        for panel, (title, cells, varied) in zip(row, panels, strict=True):
            panel.set_title(title)
            draw = _draw_lines if len(varied) == 1 else _draw_bars
            draw(panel, cells, varied, looks, _heights(means, cells, looks, number))
            if number == "fg":
                panel.set_yscale("symlog", linthresh=0.1)
                panel.axhline(0, color="black", linewidth=0.6)
            else:
                panel.set_yscale("log")
    legend(figure)
    return figure


def _draw_lines(
    panel: "Axes",
    cells: Sequence[Cell],
    varied: Sequence[str],
    looks: Looks,
    heights: Mapping[str, Sequence[float]],
) -> None:
    attacks = dict.fromkeys(cell.label for cell in cells)
    for attack, style in zip(attacks, cycle(("-", "--", ":")), strict=False):
        line = [i for i, cell in enumerate(cells) if cell.label == attack]
        x = [getattr(cells[i], varied[0]) for i in line]
        for number, (method, look) in enumerate(looks.items()):
            y = [heights[method][i] for i in line]
            label = plain_label(", ".join([look["label"], attack][: len(attacks)]))
            colour = look.get("colour", f"C{number}")
            panel.plot(x, y, style, label=label, color=colour, marker=".", linewidth=1)
    panel.set_xlabel(AXES[varied[0]])


def _draw_bars(
    panel: "Axes",
    cells: Sequence[Cell],
    varied: Sequence[str],
    looks: Looks,
    heights: Mapping[str, Sequence[float]],
) -> None:
    ticks = [
        ", ".join([cell.label, *(f"{AXES[key]} {getattr(cell, key):g}" for key in varied)])
        for cell in cells
    ]
    plotted = [method for method in looks if not all(map(isnan, heights[method]))]
    series = {plain_label(looks[method]["label"]): heights[method] for method in plotted}
    colours = [looks[method].get("colour") for method in plotted]
    text: dict[str, Any] = {"rotation": 30, "ha": "right", "fontsize": 6}
    bars(panel, list(map(plain_label, ticks)), series, colours, **text)


def _heights(
    means: Summary, cells: Sequence[Cell], methods: Iterable[str], number: str
) -> dict[str, list[float]]:
    """Return the mean of each method in each setting, NaN if it has none."""
    heights: dict[str, list[float]] = {}
    for method in methods:
        values = (getattr(means.get(cell, {}).get(method), number, None) for cell in cells)
        heights[method] = [nan if value is None else float(value) for value in values]
    return heights
