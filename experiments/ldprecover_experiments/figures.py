"""The paper's figures as PNG and SVG files; equal means give equal bytes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldprecover_experiments.paper import EXPERIMENTS, LABELS, PROTOCOLS, Experiment
from ldprecover_experiments.parameters import Cell
from ldprecover_experiments.run_file import replaced
from ldprecover_experiments.tables import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ldprecover_experiments.scores import Scores

_BARS = (
    "poisoned",
    "norm-sub",
    "ldprecover",
    "ldprecover-star",
    "detection",
    "detection-projected",
)
_LINES = ("poisoned", "norm-sub", "ldprecover", "ldprecover-star", "oracle")
_PAPER_KM = ("k-means-raw", "k-means", "ldprecover-km", "norm-sub")
_COLOURS = dict(
    zip(
        (
            "poisoned",
            "norm-sub",
            "ldprecover",
            "ldprecover-star",
            "detection",
            "detection-projected",
            "oracle",
        ),
        ("#7f7f7f", "#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#c5b0d5", "#17becf"),
        strict=True,
    )
) | {"k-means-raw": "#8c564b", "k-means": "#d62728", "ldprecover-km": "#ff7f0e"}
AXES = {"beta": "β", "epsilon": "ε", "eta": "η", "xi": "ξ"}
_LOOK: dict[Any, Any] = {
    "svg.hashsalt": "ldprecover",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "legend.fontsize": 8.0,
}


@dataclass(frozen=True)
class _Line:
    """A line of a panel: its cells, its method and number, and its style."""

    cells: tuple[Cell, ...]
    method: str
    label: str
    colour: str
    number: str = "mse"
    style: str = "-"


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

    protocols = list(dict.fromkeys(setting.cell.protocol for setting in scores.settings))
    files = []
    with mpl.rc_context(_LOOK):
        for part in dict.fromkeys(setting.place.part for setting in scores.settings):
            figure, axes = grid(1, len(protocols), width=4.0)
            for panel, protocol in zip(axes[0], protocols, strict=True):
                _draw_part(panel, scores, part, protocol)
            axes[0][0].set_ylabel("MSE of Norm-Sub / MSE")
            files += _saved(figure, folder / f"unmix-{part}")
    return files


def _draw_part(panel: "Axes", scores: "Scores", part: str, protocol: str) -> None:
    places = [
        s.place for s in scores.settings if (s.place.part, s.cell.protocol) == (part, protocol)
    ]
    varied = any(place.value is not None for place in places)
    at = list(dict.fromkeys(place.value if varied else place.attack for place in places))
    for i, method in enumerate(scores.shown):
        means = [
            scores.ratio(
                "norm-sub",
                method,
                lambda s, x=x: (  # type: ignore[misc]
                    (s.place.part, s.cell.protocol, s.place.value if varied else s.place.attack)
                    == (part, protocol, x)
                ),
            ).mean
            for x in at
        ]
        if varied:
            panel.plot([float(x or 0) for x in at], means, marker=".", linewidth=1, label=method)
        else:
            width = 0.8 / len(scores.shown)
            panel.bar(
                [x + width * (i - (len(scores.shown) - 1) / 2) for x in range(len(at))],
                means,
                width,
                label=method,
            )
    if not varied:
        panel.set_xticks(range(len(at)), [str(x).replace(" ", "\n") for x in at], fontsize=6)
    panel.set_yscale("log")
    panel.axhline(1, color="black", linewidth=0.6)
    panel.set_title(protocol.upper())
    if varied:
        panel.set_xlabel(AXES.get(part, part))


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
            for i, method in enumerate(_BARS):
                places = [(at, summary.get(cell, {}).get(method)) for at, cell in enumerate(cells)]
                points = [
                    (at + 0.13 * (i - 2.5), getattr(mean, number))
                    for at, mean in places
                    if mean is not None
                ]
                if points:
                    at, heights = zip(*points, strict=True)
                    panel.bar(at, heights, 0.13, label=LABELS[method], color=_COLOURS[method])
            panel.set_xticks(
                range(len(cells)), [re.sub("[ -]", "\n", cell.label) for cell in cells], fontsize=6
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
    cells = [cell for cell in experiment.cells(source, 1) if cell.protocol == protocol]
    for line in _lines(experiment, [cell for cell in cells if attack in (None, cell.attack_text)]):
        points = [
            (getattr(cell, varied), summary.get(cell, {}).get(line.method)) for cell in line.cells
        ]
        numbers = [
            (x, y)
            for x, mean in points
            if mean is not None and (y := getattr(mean, line.number)) is not None
        ]
        if numbers:
            x, y = zip(*numbers, strict=True)
            panel.plot(
                x, y, line.style, label=line.label, color=line.colour, marker=".", linewidth=1
            )
    panel.set_yscale("log")
    panel.set_xlabel(AXES[varied])
    panel.set_title(
        f"{plain_label(source)}, {protocol.upper()}" + (f", {attack}" if attack else "")
    )


def _lines(experiment: Experiment, cells: Sequence[Cell]) -> Iterator[_Line]:
    """Yield the lines of one panel."""
    if experiment.name == "malicious":
        for method in ("ldprecover", "ldprecover-star", "ldprecover-star-exact"):
            colour = _COLOURS.get(method, "#d62728")
            yield _Line(tuple(cells), method, LABELS[method], colour, number="malicious_mse")
        return
    if experiment.name == "km":
        for method in _PAPER_KM:
            yield _Line(tuple(cells), method, LABELS[method], _COLOURS[method])
        return
    methods = ("poisoned", "norm-sub") if experiment.name == "ipa" else _LINES
    for i, (attack, model) in enumerate(dict.fromkeys((cell.attack, cell.model) for cell in cells)):
        of_kind = tuple(cell for cell in cells if (cell.attack, cell.model) == (attack, model))
        several = len({(cell.attack, cell.model) for cell in cells}) > 1
        for method in methods:
            label = f"{LABELS[method]}, {of_kind[0].label}" if several else LABELS[method]
            yield _Line(of_kind, method, label, _COLOURS[method], style=("-", "--", ":")[i])


def grid(rows: int, columns: int, width: float = 2.8) -> tuple["Figure", Any]:
    """Return a figure without a window, and its panels by row and column; widths in inches."""
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
