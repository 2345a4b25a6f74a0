"""The figure of a study."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from ldprecover_experiments.simulation.drawing import bars, grid, legend, plain_label
from ldprecover_experiments.studies.cells import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {"beta": "β", "epsilon": "ε", "eta": "η", "xi": "ξ", "questions": "k"}

Looks = Mapping[str, Mapping[str, str]]
"""Name of a method -> its label, by default the name, and its colour, by default the next one."""


Heights = Mapping[Cell, Mapping[str, float | None]]
"""A setting -> method -> what the figure shows of it."""


def draw_heights(
    heights: Heights, parameters: Sequence[str], number: str, looks: Looks
) -> "Figure":
    """Return the figure of a number in settings among which these parameters vary.

    It has a row for each data set and value of what varies, but for the parameter with most values,
    and in it a panel for each protocol. Over the values of that parameter a panel has lines, one
    for each method and attack; without one a group of bars for each setting. Raises
    ExperimentError without matplotlib.
    """
    varied = [key for key in parameters if key in AXES]
    varied.sort(key=lambda key: len({getattr(cell, key) for cell in heights}))
    split, line = varied[:-1], varied[-1:]
    panels: dict[tuple[Any, ...], dict[str, list[Cell]]] = {}
    for cell in heights:
        row = (cell.data, *(getattr(cell, key) for key in split))
        panels.setdefault(row, {}).setdefault(cell.protocol, []).append(cell)
    protocols = list(dict.fromkeys(cell.protocol for cell in heights))
    figure, axes = grid(len(panels), len(protocols))
    for row_axes, ((data, *values), by_protocol) in zip(axes, panels.items(), strict=True):
        row_axes[0].set_ylabel(number.split("_")[-1].upper())
        for panel, protocol in zip(row_axes, protocols, strict=True):
            stated = [f"{AXES[key]} {value:g}" for key, value in zip(split, values, strict=True)]
            panel.set_title(", ".join([plain_label(data), protocol.upper(), *stated]))
            shown = {cell: heights[cell] for cell in by_protocol.get(protocol, [])}
            if line:
                _draw_lines(panel, shown, line[0], looks)
            else:
                _draw_bars(panel, shown, looks)
            if number == "fg":
                panel.set_yscale("symlog", linthresh=0.1)
                panel.axhline(0, color="black", linewidth=0.6)
            else:
                panel.set_yscale("log")
    legend(figure)
    return figure


def _draw_lines(panel: "Axes", heights: Heights, parameter: str, looks: Looks) -> None:
    attacks = dict.fromkeys(cell.label for cell in heights)
    for attack, style in zip(attacks, cycle(("-", "--", ":")), strict=False):
        points = {cell: each for cell, each in heights.items() if cell.label == attack}
        x = [getattr(cell, parameter) for cell in points]
        for number, (method, look) in enumerate(looks.items()):
            words = [look.get("label", method), attack][: len(attacks)]
            label = plain_label(", ".join(words))
            colour = look.get("colour", f"C{number}")
            y = _series(points, method)
            panel.plot(x, y, style, label=label, color=colour, marker=".", linewidth=1)
    panel.set_xlabel(AXES[parameter])


def _draw_bars(panel: "Axes", heights: Heights, looks: Looks) -> None:
    series, colours = {}, []
    for method, look in looks.items():
        values = _series(heights, method)
        if not all(map(isnan, values)):
            series[plain_label(look.get("label", method))] = values
            colours.append(look.get("colour"))
    ticks = [plain_label(cell.label) for cell in heights]
    bars(panel, ticks, series, colours, rotation=30, ha="right", fontsize=6)


def _series(heights: Heights, method: str) -> list[float]:
    """Return the height of a method in each setting, NaN if it has none."""
    values = [by_method.get(method) for by_method in heights.values()]
    return [nan if value is None else value for value in values]
