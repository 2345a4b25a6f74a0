"""Figures of a study's errors or gains, and of a demo's estimates."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ldprecover import ParameterError
from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.figures import AXES, grid, legend, plain_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ldprecover_experiments.comparison import Comparison
    from ldprecover_experiments.parameters import Cell
    from ldprecover_experiments.results import Results

_MOST_FREQUENT = 10


def draw_results(results: "Results", number: str = "mse") -> "Figure":
    """Return the figure of a study: a panel for each data set and protocol.

    One varied parameter gives lines; several, or none, give a group of bars for each setting.
    """
    _check_matplotlib()
    if number not in ("mse", "fg"):
        raise ParameterError(f'number must be "mse" or "fg", not {number!r}')
    settings = list(results.settings.values())
    data, protocols = (
        list(dict.fromkeys(getattr(cell, key) for cell in settings)) for key in ("data", "protocol")
    )
    varied = [key for key in results.varied if key in AXES]
    figure, axes = grid(max(1, len(data)), max(1, len(protocols)), width=4.0)
    for row, source in zip(axes, data, strict=False):
        for panel, protocol in zip(row, protocols, strict=False):
            cells = [cell for cell in settings if (cell.data, cell.protocol) == (source, protocol)]
            if len(varied) == 1:
                _lines(panel, results, number, cells, varied[0])
            else:
                _bars(panel, results, number, cells, varied)
            panel.set_title(f"{plain_label(source)}, {protocol.upper()}")
            panel.set_ylabel(number.upper())
            if number == "mse":
                panel.set_yscale("log")
            else:
                panel.axhline(0, color="black", linewidth=0.6)
    legend(figure)
    return figure


def _lines(
    panel: "Axes", results: "Results", number: str, cells: "Sequence[Cell]", varied: str
) -> None:
    for attack in dict.fromkeys(cell.label for cell in cells):
        of_attack = [cell for cell in cells if cell.label == attack]
        for method in results.methods:
            heights = [results.number(cell, method, number) for cell in of_attack]
            label = plain_label(f"{method}, {attack}")
            panel.plot(
                [getattr(cell, varied) for cell in of_attack], heights, marker=".", label=label
            )
    panel.set_xlabel(AXES[varied])


def _bars(
    panel: "Axes", results: "Results", number: str, cells: "Sequence[Cell]", varied: "Sequence[str]"
) -> None:
    width = 0.8 / len(results.methods)
    for i, method in enumerate(results.methods):
        heights = [results.number(cell, method, number) for cell in cells]
        at = [place + width * i - 0.4 for place in range(len(cells))]
        panel.bar(at, heights, width, align="edge", label=plain_label(method))
    ticks = [
        ", ".join([c.label, *(f"{AXES[key]} {getattr(c, key):g}" for key in varied)]) for c in cells
    ]
    panel.set_xticks(
        range(len(cells)), list(map(plain_label, ticks)), rotation=30, ha="right", fontsize=6
    )


def draw_comparison(comparison: "Comparison") -> "Figure":
    """Return the figure of a demo: truth and estimates of frequent items and targets."""
    _check_matplotlib()
    by_share = (-comparison.true).argsort(kind="stable").tolist()
    targets = set(comparison.targets or ())
    chosen = by_share[:_MOST_FREQUENT] + [i for i in by_share[_MOST_FREQUENT:] if i in targets]
    figure, ((panel,),) = grid(1, 1, width=max(6.0, 0.6 * len(chosen)))
    columns = {"true": comparison.true} | {
        name: f for name, f in comparison.estimates.items() if f is not None
    }
    width = 0.8 / len(columns)
    for i, (name, f) in enumerate(columns.items()):
        panel.bar(
            [at - 0.4 + width * i for at in range(len(chosen))],
            f[chosen],
            width,
            align="edge",
            label=name,
        )
    labels = [("> " if i in targets else "") + plain_label(comparison.items[i]) for i in chosen]
    panel.set_xticks(range(len(chosen)), labels, rotation=45, ha="right")
    panel.set_ylabel("share of all users")
    legend(figure)
    return figure


def _check_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ExperimentError("a picture needs matplotlib: pip install 'ldprecover[experiments]'")
