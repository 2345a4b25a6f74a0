"""Work in chunks: one short transaction each, so that commits never wait for long."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sqlalchemy as sa

COUNT_LIMIT = 1_000_000

_FIRST_ROWS, _MAX_ROWS = 256, 1 << 16  # rows of one transaction
_SHORT_SECONDS, _LONG_SECONDS = 0.02, 0.05  # a SQLite commit waits for the whole transaction

HasTime = Callable[[], bool]
"""Returns whether there is time for another chunk."""

Chunk = Callable[[int], int]
"""Works on at most `limit` rows in one transaction; returns how many it found, 0 at the end."""


@dataclass(frozen=True)
class Progress:
    """The number of processed rows, and whether the work is done."""

    rows: int
    done: bool


def for_seconds(seconds: float, unless: HasTime = lambda: False) -> HasTime:
    """Return a function that is true for `seconds` from now, or until `unless` is true."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end and not unless()


def run_chunks(chunk: Chunk, has_time: HasTime) -> Progress:
    """Run `chunk` until it finds no rows or time is up; return how many rows it found.

    The number of rows adapts to the duration of a chunk. After each chunk the database is free for
    the same time.
    """
    limit, rows = _FIRST_ROWS, 0
    while has_time():
        started = time.monotonic()
        n = chunk(limit)
        if not n:
            return Progress(rows, True)
        rows += n
        seconds = time.monotonic() - started
        if seconds < _SHORT_SECONDS:
            limit = min(2 * limit, _MAX_ROWS)
        elif seconds > _LONG_SECONDS:
            limit = max(limit // 2, 1)
        time.sleep(min(seconds, _LONG_SECONDS))
    return Progress(rows, False)


def run_each(chunks: Iterable[Chunk], has_time: HasTime) -> Progress:
    """Run each chunk to its end before the next is taken, while there is time."""
    rows = 0
    for chunk in chunks:
        progress = run_chunks(chunk, has_time)
        rows += progress.rows
        if not progress.done:
            return Progress(rows, False)
    return Progress(rows, True)


def count_up_to_limit(
    connection: sa.Connection, table: sa.Table, condition: sa.ColumnElement[bool]
) -> int:
    """Return the number of rows, at most COUNT_LIMIT."""
    page = sa.select(sa.literal(1)).select_from(table).where(condition).limit(COUNT_LIMIT)
    return int(connection.scalars(sa.select(sa.func.count()).select_from(page.subquery())).one())
