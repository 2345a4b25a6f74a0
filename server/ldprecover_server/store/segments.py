"""The packed reports of a round, in segments: read back, and let go when their time is over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from ldprecover.tally import Tally
from ldprecover_server.errors import ReportsGoneError
from ldprecover_server.store.database import Database
from ldprecover_server.store.room import Room
from ldprecover_server.store.rounds import tally_of
from ldprecover_server.store.schema import rounds, segments

__all__ = ["Segments", "StoredReports"]

_AT_ONCE = 64  # segments


@dataclass(frozen=True)
class StoredReports:
    """The segments that a round had at one moment, and how many reports they hold.

    Iterating reads them, some at a time and in the same order each time; no transaction stays open meanwhile.
    """

    database: Database
    ids: Sequence[int]
    n: int

    def __iter__(self) -> Iterator[bytes]:
        """Yield the packed bytes of each segment. Raises ReportsGoneError when they are deleted meanwhile."""
        for start in range(0, len(self.ids), _AT_ONCE):
            wanted = self.ids[start : start + _AT_ONCE]
            query = sa.select(segments.c.data).where(segments.c.id.in_(wanted)).order_by(segments.c.id)
            with self.database.read() as connection:
                found = connection.scalars(query).all()
            if len(found) < len(wanted):
                raise ReportsGoneError("reports of the round were deleted while they were read")
            yield from found


class Segments(Room):
    """The segments of a database."""

    def tally_and_reports(self, seq: int, d: int) -> tuple[Tally, StoredReports]:
        """Return a round's tally, and its reports of the same moment, as far as they are kept."""
        with self.database.read() as connection:
            tally = tally_of(connection, seq, d)
            query = sa.select(segments.c.id, segments.c.n).where(segments.c.round == seq).order_by(segments.c.id)
            rows = connection.execute(query).all()
        return tally, StoredReports(self.database, [row.id for row in rows], sum(row.n for row in rows))

    def purge(self) -> int:
        """Delete the segments that their round's retention has let go; return how many."""
        # A segment's reports came during its hour: none is deleted before its time, none kept an hour longer.
        over = segments.c.hour + rounds.c.retention < self.hour()
        let_go = sa.select(segments.c.id).join(rounds, segments.c.round == rounds.c.seq)
        with self.database.write() as connection:
            deleted = connection.execute(sa.delete(segments).where(segments.c.id.in_(let_go.where(over)))).rowcount
        if deleted:
            self.database.forget()
        return deleted
