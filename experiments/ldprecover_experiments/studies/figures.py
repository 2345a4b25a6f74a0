"""The figure of a study: means as dots, with their standard errors as intervals."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from math import nan
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ldprecover_experiments.simulation.drawing import check_matplotlib, plain_label
from ldprecover_experiments.studies.cells import Cell
from ldprecover_experiments.studies.latex import Mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {"epsilon": "ε", "beta": "β", "eta": "η", "questions": "k", "xi": "ξ"}

_COLUMN = 3.5
"""Inches of a column of a paper."""

_DECADES = 30
"""The ratio of values from which an axis is logarithmic."""

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "ldprecover",  # equal means give equal bytes
    "pdf.fonttype": 42,  # publishers reject Type 3
    "font.size": 8.0,
    "axes.titlesize": "medium",
}

_MARKERS = "osD^vP<X>*"

Labels = Mapping[str, str]
"""Name of a method -> its label."""

Means = Mapping[Cell, Mapping[str, Mean]]
"""A setting -> method -> mean and standard error."""


def draw_means(
    means: Means, parameters: Sequence[str], number: str, labels: Labels, *, wide: bool = False
) -> "Figure":
    """Return the figure of a number in settings among which these parameters vary.

    It is 3.5 inches wide, or 7 in up to two columns of panels. There is a panel for each data set,
    protocol and value of what varies, but for the parameter with most values: over it a panel for
    each attack has dots with lines. Without one a panel has a row of dots for each setting. Raises
    ExperimentError without matplotlib.
    """
    check_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    varied = [key for key in parameters if key in AXES]
    varied.sort(key=lambda key: len({getattr(cell, key) for cell in means}))
    split, line = varied[:-1], varied[-1:]
    panels: dict[str, dict[Cell, Any]] = {}
    for cell in means:
        words = [cell.data, cell.protocol.upper()]
        words += [f"{AXES[key]} {getattr(cell, key):g}" for key in split]
        words += [cell.label for _ in line]
        panels.setdefault(plain_label(", ".join(words)), {})[cell] = means[cell]
    titles, broad = list(panels), 2 if wide else 1
    columns = min(broad, len(titles))
    rows = [titles[i : i + columns] for i in range(0, len(titles), columns)]
    settings = max(map(len, panels.values()))
    height = 1.7 if line else 0.7 + settings * (0.15 + 0.08 * len(labels))
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_COLUMN * broad, height * len(rows) + 0.6), layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False)
        for axes, row in zip(grid, rows, strict=True):
            for panel, title in zip_longest(axes, row):
                if title is None:
                    panel.remove()
                else:
                    panel.set_title(fill(title, 50))
                    _draw_panel(panel, panels[title], line, labels)
                    axis = panel.yaxis if line else panel.xaxis
                    axis.set_label_text(number.split("_")[-1].upper())
        handles, names = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2 * broad, frameon=False)
    return figure


def save(figure: "Figure", stem: str) -> None:
    """Write the figure as PDF and SVG; equal means give equal bytes."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        figure.savefig(f"{stem}.pdf", metadata={"CreationDate": None})
        figure.savefig(f"{stem}.svg", metadata={"Date": None})


def _draw_panel(panel: "Axes", means: Means, line: Sequence[str], labels: Labels) -> None:
    """Draw the means of each method: over a parameter, or in a row for each setting."""
    from matplotlib import colormaps

    for i, (method, label) in enumerate(labels.items()):
        points = [by_method.get(method, (None, None)) for by_method in means.values()]
        values = [nan if value is None else value for value, _ in points]
        errors = [error or 0.0 for _, error in points]
        style: dict[str, Any] = {
            "label": plain_label(label),
            "color": colormaps["viridis"](0.85 * i / len(labels)),  # lighter in grey, too
            "fmt": _MARKERS[i % len(_MARKERS)] + "-" * len(line),
            "markersize": 3.5,
            "linewidth": 0.8,
        }
        if line:
            panel.errorbar([getattr(cell, line[0]) for cell in means], values, errors, **style)
        else:
            offset = 0.8 * ((i + 0.5) / len(labels) - 0.5)
            places = [place + offset for place in range(len(means))]
            panel.errorbar(values, places, xerr=errors, **style)
    if line:
        panel.set_xlabel(AXES[line[0]])
    else:
        ticks = [fill(plain_label(cell.label), 22) for cell in means]
        panel.set_yticks(range(len(means)), ticks)
        panel.set_ylim(len(means) - 0.5, -0.5)
    low, high = panel.dataLim.intervaly if line else panel.dataLim.intervalx
    if 0 < _DECADES * low < high:
        (panel.set_yscale if line else panel.set_xscale)("log")
