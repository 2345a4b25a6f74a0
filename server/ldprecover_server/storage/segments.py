"""The packed reports of a round, read from its segments in pieces of limited size."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ldprecover.reports.tally import Tally
from ldprecover_server.errors import ReportsGoneError, RoundNotFoundError
from ldprecover_server.storage.database import Database, Repository
from ldprecover_server.storage.schema import NOT_GONE, rounds, segments, tallies, total
from ldprecover_server.storage.tallies import sum_tallies

PIECE_BYTES = 1 << 20
"""Maximum size of a piece of packed reports, unless a single report is larger."""

_LIST_LIMIT = 1024  # segments listed by one statement
_RECENT_IDS = 10_000  # a commit that began this many segments ago has ended


@dataclass(frozen=True)
class _Version:
    """Identifies the reports that a round had at one moment; segments never change."""

    n: int
    """Number of stored reports."""
    last: int
    """The highest id."""
    recent: frozenset[int]
    """Which of the last `_RECENT_IDS` ids existed; on Postgres ids do not commit in order."""

    @classmethod
    def read(cls, connection: sa.Connection, seq: int) -> "_Version":
        """Return the version that a transaction sees. Raises RoundNotFoundError."""
        retention = _retention(connection, seq)
        if retention is None:
            raise RoundNotFoundError("the round was deleted")
        ids = sa.select(segments.c.id).where(segments.c.round == seq).order_by(segments.c.id.desc())
        last = connection.scalar(ids.limit(1)) or 0
        recent = frozenset(connection.scalars(ids.where(segments.c.id > last - _RECENT_IDS)))
        counts = sa.select(total(tallies.c.n)).where(tallies.c.round == seq)
        n = 0 if retention == "none" else int(connection.scalars(counts).one())
        return cls(n, last, recent)

    def includes(self, id: int) -> bool:
        """Return whether a segment with an id up to `last` existed."""
        return id <= self.last - _RECENT_IDS or id in self.recent


class StoredReports:
    """The `n` reports that a round kept at one moment.

    Iteration yields them packed, in pieces of up to PIECE_BYTES, one piece in memory at a time, in
    the same order each time. Each iteration is one transaction, so readers should be quick.
    """

    def __init__(self, database: Database, seq: int, version: _Version) -> None:
        self.n = version.n
        self._database = database
        self._seq = seq
        self._version = version

    def __iter__(self) -> Generator[bytes, None, None]:
        """Yield the pieces. Raises ReportsGoneError if the round was deleted since."""
        version = self._version
        with self._database.read() as connection:
            if _retention(connection, self._seq) is None:
                raise ReportsGoneError("the round was deleted while its reports were read")
            after = n = 0
            upto = segments.c.id <= version.last
            while listed := first_bytes(list_segments(connection, self._seq, after, upto)):
                included = [row for row in listed if version.includes(row.id)]
                yield from read_segments(self._database, connection, self._seq, included)
                after, n = listed[-1].id, n + sum(row.n for row in included)
        if n != self.n:
            raise ReportsGoneError(f"the round should keep {self.n} reports, and {n} were found")


class Segments(Repository):
    """The packed reports of a database."""

    def tally_and_reports(self, seq: int, size: int) -> tuple[Tally, StoredReports]:
        """Return a round's tally and its stored reports, both at one moment."""
        with self.database.read() as connection:
            tally = sum_tallies(connection, [seq], size)
            reports = StoredReports(self.database, seq, _Version.read(connection, seq))
            return tally, reports


def _retention(connection: sa.Connection, seq: int) -> str | None:
    """Return a round's retention; None for a deleted round."""
    query = sa.select(rounds.c.retention).where(rounds.c.seq == seq, NOT_GONE)
    return connection.scalar(query)


def list_segments(
    connection: sa.Connection, seq: int, after: int, *conditions: sa.ColumnElement[bool]
) -> list[Any]:
    """Return id, n and size in bytes of a round's next segments after an id."""
    size = sa.func.length(segments.c.data).label("size")
    query = sa.select(segments.c.id, segments.c.n, size).where(
        segments.c.round == seq, segments.c.id > after, *conditions
    )
    # Fetching row by row takes twice as long.
    return list(connection.execute(query.order_by(segments.c.id).limit(_LIST_LIMIT)).all())


def first_bytes(listed: list[Any], size: int = PIECE_BYTES) -> list[Any]:
    """Return the first segments of at most `size` bytes together, and at least one."""
    for i, row in enumerate(listed):
        size -= row.size
        if size < 0:
            return listed[: max(i, 1)]
    return listed


def read_segments(
    database: Database, connection: sa.Connection, seq: int, listed: list[Any]
) -> Generator[bytes, None, None]:
    """Yield the reports of listed segments in one piece; split a single large segment.

    A caller that stops early closes the generator before the connection.
    """
    if not listed:
        return
    if len(listed) == 1 and listed[0].size > PIECE_BYTES:
        (row,) = listed
        report_bytes = max(1, row.size // max(row.n, 1))
        step = max(1, PIECE_BYTES // report_bytes) * report_bytes
        yield from database.read_slices(connection, row.id, row.size, step)
        return
    ids = {row.id for row in listed}
    query = sa.select(segments.c.id, segments.c.data).where(segments.c.round == seq)
    query = query.where(segments.c.id.between(listed[0].id, listed[-1].id)).order_by(segments.c.id)
    yield b"".join([data for id, data in connection.execute(query).all() if id in ids])
