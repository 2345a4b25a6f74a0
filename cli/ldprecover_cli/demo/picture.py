"""Drawing a demo's figures for a terminal."""

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldprecover_cli.demo.words import sentences
from ldprecover_cli.item_tables import bar
from ldprecover_cli.output import counted, plain
from ldprecover_experiments.comparison import ESTIMATES, Comparison
from ldprecover_experiments.poisoned_round import Vector

_TOP = 5
_MOST_TARGETS = 12
_LONGEST_LABEL = 16
_SHORTEST_LABEL = 6
_NARROWEST_BAR = 3
_STYLES = ("", "blue", "red", "yellow", "magenta", "cyan", "green")
_NAMES = ("true", "genuine", "poisoned", "projected only", "recovered", "unmixed", "recovered*")
# The first first, where the terminal is too narrow for all.
_SPARED = ("genuine", "projected only", "recovered", "unmixed")


def draw(figures: Comparison, out: Console) -> None:
    """Draw the shares of the top items and the targets, the errors, and what one sees in them."""
    out.print(_headline(figures))
    out.print()
    out.print(_shares(figures, out))
    out.print()
    out.print(_errors(figures, out))
    out.print()
    for sentence in sentences(figures):
        out.print(sentence)
    if figures.leader is not None:
        out.print(f"The certificate says: {plain(figures.leader)}")


def _headline(figures: Comparison) -> str:
    s = figures.settings
    users = (
        f"{counted(s.users, 'genuine user')}, then {counted(s.malicious_users, 'malicious one')}"
    )
    attack = f"{100 * s.beta:.3g} % malicious, {s.attack}" + (f", {s.model}" if s.modelled else "")
    attack += f", {counted(s.targets, 'target')}" if s.targeted else ""
    return (
        f"{len(figures.items)} items of {plain(s.dataset)}, {s.protocol}, epsilon "
        f"{s.epsilon:g}: {users} ({attack})."
    )


def _shares(figures: Comparison, out: Console) -> Table:
    pairs = zip(_NAMES, (figures.true, *figures.estimates.values()), strict=True)
    columns = {name: f for name, f in pairs if f is not None}
    spared = _spare(columns, out.width)
    targets = set(figures.targets or ())
    by_share = np.argsort(-figures.true, kind="stable").tolist()
    shown = by_share[:_TOP] + [i for i in by_share[_TOP:] if i in targets][:_MOST_TARGETS]
    left_out = len(targets.difference(shown))

    full = max(float(f[shown].max()) for f in columns.values())
    # Beside the labels each column has a number of 5 characters, a bar, and a space after both.
    width = min(10, (out.width - _LONGEST_LABEL - 3) // len(columns) - 7)
    width = width if width >= _NARROWEST_BAR else 0
    label_width = min(_LONGEST_LABEL, out.width - 3 - sum(_needed(name, width) for name in columns))
    caption = "Percent of all users; > marks a target" + (
        f", {left_out} more targets not shown" if left_out else ""
    )
    caption += f"; a wider terminal shows {', '.join(spared)} too" if spared else ""
    table = Table(
        box=None,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        title=caption,
        title_justify="left",
        title_style="",
    )
    label_width = max(_SHORTEST_LABEL, label_width) + 2
    table.add_column(
        "item", no_wrap=True, overflow="ellipsis", min_width=label_width, max_width=label_width
    )
    for name in columns:
        table.add_column(
            name, header_style=_style(name), justify="left", min_width=_needed(name, width) - 1
        )
    for i in shown:
        if i == (shown[_TOP:] or [None])[0]:
            table.add_row()
        label = ("> " if i in targets else "  ") + plain(figures.items[i])
        cells = []
        for name, f in columns.items():
            percent = round(100 * float(f[i]), 1) + 0.0  # no -0.0
            cells.append(
                Text.assemble(
                    f"{percent:5.1f} ", (_bar(float(f[i]), full, width, out), _style(name))
                )
            )
        table.add_row(Text(label), *cells)
    return table


def _needed(name: str, bar_width: int) -> int:
    """Return what a column takes, the space after it too: its number and bar, or the longest word
    of its name.
    """
    return 1 + max(6 + bar_width, *map(len, name.split()))


def _spare(columns: dict[str, Vector], width: int) -> list[str]:
    """Remove columns until the others fit beside labels, with bars; return the removed names."""
    spared = []
    for name in _SPARED if "recovered*" in columns else _SPARED[:-1]:
        if _LONGEST_LABEL + 3 + sum(_needed(column, _NARROWEST_BAR) for column in columns) <= width:
            break
        del columns[name]
        spared.append(name)
    return spared


def _errors(figures: Comparison, out: Console) -> Table:
    mse, fg = figures.mse, figures.fg
    worst = max(error for error in mse.values() if error is not None)
    largest_gain = (
        max((gain for gain in fg.values() if gain is not None), default=0.0) if fg else 0.0
    )
    # Names of 14 characters, MSE of 8, FG of 7, spaces between them, and what is left for two bars.
    width = min(24, (out.width - 37) // 2)
    width = width if width >= _NARROWEST_BAR else 0
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("MSE against the truth", width=width + 9)
    if fg is not None:
        table.add_column("FG, gain of the targets, points", width=width + 8)
    for key, name in zip(ESTIMATES, _NAMES[1:], strict=True):
        error, gain = mse[key], fg[key] if fg else None
        if error is None:
            continue
        cells = [Text.assemble(f"{error:.2e} ", (_bar(error, worst, width, out), _style(name)))]
        if gain is not None:
            cells.append(
                Text.assemble(
                    f"{round(100 * gain, 1) + 0.0:+7.1f} ",
                    (_bar(gain, largest_gain, width, out), _style(name)),
                )
            )
        table.add_row(Text(name), *cells)
    return table


def _style(name: str) -> str:
    return _STYLES[_NAMES.index(name)]


def _bar(value: float, full: float, width: int, out: Console) -> str:
    return bar(value, full, width, ascii_only=out.options.ascii_only)
