"""A round as one transaction sees it, with its reports by hour: for a dataset of them."""

import contextlib
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import sqlalchemy as sa

from ldprecover import RoundParameters
from ldprecover.counting.tally import Tally
from ldprecover.evidence.quarantine import Quarantined
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.rounds import Rounds, StoredRound, find, parameters_of, tally_of
from ldprecover_server.storage.schema import rounds, segments
from ldprecover_server.storage.segments import leading, list_segments, read_segments

_COUNTED = 100_000  # segments in one statement


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A round, its tally and the reports that are kept, all of one moment; `hours` is how many came
    in each hour.

    Neither what is mixed, screened or purged meanwhile nor what arrives changes it. It lasts as
    long as its transaction.
    """

    round: StoredRound
    parameters: RoundParameters
    tally: Tally
    hours: Mapping[int, int]
    _database: Database
    _connection: sa.Connection

    @property
    def quarantined(self) -> Quarantined | None:
        """Reports that were set aside, and are in no tally; None for a round that sets none
        aside.
        """
        return self.round.quarantined

    def pieces(self) -> Generator[tuple[int, bytes], None, None]:
        """Yield the reports, packed, each piece with its hour; a piece at a time is held.

        Whoever does not read them to the end closes the generator before the snapshot ends.
        """
        seq, after = self.round.seq, 0
        while listed := list_segments(self._connection, seq, after):
            after = listed[-1].id
            for hour, rows in groupby(listed, key=lambda row: row.hour):
                left = list(rows)
                while batch := leading(left):
                    with contextlib.closing(
                        read_segments(self._database, self._connection, seq, batch)
                    ) as read:
                        for piece in read:
                            yield hour, piece
                    left = left[len(batch) :]


class Snapshots(Rounds):
    """The moments of a database."""

    @contextlib.contextmanager
    def snapshot(self, identifier: str) -> Iterator[Snapshot]:
        """Yield a round as it is now. Raises RoundNotFoundError and PluginNotLoadedError."""
        with self.database.read() as connection:
            round = find(connection, identifier)
            parameters = parameters_of(
                connection.execute(sa.select(rounds).where(rounds.c.seq == round.seq)).one()
            )
            tally = tally_of(connection, round.seq, parameters.oracle.summary_size)
            yield Snapshot(
                round, parameters, tally, _hours(connection, round.seq), self.database, connection
            )


def _hours(connection: sa.Connection, seq: int) -> dict[int, int]:
    """Return the number of reports that came in each hour."""
    hours: dict[int, int] = {}
    after = 0
    while True:
        some = sa.select(segments.c.id, segments.c.hour, segments.c.n)
        some = some.where(segments.c.round == seq, segments.c.id > after, segments.c.n > 0)
        these = some.order_by(segments.c.id).limit(_COUNTED).subquery()
        total = sa.select(
            these.c.hour, sa.func.sum(these.c.n).label("n"), sa.func.max(these.c.id).label("last")
        )
        found = connection.execute(total.group_by(these.c.hour)).all()
        if not found:
            return hours
        for row in found:
            hours[row.hour] = hours.get(row.hour, 0) + int(row.n)
        after = max(row.last for row in found)
