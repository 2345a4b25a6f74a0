"""Tables of a round's items, with bars."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

_BAR = 24  # columns
_EIGHTHS = " ▏▎▍▌▋▊▉"

Top = Annotated[
    int, typer.Option("--top", min=1, help="Show this many items, the most frequent first.")
]


def largest(values: Sequence[float], top: int) -> list[int]:
    """Return the indices of the `top` largest values, largest first."""
    return sorted(range(len(values)), key=lambda i: -values[i])[:top]


def bar(value: float, full: float, width: int, *, ascii_only: bool = False) -> str:
    """Return a bar of value/full of `width` columns, in eighths; empty for values up to 0."""
    if not (value > 0 and full > 0):
        return ""
    columns = width * min(1.0, value / full)
    if ascii_only:
        return "#" * round(columns)
    whole, eighths = divmod(round(8 * columns), 8)
    return "█" * whole + (_EIGHTHS[eighths] if eighths else "")


def bar_width(out: "Console", names: Iterable[str], *, beside: int) -> int:
    """Return the width of bars next to names and `beside` other columns; 0 on narrow terminals."""
    return max(0, min(_BAR, out.width - max(map(len, names)) - 2 - beside))


def print_rest(out: "Console", items: int, top: int) -> None:
    """Print how many items the table leaves out, if any."""
    if items > top:
        out.print(f"… and {items - top:,} more items (--top shows more, --json all).")
