"""Pictures of estimates by item, and the pieces of all figures. They need matplotlib."""

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.simulation.poisoned_round import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_FREQUENT = 10


def draw_items(
    panel: "Axes", items: Sequence[str], targets: Collection[int], columns: Mapping[str, Vector]
) -> None:
    """Draw the estimates of `shown_items` as bars, with ">" before the label of a target."""
    chosen = shown_items(columns, targets)
    labels = [("> " if i in targets else "") + plain_label(items[i]) for i in chosen]
    width = 0.8 / len(columns)
    for i, (name, f) in enumerate(columns.items()):
        places = [place - 0.4 + width * i for place in range(len(chosen))]
        panel.bar(places, f[chosen], width, align="edge", label=name)
    panel.set_xticks(range(len(chosen)), labels, rotation=45, ha="right")
    from matplotlib.ticker import PercentFormatter

    panel.yaxis.set_major_formatter(PercentFormatter(1))
    panel.set_ylabel("share of all users")
    if targets:
        panel.set_xlabel("> marks a target of the attack")


def shown_items(columns: Mapping[str, Vector], targets: Collection[int]) -> list[int]:
    """Return the ten items that are most frequent in the first column, and the targets."""
    by_share: list[int] = (-next(iter(columns.values()))).argsort(kind="stable").tolist()
    return by_share[:_MOST_FREQUENT] + [i for i in by_share[_MOST_FREQUENT:] if i in targets]


def new_axes() -> "Axes":
    """Return the axes of a new figure of pyplot. Raises ExperimentError without matplotlib."""
    check_matplotlib()
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(9.0, 4.0), layout="constrained")
    return axes


def has_matplotlib() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def check_matplotlib() -> None:
    """Raise ExperimentError unless matplotlib is installed."""
    if not has_matplotlib():
        raise ExperimentError("a picture needs matplotlib: pip install 'ldprecover[experiments]'")


def plain_label(name: str) -> str:
    """Return an untrusted name without mathematics markup, line ends and control characters."""
    return "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name.replace("\n", " ")
    ).replace("$", r"\$")
