"""Drawing a demo's figures for a terminal."""

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldprecover import frequency_oracle
from ldprecover.items import isolated
from ldprecover.sentences import counted
from ldprecover_cli.item_tables import WIDE, bar
from ldprecover_cli.output import plain
from ldprecover_experiments.simulation.comparison import Comparison
from ldprecover_experiments.simulation.demo_score import AFTER, BEFORE, Score
from ldprecover_experiments.simulation.demo_words import PROJECTION, method_words
from ldprecover_experiments.simulation.poisoned_round import Vector

_TOP = 5
_MOST_TARGETS = 12
_LONGEST_LABEL = 16
_SHORTEST_LABEL = 6
_LONGEST_NAME = 28
_NARROWEST_BAR = 3
_LDPRECOVER, _UNMIXING, _WITH_TARGETS = map(method_words, ("ldprecover", "unmix", "ldprecover*"))
_STYLES = {
    BEFORE: "blue",
    AFTER: "red",
    PROJECTION: "yellow",
    _LDPRECOVER: "magenta",
    _UNMIXING: "cyan",
    _WITH_TARGETS: "green",
}
# The first first, where the terminal is too narrow for all.
_SPARED = (BEFORE, _LDPRECOVER, PROJECTION, _UNMIXING)


def draw(figures: Comparison, out: Console) -> None:
    """Draw the shares of the top items and the targets, the errors, and the verdict on them."""
    score = figures.score
    out.print(_settings(figures))
    out.print()
    _draw_shares(score, _margin(figures), out)
    out.print()
    out.print(_errors(score, out))
    out.print()
    out.print(Text(score.headline, "bold"))
    for sentence in score.details:
        out.print(sentence)


def _settings(figures: Comparison) -> str:
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


def _margin(figures: Comparison) -> float:
    """Return half the 95 % interval of an item before the attack, the largest one, in points."""
    s = figures.settings
    oracle = frequency_oracle(s.protocol, s.epsilon, len(figures.items))
    return 100 * WIDE * float(max(oracle.standard_errors(figures.true, s.users)))


def _draw_shares(score: Score, margin: float, out: Console) -> None:
    columns = {"true": score.true, **score.columns}
    spared = _spare(columns, out.width)
    targets = set(score.targets or ())
    by_share = np.argsort(-score.true, kind="stable").tolist()
    shown = by_share[:_TOP] + [i for i in by_share[_TOP:] if i in targets][:_MOST_TARGETS]
    left_out = len(targets.difference(shown))

    full = max(float(f[shown].max()) for f in columns.values())
    # Beside the labels each column has a number of 5 characters, a bar, and a space after both.
    width = min(10, (out.width - _LONGEST_LABEL - 3) // len(columns) - 7)
    width = width if width >= _NARROWEST_BAR else 0
    label_width = min(_LONGEST_LABEL, out.width - 3 - sum(_needed(name, width) for name in columns))
    caption = f"Percent of all users, before the attack ± {margin:.2g} (95 %); > marks a target" + (
        f", {left_out} more targets not shown" if left_out else ""
    )
    caption += f"; a wider terminal shows {', '.join(spared)} too" if spared else ""
    out.print(caption)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    label_width = max(_SHORTEST_LABEL, label_width) + 2
    table.add_column("item", no_wrap=True, overflow="ellipsis", width=label_width)
    for name in columns:
        table.add_column(name, header_style=_STYLES.get(name), width=_needed(name, width) - 1)
    for i in shown:
        if i == (shown[_TOP:] or [None])[0]:
            table.add_row()
        label = ("> " if i in targets else "  ") + isolated(plain(score.items[i]))
        cells = []
        for name, f in columns.items():
            percent = round(100 * float(f[i]), 1) + 0.0  # no -0.0
            cells.append(
                Text.assemble(
                    f"{percent:5.1f} ", (_bar(float(f[i]), full, width, out), _STYLES.get(name, ""))
                )
            )
        table.add_row(Text(label), *cells)
    out.print(table)


def _needed(name: str, bar_width: int) -> int:
    """Return what a column takes, the space after it too: its number and bar, or the longest word
    of its name.
    """
    return 1 + max(6 + bar_width, *map(len, name.split()))


def _spare(columns: dict[str, Vector], width: int) -> list[str]:
    """Remove columns until the others fit beside labels, with bars; return the removed names."""
    spared = []
    for name in _SPARED if _WITH_TARGETS in columns else _SPARED[:-1]:
        if _LONGEST_LABEL + 3 + sum(_needed(column, _NARROWEST_BAR) for column in columns) <= width:
            break
        del columns[name]
        spared.append(name)
    return spared


def _errors(score: Score, out: Console) -> Table:
    worst = max(row.mse for row in score.rows)
    largest_gain = max(row.gain or 0.0 for row in score.rows)
    names = [", ".join(row.names) for row in score.rows]
    name_width = min(_LONGEST_NAME, max(map(len, names)))
    # Beside the names MSE of 8 characters, gains of 7, spaces between them, and two bars.
    width = min(24, (out.width - name_width - 23) // 2)
    width = width if width >= _NARROWEST_BAR else 0
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("", max_width=name_width)
    table.add_column("MSE against the truth", width=width + 9)
    if score.targets is not None:
        table.add_column("FG, gain of the targets, points", width=width + 8)
    for name, row in zip(names, score.rows, strict=True):
        style = _STYLES[row.name]
        cells = [Text.assemble(f"{row.mse:.2e} ", (_bar(row.mse, worst, width, out), style))]
        if row.gain is not None:
            gain_bar = _bar(row.gain, largest_gain, width, out)
            cells.append(
                Text.assemble(f"{round(100 * row.gain, 1) + 0.0:+7.1f} ", (gain_bar, style))
            )
        table.add_row(Text(name), *cells)
    return table


def _bar(value: float, full: float, width: int, out: Console) -> str:
    return bar(value, full, width, ascii_only=out.options.ascii_only)
