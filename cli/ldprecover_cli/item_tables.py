"""Tables of a round's items, with bars."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover.items import isolated, largest
from ldprecover.sentences import counted, is_noise
from ldprecover_cli.output import plain_table

if TYPE_CHECKING:
    from rich.console import Console

    from ldprecover.types import FloatArray

WIDE = 1.959964
"""Standard errors on each side of a normal 95 % interval."""

_BAR = 24  # columns
_NARROWEST = 4
_LEAST_LABEL = 12
_EIGHTHS = " ▏▎▍▌▋▊▉"

IN_ORDER = " The items are in the order of the round."
"""What follows the note on noise."""
Top = Annotated[int, Option("--top", min=1, help="Show this many items, the most frequent first.")]


def noise_note(notes: Sequence[str]) -> str | None:
    """Return the note that noise decides the order of the items, or None."""
    return next(filter(is_noise, notes), None)


def to_show(shares: "FloatArray", top: int, notes: Sequence[str]) -> list[int]:
    """Return the indices of `top` items, largest first; the first ones if noise decides that."""
    ranked = range(len(shares)) if noise_note(notes) else largest(shares, len(shares)).tolist()
    return list(ranked)[:top]


def bar(value: float, full: float, width: int, *, ascii_only: bool = False) -> str:
    """Return a bar of value/full of `width` columns, in eighths; empty for values up to 0."""
    if not (value > 0 and full > 0):
        return ""
    columns = width * min(1.0, value / full)
    if ascii_only:
        return "#" * round(columns)
    whole, eighths = divmod(round(8 * columns), 8)
    return "█" * whole + (_EIGHTHS[eighths] if eighths else "")


def _fitting(
    names: Mapping[int, str], columns: Mapping[str, Callable[[int], str]], width: int
) -> dict[str, Callable[[int], str]]:
    """Return the first of these columns, and those after it that fit beside short labels."""
    from rich.cells import cell_len

    room = width - min(_LEAST_LABEL, max(map(cell_len, names.values())))
    fitting: dict[str, Callable[[int], str]] = {}
    for head, column in columns.items():
        room -= 2 + max(map(cell_len, (head, *map(column, names))))
        if fitting and room < 0:
            break
        fitting[head] = column
    return fitting


def print_items(
    out: "Console",
    names: Mapping[int, str],
    shares: "Sequence[float] | FloatArray",
    columns: Mapping[str, Callable[[int], str]],
    *,
    beside: int,
    top: int,
) -> None:
    """Print the named items with bars of their shares, and how many items are left out.

    `columns` are numbers by item. Bars get narrow, or are left out, where the labels and `beside`
    columns need the room; then the last columns are left out, so that labels can be read.
    """
    from rich.cells import cell_len

    columns = _fitting(names, columns, out.width)
    room = out.width - max(map(cell_len, names.values())) - 2 - beside
    width = min(room, _BAR) if room >= _NARROWEST else 0
    full = max(shares)
    rows = (
        (
            isolated(name),
            bar(shares[i], full, width, ascii_only=out.options.ascii_only).ljust(width),
            *(column(i) for column in columns.values()),
        )
        for i, name in names.items()
    )
    out.print(plain_table("item", "", *columns, rows=rows, numbers=len(columns)))
    print_rest(out, len(shares) - top)


def print_rest(out: "Console", rest: int, where: str = "--top shows more, --json all") -> None:
    """Print how many items a table leaves out, if there are some, and what shows them."""
    if rest > 0:
        out.print(f"… and {counted(rest, 'more item')} ({where}).")
