"""Results as text, tables or JSON on standard output; messages on standard error."""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ldprecover.items import isolated
from ldprecover.sentences import counted
from ldprecover_cli.signals import end_on_signals

if TYPE_CHECKING:
    from ldprecover_interface.results import RoundResult

JsonObject = dict[str, Any]

_FILE_WIDTH = 100
WIDEST = 10_000  # columns of a console
_JOINED = re.compile("[\u200c\u200d\u2068\u2069\U000e0020-\U000e007f]")
"""Characters without a picture that join emoji, such as those of a family or a region's flag; and
those of `isolated`.
"""


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints text as it is, without markup.

    Its width is the terminal's; for a file or a pipe 100 columns, unless COLUMNS is set.
    """
    file = sys.stderr if stderr else sys.stdout
    fixed = (file is not None and file.isatty()) or "COLUMNS" in os.environ
    width = None if fixed else _FILE_WIDTH
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=width)


def note(text: str) -> None:
    """Print a message on standard error, on one line."""
    console(stderr=True).print(plain(text), soft_wrap=True)


def warn(message: object) -> None:
    """Print a warning on standard error, on one line."""
    note(f"warning: {' '.join(str(message).split())}")


def fail(text: str) -> None:
    """Print an error on standard error, on one line."""
    line = Text.assemble(("error: ", "bold red"), plain(" ".join(text.split())))
    console(stderr=True).print(line, soft_wrap=True)


@contextmanager
def opened_in_browser(link: str) -> Iterator[None]:
    """Open a link with a secret in a browser, if the output is a terminal's."""
    if not console().is_terminal:
        yield
        return
    # By a file that its user alone can read: all users see the command line of a browser.
    with end_on_signals(), NamedTemporaryFile("w", suffix=".html") as file:
        file.write(f'<meta http-equiv="refresh" content="0; url={escape(link)}">')
        file.flush()
        typer.launch(Path(file.name).as_uri())
        yield


def byte_size(number: int) -> str:
    """Return a number of bytes with at most three digits: 816 B, 5.83 kB, 13 MB."""
    size = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} PB"


def joined(labels: Iterable[str]) -> str:
    """Return labels joined by semicolons, because labels such as New York, NY have commas."""
    return "; ".join(isolated(plain(label)) for label in labels)


def note_items(labels: Sequence[str]) -> None:
    """State the number of a round's items, the first three and the last: it cannot be changed.

    Labels beyond ASCII come first: a file in a wrong encoding shows in these alone.
    """
    shown = list(labels)
    if len(labels) > 4:
        shown[:-1] = [*sorted(shown[:-1], key=str.isascii)[:3], "…"]
    note(f"{counted(len(labels), 'item')}: {joined(shown)}.")


def print_question(out: Console, question: str | None) -> None:
    """Print what a round asks, if it has a question."""
    if question is not None:
        out.print(f"Question: {plain(question)}", soft_wrap=True)


def print_head(out: Console, head: str, result: "RoundResult") -> None:
    """Print the first lines of a result: the head, its question and its window."""
    out.print(head)
    print_question(out, result.question)
    print_window(out, result.window, result.numbers)


def print_window(out: Console, size: int, numbers: Sequence[int]) -> None:
    """Print which rounds of a series were counted together, if it was more than one."""
    if size > 1:
        first = max(1, numbers[-1] - size + 1)
        missing = sorted({*range(first, numbers[-1])}.difference(numbers))
        deleted = f", without {', '.join(map(str, missing))}, deleted" if missing else ""
        out.print(f"Rounds counted together: numbers {first} to {numbers[-1]}{deleted}.")


def print_json(value: Any) -> None:
    """Write one line of JSON on standard output; messages of a server may be in the value."""

    def fields(message: Any) -> Any:
        return json.loads(message.to_json())

    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False, default=fields))


def plain(text: str) -> str:
    """Return untrusted text, such as labels of a round, without control characters."""
    return "".join(
        c if c.isprintable() or c == "\n" or _JOINED.match(c) else "\N{REPLACEMENT CHARACTER}"
        for c in text
    )


def plain_table(
    *columns: str,
    rows: Iterable[Sequence[str]],
    numbers: int = 0,
    no_wrap: int = 0,
    gap: int = 2,
) -> Table:
    """Return a table without lines, of text that may be untrusted.

    Its last `numbers` columns are right-aligned, and `gap` spaces divide the columns. With
    `no_wrap` the first one is not wrapped, nor columns of at most this many characters. Columns
    without any text are left out, and so is the header if all names are empty.
    """
    table = Table(
        box=None,
        padding=(0, gap, 0, 0),
        pad_edge=False,
        header_style="bold",
        show_header=any(columns),
    )
    shown = []
    for i, (column, texts) in enumerate(zip(columns, zip(*rows, strict=True), strict=False)):
        if not any(texts):
            continue
        head, *cells = map(plain, (column, *texts))
        right = i >= len(columns) - numbers
        width = max(map(cell_len, (head, *cells)))
        whole = right or bool(no_wrap and (not i or width <= no_wrap))
        words = [cell_len(word) for cell in (head, *cells) for word in cell.split()]
        table.add_column(
            head,
            justify="right" if right else "left",
            no_wrap=whole,
            min_width=(width if whole else max(words)) if no_wrap else None,
            overflow="fold",
        )
        shown.append(cells)
    for row in zip(*shown, strict=True):
        table.add_row(*row)
    return table


def print_whole(out: Console, table: Table) -> None:
    """Print a table without breaking words, from a console that then stays as wide as it needs.

    A terminal that wraps lines is better to read than columns of a letter each.
    """
    unlimited = out.options.update(width=WIDEST)
    out.width = max(out.width, Measurement.get(out, unlimited, table).minimum)
    out.print(table, crop=False)
