"""Tables and data frames of a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any


def html_table(columns: Iterable[str], rows: Iterable[Iterable[str]], caption: str) -> str:
    """Return a table in HTML. Texts are escaped, because labels and names are input."""

    def line(tag: str, cells: Iterable[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return (
        f"<table><caption>{escape(caption)}</caption><thead>{line('th', columns)}</thead>"
        f"<tbody>{body}</tbody></table>"
    )


def data_frame(columns: Mapping[str, Any], items: Sequence[str] | None = None) -> Any:
    """Return columns as a pandas data frame, by item if `items` are given.

    Raises ImportError without pandas.
    """
    try:
        import pandas as pd
    except ModuleNotFoundError:
        message = "a data frame needs pandas: pip install 'ldprecover[experiments]'"
        raise ImportError(message, name="pandas") from None
    return pd.DataFrame(
        dict(columns), index=None if items is None else pd.Index(items, name="item")
    )
