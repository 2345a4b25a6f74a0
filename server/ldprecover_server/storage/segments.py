"""The packed reports of a round, read from its segments in pieces of limited size."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ldprecover import FrequencyOracle
from ldprecover.counting.tally import Tally
from ldprecover_server.errors import ReportsGoneError, RoundNotFoundError
from ldprecover_server.storage.base import Repository
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.rounds import NOT_GONE, StoredRound, read_round, sum_tallies
from ldprecover_server.storage.schema import rounds, segments, tallies, total

PIECE_BYTES = 1 << 20
"""Maximum size of a piece of packed reports, unless a single report is larger."""

_LIST_LIMIT = 1024  # segments listed by one statement
_RECENT_IDS = 10_000  # a commit that began this many segments ago has ended


@dataclass(frozen=True)
class _Version:
    """Identifies the reports that a round had at one moment, and whether they changed since."""

    counted: int
    purged: int
    n: int
    """Number of stored reports."""
    rewrites: int
    last: int
    """The highest id."""
    recent: frozenset[int]
    """Which of the last `_RECENT_IDS` ids existed; on Postgres ids do not commit in order."""

    @classmethod
    def read(cls, connection: sa.Connection, seq: int) -> "_Version | None":
        """Return the version that a transaction sees; None for a deleted round."""
        query = sa.select(rounds.c.purged, rounds.c.rewrites, rounds.c.retention)
        query = query.where(rounds.c.seq == seq, NOT_GONE)
        if (row := connection.execute(query).one_or_none()) is None:
            return None
        ids = sa.select(segments.c.id).where(segments.c.round == seq).order_by(segments.c.id.desc())
        last = connection.scalar(ids.limit(1)) or 0
        recent = frozenset(connection.scalars(ids.where(segments.c.id > last - _RECENT_IDS)))
        counts = sa.select(total(tallies.c.n)).where(tallies.c.round == seq)
        counted = int(connection.scalars(counts).one())
        n = 0 if row.retention == 0 else counted - row.purged
        return cls(counted, row.purged, n, row.rewrites, last, recent)

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
        self._was_read = False

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces. Raises ReportsGoneError if reports were deleted or purged since.

        Unlinking changes the order only: unlinked reports are read unless an earlier iteration
        began before.
        """
        with self._database.read() as connection:
            version = self._current(_Version.read(connection, self._seq))
            self._version, self._was_read = version, True
            after = n = 0
            upto = segments.c.id <= version.last
            while listed := first_bytes(list_segments(connection, self._seq, after, upto)):
                included = [row for row in listed if version.includes(row.id)]
                yield from read_segments(self._database, connection, self._seq, included)
                after, n = listed[-1].id, n + sum(row.n for row in included)
        if n != self.n:
            raise ReportsGoneError(f"the round should keep {self.n} reports, and {n} were found")

    def _current(self, current: _Version | None) -> _Version:
        """Return the version whose segments to read."""
        version = self._version
        if current is not None and current.rewrites == version.rewrites:
            return version
        if (
            self._was_read
            or current is None
            or (current.counted, current.purged) != (version.counted, version.purged)
        ):
            raise ReportsGoneError(
                "reports of the round were deleted or unlinked while they were read"
            )
        return current


class Segments(Repository):
    """The packed reports of a database."""

    def evidence(self, seq: int, size: int) -> tuple[Tally, bool]:
        """Return a round's tally, and whether every counted report is stored.

        The cost depends on the summary's `size` alone. Raises RoundNotFoundError.
        """
        with self.database.read() as connection:
            tally = sum_tallies(connection, seq, size)
            row = connection.execute(
                sa.select(rounds.c.retention, rounds.c.purged).where(rounds.c.seq == seq)
            ).one()
        return tally, row.retention != 0 and row.purged == 0

    def reports(self, seq: int) -> StoredReports:
        """Return the reports that a round stores now. Raises RoundNotFoundError."""
        with self.database.read() as connection:
            return self._reports(connection, seq)

    def tally_and_reports(self, seq: int, size: int) -> tuple[Tally, StoredReports, StoredRound]:
        """Return a round's tally, its stored reports, and the round, all at one moment."""
        with self.database.read() as connection:
            tally = sum_tallies(connection, seq, size)
            return tally, self._reports(connection, seq), read_round(connection, seq)

    def _reports(self, connection: sa.Connection, seq: int) -> StoredReports:
        version = _Version.read(connection, seq)
        if version is None:
            raise RoundNotFoundError("the round was deleted")
        return StoredReports(self.database, seq, version)


def list_segments(
    connection: sa.Connection, seq: int, after: int, *conditions: sa.ColumnElement[bool]
) -> list[Any]:
    """Return id, hour, n and size in bytes of a round's next segments after an id."""
    size = sa.func.length(segments.c.data).label("size")
    query = sa.select(segments.c.id, segments.c.hour, segments.c.n, size).where(
        segments.c.round == seq, segments.c.id > after, *conditions
    )
    # Fetching row by row takes twice as long.
    return list(connection.execute(query.order_by(segments.c.id).limit(_LIST_LIMIT)).all())


def is_undamaged(oracle: FrequencyOracle) -> sa.ColumnElement[bool]:
    """Return the condition that a segment has the bytes of its reports."""
    length = sa.func.length(segments.c.data)
    return sa.and_(segments.c.n > 0, length == segments.c.n * oracle.wire.size)


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
