"""Values of megabytes, read in slices."""

import io
import itertools
from typing import Any

import sqlalchemy as sa

_SLICE_BYTES = 1 << 20


def read_large_value(
    connection: sa.Connection, column: sa.ColumnElement[Any], *conditions: sa.ColumnElement[bool]
) -> bytes | None:
    """Return the bytes in a column of the one row with these conditions; None without it.

    A connection to Postgres keeps a buffer of twice the largest value that it has read, and reading
    it whole takes three times as much again.
    """
    value = io.BytesIO()
    for start in itertools.count(1, _SLICE_BYTES):
        part = sa.func.substr(column, start, _SLICE_BYTES, type_=sa.LargeBinary)
        piece: bytes | None = connection.scalar(sa.select(part).where(*conditions))
        if piece is None:
            return None
        value.write(piece)
        if len(piece) < _SLICE_BYTES:
            break
    return value.getvalue()
