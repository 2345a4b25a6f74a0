"""A consistent view of a round and its reports, for export as a dataset."""

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from ldprecover import RoundParameters
from ldprecover.counting.tally import Tally
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.rounds import StoredRound, find_round, read_parameters, sum_tallies
from ldprecover_server.storage.segments import first_bytes, list_segments, read_segments


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A round, its tally and its stored reports, all at one moment.

    Later commits do not change a snapshot. It lasts as long as its transaction.
    """

    round: StoredRound
    parameters: RoundParameters
    tally: Tally
    _database: Database
    _connection: sa.Connection

    def pieces(self) -> Generator[bytes, None, None]:
        """Yield packed reports, one piece in memory at a time.

        A caller that stops early closes the generator before the snapshot ends.
        """
        seq, after = self.round.seq, 0
        while listed := list_segments(self._connection, seq, after):
            after, remaining = listed[-1].id, listed
            while batch := first_bytes(remaining):
                yield from read_segments(self._database, self._connection, seq, batch)
                remaining = remaining[len(batch) :]


@contextlib.contextmanager
def open_snapshot(database: Database, identifier: str) -> Iterator[Snapshot]:
    """Yield a round as it is now. Raises RoundNotFoundError and PluginNotLoadedError."""
    with database.read() as connection:
        round = find_round(connection, identifier)
        parameters = read_parameters(connection, round.seq)
        tally = sum_tallies(connection, round.seq, parameters.oracle.summary_size)
        yield Snapshot(round, parameters, tally, database, connection)
