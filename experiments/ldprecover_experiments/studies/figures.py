"""The figure of a study."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from ldprecover_experiments.simulation.drawing import bars, grid, legend, plain_label
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.means import Means

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {"beta": "β", "epsilon": "ε", "eta": "η", "xi": "ξ", "questions": "k"}

Looks = Mapping[str, Mapping[str, str]]
"""Name of a method -> its label, by default the name, and its colour, by default the next one."""


def draw_means(means: Means, parameters: Sequence[str], number: str, looks: Looks) -> "Figure":
    """Return the figure of settings among which these parameters vary.

    It has a row for each data set and value of what varies, but for the parameter with most values,
    and in it a panel for each protocol. Over the values of that parameter a panel has lines, one
    for each method and attack; without one a group of bars for each setting. `number` is a field of
    MeanOutcome. Raises ExperimentError without matplotlib.
    """
    varied = [key for key in parameters if key in AXES]
    varied.sort(key=lambda key: len({getattr(cell, key) for cell in means}))
    split, line = varied[:-1], varied[-1:]
    panels: dict[tuple[Any, ...], dict[str, list[Cell]]] = {}
    for cell in means:
        row = (cell.data, *(getattr(cell, key) for key in split))
        panels.setdefault(row, {}).setdefault(cell.protocol, []).append(cell)
    protocols = list(dict.fromkeys(cell.protocol for cell in means))
    figure, axes = grid(len(panels), len(protocols))
    for row_axes, ((data, *values), by_protocol) in zip(axes, panels.items(), strict=True):
        row_axes[0].set_ylabel(number.split("_")[-1].upper())
        for panel, protocol in zip(row_axes, protocols, strict=True):
            stated = [f"{AXES[key]} {value:g}" for key, value in zip(split, values, strict=True)]
            panel.set_title(", ".join([plain_label(data), protocol.upper(), *stated]))
            cells = by_protocol.get(protocol, [])
            heights = {method: _heights(means, cells, method, number) for method in looks}
            if line:
                _draw_lines(panel, cells, line[0], looks, heights)
            else:
                _draw_bars(panel, cells, looks, heights)
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
    parameter: str,
    looks: Looks,
    heights: Mapping[str, Sequence[float]],
) -> None:
    attacks = dict.fromkeys(cell.label for cell in cells)
    for attack, style in zip(attacks, cycle(("-", "--", ":")), strict=False):
        points = [i for i, cell in enumerate(cells) if cell.label == attack]
        x = [getattr(cells[i], parameter) for i in points]
        for number, (method, look) in enumerate(looks.items()):
            y = [heights[method][i] for i in points]
            words = [look.get("label", method), attack][: len(attacks)]
            label = plain_label(", ".join(words))
            colour = look.get("colour", f"C{number}")
            panel.plot(x, y, style, label=label, color=colour, marker=".", linewidth=1)
    panel.set_xlabel(AXES[parameter])


def _draw_bars(
    panel: "Axes", cells: Sequence[Cell], looks: Looks, heights: Mapping[str, Sequence[float]]
) -> None:
    plotted = [method for method in looks if not all(map(isnan, heights[method]))]
    series = {plain_label(looks[each].get("label", each)): heights[each] for each in plotted}
    colours = [looks[each].get("colour") for each in plotted]
    ticks = [plain_label(cell.label) for cell in cells]
    bars(panel, ticks, series, colours, rotation=30, ha="right", fontsize=6)


def _heights(means: Means, cells: Sequence[Cell], method: str, number: str) -> list[float]:
    """Return the mean of a method in each setting, NaN if it has none."""
    values = [getattr(means[cell].get(method), number, None) for cell in cells]
    return [nan if value is None else value for value in values]
