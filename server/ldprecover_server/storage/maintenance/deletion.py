"""What is deleted, in pieces: rounds, and segments past their retention.

A deleted round is marked gone in one small transaction: it is in no answer any more, its name is
free, and no commit adds to it. Its rows, which may be millions, then go in pieces of a transaction
each, now and by housekeeping, until none is left; whoever dies on the way leaves the rest to the
next. Several processes take turns.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from ldprecover_server.errors import RoundNotFoundError
from ldprecover_server.storage.base import Room
from ldprecover_server.storage.jobs import delete_jobs
from ldprecover_server.storage.key_encoding import of_round
from ldprecover_server.storage.rounds import StoredRound, end_round, find
from ldprecover_server.storage.schema import (
    jobs,
    metadata,
    quarantine,
    rounds,
    segments,
    submission_keys,
)
from ldprecover_server.storage.segments import leading, list_segments

COUNTED_AT_MOST = 1_000_000

_SECONDS = 1.0  # that whoever deletes a round waits for its rows to go
_BYTES = 8 << 20  # of segments that one transaction deletes
_SHORT, _LONG = (
    0.02,
    0.05,
)  # seconds that one transaction should take: a SQLite commit waits as long
_FIRST, _MOST = 256, 1 << 16  # rows of one transaction

_OTHERS = [
    table
    for table in metadata.sorted_tables
    if table not in (segments, quarantine)
    and any(key.column is rounds.c.seq for key in table.foreign_keys)
]
"""Every other table of a round's rows: so few of them that they go in one transaction."""

GoOn = Callable[[], bool]
"""Tells whether there is time for another piece."""

Piece = Callable[[int], int]
"""Works on so many rows at the most, in a transaction of its own; returns how many it found."""


@dataclass(frozen=True)
class Progress:
    """How many rows were worked on, and whether all is done."""

    rows: int
    done: bool


def for_seconds(seconds: float, unless: GoOn = lambda: False) -> GoOn:
    """Return what lets work go on for so long from now, unless told otherwise."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end and not unless()


def in_pieces(piece: Piece, go_on: GoOn) -> Progress:
    """Run `piece` with a number of rows until it finds none, while there is time; return how many
    it found.

    The number follows the time that a piece takes, and after each the database is left to others
    for as long.
    """
    limit, rows = _FIRST, 0
    while go_on():
        begun = time.monotonic()
        found = piece(limit)
        if not found:
            return Progress(rows, True)
        rows += found
        spent = time.monotonic() - begun
        limit = (
            min(2 * limit, _MOST)
            if spent < _SHORT
            else max(limit // 2, 1)
            if spent > _LONG
            else limit
        )
        time.sleep(min(spent, _LONG))
    return Progress(rows, False)


class Deletion(Room):
    """The end of rounds and of segments."""

    forgotten = True
    """Whether all that was deleted has left the disk, as far as that is in our hands."""

    def delete_round(self, identifier: str) -> StoredRound:
        """Delete a round with everything it holds, and return what it was. Raises
        RoundNotFoundError.

        It is gone at once; what remains of many rows after a second is left to `delete_rest`.
        """
        with self.database.write() as connection:
            found = find(connection, identifier)
            mark = f"!{found.seq}"  # no round can be called so
            gone = {"state": "gone", "id": mark, "name": mark, "items": b"[]", "series": None}
            if not end_round(self.database, connection, found.seq, rounds.c.state != "gone", gone):
                raise RoundNotFoundError("the round was deleted")
            # They would go with the round's own row, and their processes would work on until then.
            delete_jobs(connection, jobs.c.round == found.seq)
        self.delete_rest(for_seconds(_SECONDS))
        return found

    def delete_rest(self, go_on: GoOn = lambda: True) -> Progress:
        """Delete what is left of rounds that are gone, while there is time. Raises ServiceError."""
        rows, gone = 0, self._gone()
        for seq in gone:
            for piece in (
                self._delete_segments(seq, segments),
                self._delete_keys(seq),
                self._delete_segments(seq, quarantine),
            ):
                progress = in_pieces(piece, go_on)
                rows += progress.rows
                if not progress.done:
                    return Progress(rows, False)
            with self.database.write() as connection:
                for other in _OTHERS:
                    connection.execute(sa.delete(other).where(other.c.round == seq))
                connection.execute(sa.delete(rounds).where(rounds.c.seq == seq))
        if gone:
            self.forget()
        return Progress(rows, True)

    def rows_to_delete(self) -> int:
        """Return how many keys and segments are left of rounds that are gone.

        Of either in a round 1,000,000 stands for as many or more: to count all would take long.
        """
        with self.database.read() as connection:
            return sum(rows_left(connection, seq) for seq in self._gone())

    def purge(self, go_on: GoOn = lambda: True) -> Progress:
        """Delete the segments that their round's retention has let go, while there is time. Raises
        ServiceError.
        """
        now, rows, done = self.hour(), 0, True
        with self.database.read() as connection:
            bounded = sa.select(rounds.c.seq, rounds.c.retention)
            found = connection.execute(
                bounded.where(rounds.c.retention > 0, rounds.c.state != "gone")
            ).all()
        for round in found:
            # A segment's reports came during its hour: none is deleted before its time, none kept
            # an hour longer.
            for table in (segments, quarantine):
                progress = in_pieces(
                    self._purge_segments(round.seq, table, now - round.retention), go_on
                )
                rows, done = rows + progress.rows, done and progress.done
        if rows:
            self.forget()
        return Progress(rows, done)

    def forget(self) -> None:
        """See that what was deleted leaves the disk, as far as that is in our hands; `forgotten`
        says whether it has.

        Where others read it may not, and is to be tried again. Raises StoreUnavailableError.
        """
        self.forgotten = False
        self.forgotten = self.database.forget()

    def _gone(self) -> Sequence[int]:
        with self.database.read() as connection:
            return connection.scalars(sa.select(rounds.c.seq).where(rounds.c.state == "gone")).all()

    def _delete_segments(self, seq: int, table: sa.Table) -> Piece:
        def piece(limit: int) -> int:
            with self.database.write() as connection:
                self.database.take_turn(connection)
                listed = leading(list_segments(connection, seq, 0, table=table)[:limit], _BYTES)
                if not listed:
                    return 0
                first = sa.and_(table.c.round == seq, table.c.id <= listed[-1].id)
                return connection.execute(sa.delete(table).where(first)).rowcount

        return piece

    def _delete_keys(self, seq: int) -> Piece:
        # In order, and not from the first one each time: what is deleted stays in Postgres' index
        # for a while.
        left = of_round(submission_keys.c.key, seq)

        def piece(limit: int) -> int:
            nonlocal left
            with self.database.write() as connection:
                self.database.take_turn(connection)
                key = submission_keys.c.key
                found = connection.scalars(
                    sa.select(key).where(left).order_by(key).limit(limit)
                ).all()
                if found:
                    connection.execute(sa.delete(submission_keys).where(left, key <= found[-1]))
                    left = sa.and_(of_round(key, seq), key > found[-1])
                return len(found)

        return piece

    def _purge_segments(self, seq: int, table: sa.Table, hour: int) -> Piece:
        """Delete segments of hours before this one, or what was set aside in them."""
        over = table.c.hour < hour

        def piece(limit: int) -> int:
            with self.database.write() as connection:
                self.database.take_turn(connection)
                listed = leading(
                    list_segments(connection, seq, 0, None, over, table=table)[:limit], _BYTES
                )
                if not listed:
                    return 0
                first = sa.and_(table.c.round == seq, over, table.c.id <= listed[-1].id)
                purged = connection.scalars(
                    sa.delete(table).where(first).returning(table.c.n)
                ).all()
                if table is segments:
                    count = {
                        "purged": rounds.c.purged + sum(purged),
                        "rewrites": rounds.c.rewrites + 1,
                    }
                    connection.execute(sa.update(rounds).where(rounds.c.seq == seq).values(count))
                return len(purged)

        return piece


def rows_left(connection: sa.Connection, seq: int) -> int:
    """Return how many keys and segments a round has, of either COUNTED_AT_MOST for as many or
    more.
    """
    keys = count_at_most(connection, submission_keys, of_round(submission_keys.c.key, seq))
    return keys + sum(
        count_at_most(connection, table, table.c.round == seq) for table in (segments, quarantine)
    )


def count_at_most(connection: sa.Connection, table: sa.Table, which: sa.ColumnElement[bool]) -> int:
    """Return how many rows there are, COUNTED_AT_MOST for as many or more."""
    some = (
        sa.select(sa.literal(1)).select_from(table).where(which).limit(COUNTED_AT_MOST).subquery()
    )
    return int(connection.scalars(sa.select(sa.func.count()).select_from(some)).one())
