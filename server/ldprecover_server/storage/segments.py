"""The packed reports of a round, read back from its segments by bytes."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ldprecover.counting.tally import Tally
from ldprecover_server.errors import ReportsGoneError, RoundNotFoundError
from ldprecover_server.storage.base import Room
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.rounds import tally_of
from ldprecover_server.storage.schema import rounds, segments, tallies

PIECE_BYTES = 1 << 20
"""Of packed reports that are read at once, unless a single report is larger."""

_LISTED = 1024  # segments; so many of the smallest are read at once

_RECENT = 10_000  # segments; a commit that began before the last of so many has long ended


@dataclass(frozen=True)
class _Moment:
    """What tells later which reports of a round were there, and whether they still are."""

    counted: int
    purged: int
    rewrites: int
    last: int
    """No later segment was there."""
    recent: frozenset[int]
    """Of the last ids those that were there: on Postgres a commit may end after one that has a
    later id.
    """

    @classmethod
    def now(cls, connection: sa.Connection, seq: int) -> "_Moment | None":
        """Return the moment that a transaction sees; None for a round that is gone."""
        known = sa.select(rounds.c.purged, rounds.c.rewrites).where(
            rounds.c.seq == seq, rounds.c.state != "gone"
        )
        if (row := connection.execute(known).one_or_none()) is None:
            return None
        total = sa.select(sa.func.coalesce(sa.func.sum(tallies.c.n), 0)).where(
            tallies.c.round == seq
        )
        ids = sa.select(segments.c.id).where(segments.c.round == seq).order_by(segments.c.id.desc())
        last = connection.scalar(ids.limit(1)) or 0
        recent = frozenset(connection.scalars(ids.where(segments.c.id > last - _RECENT)))
        return cls(int(connection.scalars(total).one()), row.purged, row.rewrites, last, recent)

    def had(self, id: int) -> bool:
        return id <= self.last - _RECENT or id in self.recent


class StoredReports:
    """The reports that a round had at one moment, as far as they are kept: `n` of them.

    Iterating yields them packed, whole, in pieces of up to PIECE_BYTES, and holds no more. They
    come in the same order each time, all of one time in one transaction: whoever reads should not
    dawdle.
    """

    def __init__(self, database: Database, seq: int, moment: _Moment, kept: int) -> None:
        self.n = kept
        self._database = database
        self._seq = seq
        self._moment = moment
        self._read = False

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces.

        Raises ReportsGoneError when reports have been deleted or purged since that moment. Reports
        that have been mixed are the same in another order: they are read if none was before.
        """
        with self._database.read() as connection:
            moment = self._find(_Moment.now(connection, self._seq))
            self._moment, self._read = moment, True
            after = n = 0
            while batch := leading(list_segments(connection, self._seq, after, moment.last)):
                wanted = [row for row in batch if moment.had(row.id)]
                yield from read_segments(self._database, connection, self._seq, wanted)
                after, n = batch[-1].id, n + sum(row.n for row in wanted)
        if n != self.n:
            raise ReportsGoneError(
                f"of the {self.n} reports that the round should keep {n} were found"
            )

    def _find(self, now: _Moment | None) -> _Moment:
        """Return the moment whose segments are to be read."""
        then = self._moment
        if now is not None and now.rewrites == then.rewrites:
            return then
        if self._read or now is None or (now.counted, now.purged) != (then.counted, then.purged):
            raise ReportsGoneError(
                "reports of the round were deleted, mixed or set aside since they were asked for"
            )
        return now


class Segments(Room):
    """The reports of a database."""

    def evidence(self, seq: int, size: int) -> tuple[Tally, bool]:
        """Return a round's tally, and whether every report in it is kept. Raises
        RoundNotFoundError.

        It costs the size of the summary, whatever the number of reports.
        """
        with self.database.read() as connection:
            tally = tally_of(connection, seq, size)
            row = connection.execute(
                sa.select(rounds.c.retention, rounds.c.purged).where(rounds.c.seq == seq)
            ).one()
        return tally, row.retention != 0 and row.purged == 0

    def reports(self, seq: int) -> StoredReports:
        """Return the reports that a round keeps now. Raises RoundNotFoundError."""
        with self.database.read() as connection:
            return self._reports(connection, seq)

    def tally_and_reports(self, seq: int, size: int) -> tuple[Tally, StoredReports]:
        """Return a round's tally, and its reports of the same moment, as far as they are kept."""
        with self.database.read() as connection:
            return tally_of(connection, seq, size), self._reports(connection, seq)

    def _reports(self, connection: sa.Connection, seq: int) -> StoredReports:
        moment = _Moment.now(connection, seq)
        if moment is None:
            raise RoundNotFoundError("the round was deleted")
        none = connection.scalar(sa.select(rounds.c.retention).where(rounds.c.seq == seq)) == 0
        return StoredReports(
            self.database, seq, moment, 0 if none else moment.counted - moment.purged
        )


def list_segments(
    connection: sa.Connection,
    seq: int,
    after: int,
    upto: int | None = None,
    *which: sa.ColumnElement[bool],
    table: sa.Table = segments,
) -> list[Any]:
    """Return the next segments of a round after an id, without their reports: id, hour, n and size
    in bytes.

    Or those of another table of packed reports, the quarantine.
    """
    size = sa.func.length(table.c.data).label("size")
    query = sa.select(table.c.id, table.c.hour, table.c.n, size).where(
        table.c.round == seq, table.c.id > after, *which
    )
    if upto is not None:
        query = query.where(table.c.id <= upto)
    return list(
        connection.execute(query.order_by(table.c.id).limit(_LISTED)).all()
    )  # row by row takes twice as long


def leading(listed: list[Any], size: int = PIECE_BYTES) -> list[Any]:
    """Return the first segments, as many as have so many bytes together, and one at least."""
    for i, row in enumerate(listed):
        size -= row.size
        if size < 0:
            return listed[: max(i, 1)]
    return listed


def read_segments(
    database: Database, connection: sa.Connection, seq: int, wanted: list[Any]
) -> Generator[bytes, None, None]:
    """Yield the reports of listed segments: in one piece, or in several of whole reports where one
    segment is large.

    Whoever does not read them to the end closes the generator before the connection.
    """
    if not wanted:
        return
    if len(wanted) == 1 and wanted[0].size > PIECE_BYTES:
        (row,) = wanted
        each = max(1, row.size // max(row.n, 1))  # bytes of a report
        yield from database.slices(connection, row.id, row.size, max(1, PIECE_BYTES // each) * each)
        return
    ids = {row.id for row in wanted}
    query = sa.select(segments.c.id, segments.c.data).where(segments.c.round == seq)
    query = query.where(segments.c.id.between(wanted[0].id, wanted[-1].id)).order_by(segments.c.id)
    yield b"".join([data for id, data in connection.execute(query).all() if id in ids])
