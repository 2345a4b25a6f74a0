"""What is shown: words and tables on standard output, or JSON alone; everything else on standard
error.
"""

import json
import os
import sys
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH_OF_A_FILE = 100
_EIGHTHS = " ▏▎▍▌▋▊▉"


def console(*, stderr: bool = False) -> Console:
    """Return a console that takes text as it is, without markup.

    As wide as the terminal; for a file or a pipe 100 columns, unless COLUMNS says otherwise.
    """
    file = sys.stderr if stderr else sys.stdout
    fixed = (file is not None and file.isatty()) or "COLUMNS" in os.environ
    width = None if fixed else _WIDTH_OF_A_FILE
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=width)


def note(text: str) -> None:
    """Say something beside the result: on standard error, on one line."""
    console(stderr=True).print(plain(text), soft_wrap=True)


def warn(said: object) -> None:
    """Say in one line on standard error what is amiss, though the command goes on."""
    note(f"warning: {' '.join(str(said).split())}")


def fail(text: str) -> None:
    """Say in one line on standard error what went wrong."""
    line = Text.assemble(("error: ", "bold red"), plain(" ".join(text.split())))
    console(stderr=True).print(line, soft_wrap=True)


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: 1 report, 2,000 reports."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def joined(labels: Iterable[str]) -> str:
    """Return labels in one line. Labels hold commas, as New York, NY does, so semicolons stand
    between them.
    """
    return "; ".join(map(plain, labels))


def print_json(value: Any) -> None:
    """Write one line of JSON on standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def plain(text: str) -> str:
    """Return a stranger's text fit for a terminal: labels and names come from whoever opened the
    round.
    """
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def plain_table(*columns: str, numbers: int = 0, title: str | None = None) -> Table:
    """Return a table without lines, its last `numbers` columns set to the right."""
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        header_style="bold",
        title=title,
        title_justify="left",
    )
    for i, column in enumerate(columns):
        right = i >= len(columns) - numbers
        table.add_column(
            column, justify="right" if right else "left", no_wrap=right, overflow="fold"
        )
    return table


def bar(value: float, full: float, width: int, *, ascii_only: bool = False) -> str:
    """Return a bar of `width` columns for `full`, in eighths of a column; nothing for a value of
    zero or less.
    """
    if not (value > 0 and full > 0):
        return ""
    columns = width * min(1.0, value / full)
    if ascii_only:
        return "#" * round(columns)
    whole, rest = divmod(round(8 * columns), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")
