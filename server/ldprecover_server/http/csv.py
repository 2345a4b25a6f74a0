"""Answers as CSV (RFC 4180), for spreadsheets and data frames: a header line, then a line for each
row.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from fastapi import Query
from starlette.responses import Response

MEDIA_TYPE = "text/csv"

Format = Annotated[
    Literal["json", "csv"],
    Query(alias="format", description="json, or csv: the columns alone, with a header line."),
]
"""The form of an answer, of the query."""

_RUN = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a text begins with that spreadsheets run as a formula; the last four are the wide forms of
the first.
"""


def csv(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Response:
    """Return an answer in CSV, to be kept in a file of this name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(
        written(columns, rows), 200, headers, f"{MEDIA_TYPE}; charset=utf-8; header=present"
    )


def written(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV. Texts are quoted; numbers read back exactly; nothing stands for None.

    No text is one that a spreadsheet would run: it is led by an apostrophe, which spreadsheets take
    for text. A stranger's text belongs into the first column: a program that takes other commas
    splits lines elsewhere, but a line that begins with a quote not within its first cell.
    """
    lines = [columns, *rows]
    return "".join(",".join(map(_cell, line)) + "\r\n" for line in lines)


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
    text = str(value)
    text = f"'{text}" if text.startswith(_RUN) else text
    return '"' + text.replace('"', '""') + '"'
