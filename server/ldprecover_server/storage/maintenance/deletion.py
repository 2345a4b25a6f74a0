"""Deletes rounds, alone or with their form, in chunks.

One small transaction marks a deleted round as gone: it is in no response any more, its name is
free, and no commit adds to it. Its rows, which may be millions, are deleted in chunks by the
deleting call and by housekeeping. After a crash the next process continues. Several processes take
turns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from ldprecover_server.errors import RoundNotFoundError
from ldprecover_server.storage.acts import ActStore
from ldprecover_server.storage.database import Repository
from ldprecover_server.storage.encoding import in_round
from ldprecover_server.storage.forms import find_form
from ldprecover_server.storage.maintenance.chunks import (
    Chunk,
    HasTime,
    Progress,
    count_up_to_limit,
    for_seconds,
    run_each,
)
from ldprecover_server.storage.rounds import (
    StoredRound,
    end_round,
    find_round,
)
from ldprecover_server.storage.schema import (
    NOT_GONE,
    forms,
    metadata,
    rounds,
    segments,
    submission_keys,
)
from ldprecover_server.storage.segments import first_bytes, list_segments

_CALL_SECONDS = 1.0  # how long the deleting call works before it leaves the rest to housekeeping
_CHUNK_BYTES = 8 << 20  # of segments deleted by one transaction

_SMALL_TABLES = [
    table
    for table in metadata.sorted_tables
    if any(key.column is rounds.c.seq for key in table.foreign_keys)
]
"""Tables with few rows a round, which are deleted in one transaction."""


@dataclass(eq=False)
class Deletion(Repository):
    """Deletion of a database's rounds. Of a caller's deletion `key` is the name of the key."""

    acts: ActStore

    is_erased: bool = True
    """Whether everything deleted has also left the write-ahead log."""

    def delete(self, identifier: str, key: str | None = None) -> StoredRound:
        """Delete a round with everything it holds; return what it was. Raises RoundNotFoundError.

        The round is gone immediately. After one second its other rows are left to `delete_rest`.
        """
        with self.database.write() as connection:
            round = find_round(connection, identifier)
            if not self._mark(connection, round):
                raise RoundNotFoundError("the round was deleted")
            self.acts.add(connection, key, "delete round", round.name)
        self.delete_rest(for_seconds(_CALL_SECONDS))
        return round

    def delete_form(self, identifier: str, key: str | None = None) -> None:
        """Delete a form and, as `delete` does, all its rounds. Raises FormNotFoundError."""
        with self.database.write() as connection:
            form = find_form(connection, identifier)
            for round in form:
                self._mark(connection, round)
            if connection.execute(sa.delete(forms).where(forms.c.id == form[0].form)).rowcount:
                self.acts.add(connection, key, "delete form", str(form[0].form_name))
        self.delete_rest(for_seconds(_CALL_SECONDS))

    def _mark(self, connection: sa.Connection, round: StoredRound) -> bool:
        mark = f"!{round.seq}"  # not a valid name or id
        values = {"state": "gone", "id": mark, "name": mark, "form": None}
        return end_round(self.database, connection, round.seq, NOT_GONE, values)

    def delete_rest(self, has_time: HasTime = lambda: True) -> Progress:
        """Delete the remaining rows of deleted rounds while there is time. Raises ServiceError."""
        seqs = self._deleted_rounds()
        progress = run_each(self._chunks(seqs), has_time)
        if seqs and progress.done:
            self.erase()
        return progress

    def _chunks(self, seqs: Sequence[int]) -> Iterator[Chunk]:
        for seq in seqs:
            yield self._delete_segments(seq)
            yield self._delete_keys(seq)
            with self.database.write() as connection:
                for table in _SMALL_TABLES:
                    connection.execute(sa.delete(table).where(table.c.round == seq))
                connection.execute(sa.delete(rounds).where(rounds.c.seq == seq))

    def remaining_rows(self) -> int:
        """Return the number of keys and segments of deleted rounds, at most 1,000,000 of each."""
        with self.database.read() as connection:
            return sum(
                count_up_to_limit(connection, table, condition)
                for seq in self._deleted_rounds()
                for table, condition in (
                    (submission_keys, in_round(submission_keys.c.key, seq)),
                    (segments, segments.c.round == seq),
                )
            )

    def erase(self) -> None:
        """Remove deleted data from the write-ahead log; `is_erased` says whether that succeeded.

        It fails while others read the log, and must be tried again. Raises StoreUnavailableError.
        """
        self.is_erased = False
        self.is_erased = self.database.erase_deleted()

    def _deleted_rounds(self) -> Sequence[int]:
        with self.database.read() as connection:
            return connection.scalars(sa.select(rounds.c.seq).where(rounds.c.state == "gone")).all()

    def _delete_segments(self, seq: int) -> Chunk:
        def chunk(limit: int) -> int:
            with self.database.write() as connection:
                self.database.lock_maintenance(connection)
                listed = list_segments(connection, seq, 0)[:limit]
                if not listed:
                    return 0
                upto = segments.c.id <= first_bytes(listed, _CHUNK_BYTES)[-1].id
                deletion = sa.delete(segments).where(segments.c.round == seq, upto)
                return connection.execute(deletion).rowcount

        return chunk

    def _delete_keys(self, seq: int) -> Chunk:
        # In order and from the last position, because deleted keys stay in Postgres' index for a
        # while.
        key = submission_keys.c.key
        remaining = in_round(key, seq)

        def chunk(limit: int) -> int:
            nonlocal remaining
            query = sa.select(key).where(remaining).order_by(key).limit(limit)
            with self.database.write() as connection:
                self.database.lock_maintenance(connection)
                keys = connection.scalars(query).all()
                if keys:
                    deleted = sa.delete(submission_keys).where(remaining, key <= keys[-1])
                    connection.execute(deleted)
                    remaining = sa.and_(in_round(key, seq), key > keys[-1])
                return len(keys)

        return chunk
