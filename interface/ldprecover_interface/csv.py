"""Tables as CSV (RFC 4180): a header line, then one line per row."""

import io
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Text with these beginnings is a formula to spreadsheets; the last four are full-width forms."""


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return rows as CSV in UTF-8: text in quotes, exact numbers, and None as nothing.

    Text that a spreadsheet would run as a formula begins with an apostrophe. Text of anonymous
    callers belongs in the first column: programs with another separator split lines elsewhere, but
    none splits a quoted cell at the beginning of a line.
    """
    text = io.BytesIO()  # of 100,000 rows, a list of lines would take as much again, and its join
    for line in chain([columns], rows):
        text.write(f"{','.join(map(_cell, line))}\r\n".encode())
    return text.getvalue()


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
    text = str(value)
    text = f"'{text}" if text.startswith(_FORMULA_STARTS) else text
    return '"' + text.replace('"', '""') + '"'
