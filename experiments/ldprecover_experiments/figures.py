"""Figures of the paper's experiments, of an evaluation's scores, of a study and of a demo.

The files are PNG and SVG; equal means give equal bytes.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldprecover import ParameterError
from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.paper import EXPERIMENTS, LABELS, PROTOCOLS, Experiment
from ldprecover_experiments.parameters import Cell
from ldprecover_experiments.poisoned_round import Vector
from ldprecover_experiments.run_file import replaced
from ldprecover_experiments.tables import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ldprecover_experiments.scores import Scores

_COLOURS = {
    "poisoned": "#7f7f7f",
    "norm-sub": "#1f77b4",
    "ldprecover": "#ff7f0e",
    "ldprecover-star": "#2ca02c",
    "detection": "#9467bd",
    "detection-projected": "#c5b0d5",
    "oracle": "#17becf",
    "ldprecover-star-exact": "#d62728",
    "k-means-raw": "#8c564b",
    "k-means": "#d62728",
    "ldprecover-km": "#ff7f0e",
}
_BARS = tuple(_COLOURS)[:6]
_LINES = {
    "malicious": ("ldprecover", "ldprecover-star", "ldprecover-star-exact"),
    "ipa": ("poisoned", "norm-sub"),
    "km": ("k-means-raw", "k-means", "ldprecover-km", "norm-sub"),
}
"""The methods of an experiment's lines, where they are not the usual ones."""
_USUAL_LINES = ("poisoned", "norm-sub", "ldprecover", "ldprecover-star", "oracle")
AXES = {"beta": "β", "epsilon": "ε", "eta": "η", "xi": "ξ"}
_MOST_FREQUENT = 10
_LOOK: dict[Any, Any] = {
    "svg.hashsalt": "ldprecover",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "legend.fontsize": 8.0,
}


def draw_figures(
    names: Sequence[str], data: Sequence[str], summary: Summary, folder: Path
) -> list[Path]:
    """Draw the figures of the named experiments into a folder, and return the files."""
    import matplotlib as mpl

    with mpl.rc_context(_LOOK):
        return [
            file
            for name, figure in _figures(names, data, summary)
            for file in _saved(figure, folder / name)
        ]


def draw_scores(scores: "Scores", folder: Path) -> list[Path]:
    """Draw the error of Norm-Sub over each method's, and return the files.

    A bar (attack) or point (varied parameter) is the geometric mean over the data sets.
    """
    import matplotlib as mpl

    protocols = scores.by(lambda s: s.cell.protocol)
    files = []
    with mpl.rc_context(_LOOK):
        for part in scores.by(lambda s: s.place.part):
            figure, axes = grid(1, len(protocols), width=4.0)
            for panel, (protocol, each) in zip(axes[0], protocols.items(), strict=True):
                panel.set_title(protocol.upper())
                _draw_part(panel, each.where(lambda s: s.place.part == part), part, scores.shown)  # noqa: B023
            axes[0][0].set_ylabel("MSE of Norm-Sub / MSE")
            files += _saved(figure, folder / f"unmix-{part}")
    return files


def _draw_part(panel: "Axes", scores: "Scores", part: str, methods: Sequence[str]) -> None:
    values = scores.by(lambda s: s.place.value)
    places = scores.by(lambda s: s.place.attack) if set(values) <= {None} else values
    series = {m: [each.ratio("norm-sub", m).mean for each in places.values()] for m in methods}
    if places is values:
        for method, ratios in series.items():
            panel.plot(
                [float(x or 0) for x in values], ratios, marker=".", linewidth=1, label=method
            )
        panel.set_xlabel(AXES.get(part, part))
    else:
        bars(panel, [str(attack).replace(" ", "\n") for attack in places], series, fontsize=6)
    panel.set_yscale("log")
    panel.axhline(1, color="black", linewidth=0.6)


def _saved(figure: "Figure", path: Path) -> list[Path]:
    """Write a figure with its legend as PNG and SVG, and return the files."""
    legend(figure)
    files = []
    for suffix, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
        picture = BytesIO()
        figure.savefig(picture, format=suffix, **options)
        files.append(path.with_name(f"{path.name}.{suffix}"))
        replaced(files[-1], picture.getvalue())
    return files


def _figures(
    names: Sequence[str], data: Sequence[str], summary: Summary
) -> Iterator[tuple[str, "Figure"]]:
    for name in ("mse", "fg"):
        if name in names:
            yield name, _bars(EXPERIMENTS[name], data, summary)
    for name in ("malicious", "ipa", "km", "multi"):
        if name in names:
            rows = [[(name, source, protocol) for protocol in PROTOCOLS] for source in data]
            yield name, _errors(rows, None, summary)
    sweeps = [name for name in names if name.startswith("sweep-")]
    for source in data if sweeps else ():
        for attack in ("aa-peaked", "aa-diffuse"):
            rows = [[(name, source, protocol) for name in sweeps] for protocol in PROTOCOLS]
            yield (
                f"sweeps-{re.sub(r'[^A-Za-z0-9]+', '-', source)}-{attack}",
                _errors(rows, attack, summary),
            )


def _errors(
    rows: Sequence[Sequence[tuple[str, str, str]]], attack: str | None, summary: Summary
) -> "Figure":
    """Return a figure of rows of panels, each of an experiment, a data set and a protocol."""
    figure, axes = grid(len(rows), len(rows[0]))
    for row, shown in zip(axes, rows, strict=True):
        for panel, (name, source, protocol) in zip(row, shown, strict=True):
            _draw(panel, EXPERIMENTS[name], source, protocol, attack, summary)
        row[0].set_ylabel("MSE")
    return figure


def _bars(experiment: Experiment, data: Sequence[str], summary: Summary) -> "Figure":
    figure, axes = grid(len(data), len(PROTOCOLS), width=4.0)
    number = "fg" if experiment.name == "fg" else "mse"
    for row, source in zip(axes, data, strict=True):
        for panel, protocol in zip(row, PROTOCOLS, strict=True):
            cells = [cell for cell in experiment.cells(source, 1) if cell.protocol == protocol]
            heights = {m: [_height(summary, cell, m, number) for cell in cells] for m in _BARS}
            shown = {m: values for m, values in heights.items() if not all(map(isnan, values))}
            bars(
                panel,
                [re.sub("[ -]", "\n", cell.label) for cell in cells],
                {LABELS[method]: values for method, values in shown.items()},
                [_COLOURS[method] for method in shown],
                fontsize=6,
            )
            panel.set_title(f"{plain_label(source)}, {protocol.upper()}")
            if number == "mse":
                panel.set_yscale("log")
            else:
                panel.set_yscale("symlog", linthresh=0.1)
                panel.axhline(0, color="black", linewidth=0.6)
        row[0].set_ylabel(number.upper())
    return figure


def _draw(
    panel: "Axes",
    experiment: Experiment,
    source: str,
    protocol: str,
    attack: str | None,
    summary: Summary,
) -> None:
    varied = experiment.varied
    assert varied is not None, experiment.name
    number = "malicious_mse" if experiment.name == "malicious" else "mse"
    kinds: dict[str, list[Cell]] = {}
    for cell in experiment.cells(source, 1):
        if cell.protocol == protocol and attack in (None, cell.attack_text):
            kinds.setdefault(cell.label, []).append(cell)
    for (label, cells), style in zip(kinds.items(), ("-", "--", ":"), strict=False):
        for method in _LINES.get(experiment.name, _USUAL_LINES):
            points = {
                getattr(cell, varied): _height(summary, cell, method, number) for cell in cells
            }
            points = {x: y for x, y in points.items() if not isnan(y)}
            if points:
                name = f"{LABELS[method]}, {label}" if len(kinds) > 1 else LABELS[method]
                look: dict[str, Any] = {
                    "label": name,
                    "color": _COLOURS[method],
                    "marker": ".",
                    "linewidth": 1,
                }
                panel.plot(list(points), list(points.values()), style, **look)
    panel.set_yscale("log")
    panel.set_xlabel(AXES[varied])
    title = [plain_label(source), protocol.upper(), *([attack] if attack else [])]
    panel.set_title(", ".join(title))


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
    figure, axes = grid(len(data), len(protocols), width=4.0)
    for row, source in zip(axes, data, strict=True):
        for panel, protocol in zip(row, protocols, strict=True):
            cells = [cell for cell in means if (cell.data, cell.protocol) == (source, protocol)]
            if len(varied) == 1:
                for attack in dict.fromkeys(cell.label for cell in cells):
                    line = [cell for cell in cells if cell.label == attack]
                    x = [getattr(cell, varied[0]) for cell in line]
                    for m in methods:
                        heights = [_height(means, cell, m, number) for cell in line]
                        panel.plot(x, heights, marker=".", label=plain_label(f"{m}, {attack}"))
                panel.set_xlabel(AXES[varied[0]])
            else:
                ticks = [
                    ", ".join([c.label, *(f"{AXES[key]} {getattr(c, key):g}" for key in varied)])
                    for c in cells
                ]
                series = {
                    plain_label(m): [_height(means, cell, m, number) for cell in cells]
                    for m in methods
                }
                bars(
                    panel,
                    list(map(plain_label, ticks)),
                    series,
                    rotation=30,
                    ha="right",
                    fontsize=6,
                )
            panel.set_title(f"{plain_label(source)}, {protocol.upper()}")
            panel.set_ylabel(number.upper())
            if number == "mse":
                panel.set_yscale("log")
            else:
                panel.axhline(0, color="black", linewidth=0.6)
    legend(figure)
    return figure


def draw_comparison(
    items: Sequence[str], targets: Collection[int], columns: Mapping[str, Vector]
) -> "Figure":
    """Return the figure of a demo: estimates of the items that are frequent in the first column,
    and of the targets. Raises ExperimentError without matplotlib.
    """
    by_share = (-next(iter(columns.values()))).argsort(kind="stable").tolist()
    chosen = by_share[:_MOST_FREQUENT] + [i for i in by_share[_MOST_FREQUENT:] if i in targets]
    figure, ((panel,),) = grid(1, 1, width=max(6.0, 0.6 * len(chosen)))
    labels = [("> " if i in targets else "") + plain_label(items[i]) for i in chosen]
    bars(panel, labels, {name: f[chosen] for name, f in columns.items()}, rotation=45, ha="right")
    panel.set_ylabel("share of all users")
    legend(figure)
    return figure


def _height(means: Summary, cell: Cell, method: str, number: str) -> float:
    """Return the mean of a method in a setting, NaN if it has none."""
    value = getattr(means.get(cell, {}).get(method), number, None)
    return nan if value is None else float(value)


def bars(
    panel: "Axes",
    ticks: Sequence[str],
    series: Mapping[str, Any],
    colours: Sequence[str] = (),
    **text: Any,
) -> None:
    """Draw a group of bars at each tick, one of each series; `text` is the style of the ticks."""
    width = 0.8 / max(1, len(series))
    for i, (label, heights) in enumerate(series.items()):
        at = [place - 0.4 + width * i for place in range(len(ticks))]
        colour = colours[i] if colours else None
        panel.bar(at, heights, width, align="edge", label=label, color=colour)
    panel.set_xticks(range(len(ticks)), ticks, **text)


def grid(rows: int, columns: int, width: float = 2.8) -> tuple["Figure", Any]:
    """Return a figure without a window, and its panels by row and column; widths in inches.

    Raises ExperimentError without matplotlib.
    """
    if find_spec("matplotlib") is None:
        raise ExperimentError("a picture needs matplotlib: pip install 'ldprecover[experiments]'")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, 2.1 * rows + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, sharey="row")


def plain_label(name: str) -> str:
    """Return an untrusted name without mathematics markup, line ends and control characters."""
    return "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name.replace("\n", " ")
    ).replace("$", r"\$")


def legend(figure: "Figure") -> None:
    """Put a legend with every label of the panels below them, in as many columns as fit."""
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    columns = max(
        1, int(figure.get_figwidth() / (0.55 + 0.065 * max(map(len, handles), default=1)))
    )  # inches
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
    )
