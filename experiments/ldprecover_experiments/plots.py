"""Figures of a study's errors or gains, and of a demo's estimates."""

from importlib.util import find_spec
from math import nan
from typing import TYPE_CHECKING

from ldprecover import ParameterError
from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.figures import AXES, grid, legend, plain_label

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ldprecover_experiments.parameters import Cell
    from ldprecover_experiments.poisoned_round import Vector
    from ldprecover_experiments.tables import Summary

_MOST_FREQUENT = 10


def draw_results(means: "Summary", parameters: "Sequence[str]", number: str) -> "Figure":
    """Return the figure of a study, where these parameters vary: a panel for each data set and
    protocol.

    One varied parameter gives lines; several, or none, give a group of bars for each setting.
    """
    _check_matplotlib()
    if number not in ("mse", "fg"):
        raise ParameterError(f'number must be "mse" or "fg", not {number!r}')
    data, protocols = (
        list(dict.fromkeys(getattr(cell, key) for cell in means)) for key in ("data", "protocol")
    )
    varied = [key for key in parameters if key in AXES]
    figure, axes = grid(max(1, len(data)), max(1, len(protocols)), width=4.0)
    for row, source in zip(axes, data, strict=False):
        for panel, protocol in zip(row, protocols, strict=False):
            of_panel = {
                cell: by_method
                for cell, by_method in means.items()
                if (cell.data, cell.protocol) == (source, protocol)
            }
            if len(varied) == 1:
                _lines(panel, of_panel, number, varied[0])
            else:
                _bars(panel, of_panel, number, varied)
            panel.set_title(f"{plain_label(source)}, {protocol.upper()}")
            panel.set_ylabel(number.upper())
            if number == "mse":
                panel.set_yscale("log")
            else:
                panel.axhline(0, color="black", linewidth=0.6)
    legend(figure)
    return figure


def _methods(means: "Summary") -> list[str]:
    return list(dict.fromkeys(name for by_method in means.values() for name in by_method))


def _height(means: "Summary", cell: "Cell", method: str, number: str) -> float:
    """Return the mean of a method in a setting, NaN if it has none."""
    mean = means[cell].get(method)
    value = None if mean is None else getattr(mean, number)
    return nan if value is None else float(value)


def _lines(panel: "Axes", means: "Summary", number: str, varied: str) -> None:
    for attack in dict.fromkeys(cell.label for cell in means):
        of_attack = [cell for cell in means if cell.label == attack]
        for method in _methods(means):
            heights = [_height(means, cell, method, number) for cell in of_attack]
            label = plain_label(f"{method}, {attack}")
            panel.plot(
                [getattr(cell, varied) for cell in of_attack], heights, marker=".", label=label
            )
    panel.set_xlabel(AXES[varied])


def _bars(panel: "Axes", means: "Summary", number: str, varied: "Sequence[str]") -> None:
    methods = _methods(means)
    width = 0.8 / len(methods)
    for i, method in enumerate(methods):
        heights = [_height(means, cell, method, number) for cell in means]
        at = [place + width * i - 0.4 for place in range(len(means))]
        panel.bar(at, heights, width, align="edge", label=plain_label(method))
    ticks = [
        ", ".join([c.label, *(f"{AXES[key]} {getattr(c, key):g}" for key in varied)]) for c in means
    ]
    panel.set_xticks(
        range(len(means)), list(map(plain_label, ticks)), rotation=30, ha="right", fontsize=6
    )


def draw_comparison(
    items: "Sequence[str]", targets: "Collection[int]", columns: "Mapping[str, Vector]"
) -> "Figure":
    """Return the figure of a demo: estimates of the items that are frequent in the first column,
    and of the targets.
    """
    _check_matplotlib()
    by_share = (-next(iter(columns.values()))).argsort(kind="stable").tolist()
    chosen = by_share[:_MOST_FREQUENT] + [i for i in by_share[_MOST_FREQUENT:] if i in targets]
    figure, ((panel,),) = grid(1, 1, width=max(6.0, 0.6 * len(chosen)))
    width = 0.8 / len(columns)
    for i, (name, f) in enumerate(columns.items()):
        panel.bar(
            [at - 0.4 + width * i for at in range(len(chosen))],
            f[chosen],
            width,
            align="edge",
            label=name,
        )
    labels = [("> " if i in targets else "") + plain_label(items[i]) for i in chosen]
    panel.set_xticks(range(len(chosen)), labels, rotation=45, ha="right")
    panel.set_ylabel("share of all users")
    legend(figure)
    return figure


def _check_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ExperimentError("a picture needs matplotlib: pip install 'ldprecover[experiments]'")
