"""A consistent view of a round and its reports by hour, for export as a dataset."""

import contextlib
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import sqlalchemy as sa

from ldprecover import RoundParameters
from ldprecover.counting.tally import Tally
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.rounds import StoredRound, find_round, read_parameters, sum_tallies
from ldprecover_server.storage.schema import segments
from ldprecover_server.storage.segments import first_bytes, list_segments, read_segments

_COUNT_LIMIT = 100_000  # segments counted by one statement


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A round, its tally and its stored reports, all at one moment.

    `hours` maps each hour to its number of reports. Later commits, unlinking, filters and purges do
    not change a snapshot. It lasts as long as its transaction.
    """

    round: StoredRound
    parameters: RoundParameters
    tally: Tally
    hours: Mapping[int, int]
    _database: Database
    _connection: sa.Connection

    def pieces(self) -> Generator[tuple[int, bytes], None, None]:
        """Yield hour and packed reports, one piece in memory at a time.

        A caller that stops early closes the generator before the snapshot ends.
        """
        seq, after = self.round.seq, 0
        while listed := list_segments(self._connection, seq, after):
            after = listed[-1].id
            for hour, group in groupby(listed, key=lambda row: row.hour):
                remaining = list(group)
                while batch := first_bytes(remaining):
                    with contextlib.closing(
                        read_segments(self._database, self._connection, seq, batch)
                    ) as pieces:
                        for piece in pieces:
                            yield hour, piece
                    remaining = remaining[len(batch) :]


@contextlib.contextmanager
def open_snapshot(database: Database, identifier: str) -> Iterator[Snapshot]:
    """Yield a round as it is now. Raises RoundNotFoundError and PluginNotLoadedError."""
    with database.read() as connection:
        round = find_round(connection, identifier)
        parameters = read_parameters(connection, round.seq)
        tally = sum_tallies(connection, round.seq, parameters.oracle.summary_size)
        hours = _count_hours(connection, round.seq)
        yield Snapshot(round, parameters, tally, hours, database, connection)


def _count_hours(connection: sa.Connection, seq: int) -> dict[int, int]:
    """Return the number of reports by hour."""
    hours: dict[int, int] = {}
    after = 0
    while True:
        query = sa.select(segments.c.id, segments.c.hour, segments.c.n)
        query = query.where(segments.c.round == seq, segments.c.id > after, segments.c.n > 0)
        page = query.order_by(segments.c.id).limit(_COUNT_LIMIT).subquery()
        by_hour = sa.select(
            page.c.hour, sa.func.sum(page.c.n).label("n"), sa.func.max(page.c.id).label("last")
        )
        rows = connection.execute(by_hour.group_by(page.c.hour)).all()
        if not rows:
            return hours
        for row in rows:
            hours[row.hour] = hours.get(row.hour, 0) + int(row.n)
        after = max(row.last for row in rows)
