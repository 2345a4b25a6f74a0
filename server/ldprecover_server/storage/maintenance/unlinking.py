"""Unlinks closed rounds: rewrites keys and segments in random order.

A commit writes keys and a segment together, and that shows: on Postgres in each row's transaction
number (`xmin`) and in the rows' places in their tables, on both databases in the order of segments.
So segments of a closed round are drawn at random within the same hour, joined, shuffled and written
as one, and on Postgres, whose tables are heaps, keys are rewritten in the order of the keys.

It happens in chunks, one transaction each. The round records how far it is, so that the next
process can continue. Retries, responses and readers are not affected. A segment of a full chunk is
left as it is, because its reports were shuffled among equally many.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from random import SystemRandom
from typing import Any

import numpy as np
import sqlalchemy as sa

from ldprecover.protocols import PROTOCOLS
from ldprecover_server.shuffle import shuffled
from ldprecover_server.storage.base import Clock, Repository
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.key_encoding import in_round
from ldprecover_server.storage.maintenance.chunks import (
    Chunk,
    HasTime,
    Progress,
    count_up_to_limit,
    run_each,
)
from ldprecover_server.storage.maintenance.deletion import Deletion
from ldprecover_server.storage.rounds import Rounds, update_round
from ldprecover_server.storage.schema import rounds, segments, submission_keys
from ldprecover_server.storage.segments import is_undamaged

_CHUNK_BYTES = 1 << 20  # maximum size of joined segments
_MAX_JOINED = 1000  # maximum number of joined segments
_DRAW_LIMIT = 200_000  # segments from which those to join are drawn

_TO_UNLINK = sa.and_(rounds.c.state == "closed", sa.not_(rounds.c.unlinked))


class Unlinking(Repository):
    """Unlinking of a database's closed rounds."""

    def __init__(
        self, database: Database, clock: Clock, stored_rounds: Rounds, deletion: Deletion
    ) -> None:
        super().__init__(database, clock)
        self._rounds = stored_rounds
        self._deletion = deletion

    def run(self, has_time: HasTime = lambda: True) -> Progress:
        """Unlink the closed rounds while there is time; return the rows that were rewritten.

        Rounds of a protocol that is not loaded wait, because it defines the size of a report.
        Raises ServiceError.
        """
        query = sa.select(rounds.c.seq).where(_TO_UNLINK, rounds.c.protocol.in_(PROTOCOLS))
        with self.database.read() as connection:
            seqs = connection.scalars(query.order_by(rounds.c.seq)).all()
        return run_each(self._chunks(seqs), has_time)

    def _chunks(self, seqs: Sequence[int]) -> Iterator[Chunk]:
        for seq in seqs:
            yield self._join_segments(seq)
            yield self._rewrite_keys(seq)
            with self.database.write() as connection:
                update_round(connection, seq, {"unlinked": True}, _TO_UNLINK)
            self._deletion.erase()

    def remaining_rows(self) -> int:
        """Return how many keys and segments are to unlink, at most 1,000,000 of each a round."""
        n = 0
        with self.database.read() as connection:
            for round in connection.execute(sa.select(rounds).where(_TO_UNLINK)):
                remaining = segments.c.round == round.seq
                if round.unlinked_segment is not None:
                    remaining = sa.and_(remaining, segments.c.id <= round.unlinked_segment)
                n += count_up_to_limit(connection, segments, remaining)
                if self.database.rows_reveal_order:
                    keys = _keys_after(round.seq, round.unlinked_key)
                    n += count_up_to_limit(connection, submission_keys, keys)
        return n

    def _join_segments(self, seq: int) -> Chunk:
        batches: list[tuple[int, list[Any]]] = []

        def chunk(limit: int) -> int:
            nonlocal batches
            if not batches:
                upto, rows = self._draw(seq)
                batches = [(upto, batch) for batch in _batches(rows)]
            if not batches:
                return 0
            upto, batch = batches.pop()
            if len(batch) > limit:
                batch, rest = batch[:limit], batch[limit:]
                batches.append((upto, rest))
            self._join(seq, [row.id for row in batch], upto)
            return len(batch)

        return chunk

    def _draw(self, seq: int) -> tuple[int, list[Any]]:
        """Return the last segment to unlink, and the remaining segments in random order."""
        oracle = self._rounds.oracle(seq)
        length = sa.func.length(segments.c.data).label("size")
        with self.database.write() as connection:
            upto = self._begin(connection, seq)
            query = sa.select(segments.c.id, segments.c.hour, length).where(
                segments.c.round == seq,
                segments.c.id <= upto,
                length < _CHUNK_BYTES,
                is_undamaged(oracle),  # a damaged segment is left as it is
            )
            rows = list(connection.execute(query.order_by(segments.c.id).limit(_DRAW_LIMIT)))
        SystemRandom().shuffle(rows)
        return upto, rows

    def _begin(self, connection: sa.Connection, seq: int) -> int:
        """Return the last segment to unlink: joined segments have higher ids."""
        round = rounds.c.seq == seq
        upto = connection.scalar(sa.select(rounds.c.unlinked_segment).where(round))
        if upto is None:
            last = sa.select(sa.func.max(segments.c.id)).where(segments.c.round == seq)
            upto = connection.scalar(last) or 0
            is_unset = rounds.c.unlinked_segment.is_(None)
            update_round(connection, seq, {"unlinked_segment": upto}, is_unset)
        return int(upto)

    def _join(self, seq: int, ids: list[int], upto: int) -> None:
        """Replace these segments by one with the same reports, shuffled, in one transaction."""
        with self.database.write() as connection:
            self.database.lock_maintenance(connection)
            # SQLite would reuse the highest id once its segment is deleted.
            id = max(self.database.next_segment(connection), upto + 1)
            deletion = sa.delete(segments).where(segments.c.round == seq, segments.c.id.in_(ids))
            old = connection.execute(
                deletion.returning(segments.c.n, segments.c.hour, segments.c.data)
            ).all()
            if not old:
                return  # another process unlinked them, or retention purged them
            n = sum(row.n for row in old)
            data = b"".join(row.data for row in old)
            reports = np.frombuffer(data, dtype=f"V{len(data) // n}")
            joined = {
                "id": id,
                "round": seq,
                "hour": old[0].hour,
                "n": n,
                "data": shuffled([reports]),
            }
            connection.execute(sa.insert(segments), joined)
            update_round(connection, seq, {"rewrites": rounds.c.rewrites + 1})

    def _rewrite_keys(self, seq: int) -> Chunk:
        round, key = rounds.c.seq == seq, submission_keys.c.key

        def chunk(limit: int) -> int:
            if not self.database.rows_reveal_order:
                return 0
            with self.database.write() as connection:
                self.database.lock_maintenance(connection)
                after = connection.scalar(sa.select(rounds.c.unlinked_key).where(round))
                remaining = _keys_after(seq, after)
                query = sa.select(key).where(remaining).order_by(key).limit(limit)
                keys = connection.scalars(query).all()
                if keys:
                    deletion = sa.delete(submission_keys).where(remaining, key <= keys[-1])
                    old = connection.execute(
                        deletion.returning(key, submission_keys.c.digest)
                    ).all()
                    self.database.insert_submission_keys(
                        connection, {row.key: row.digest for row in sorted(old)}
                    )
                    update_round(connection, seq, {"unlinked_key": keys[-1]})
                return len(keys)

        return chunk


def _keys_after(seq: int, key: bytes | None) -> sa.ColumnElement[bool]:
    """Return the condition for a round's keys after this one."""
    all_keys = in_round(submission_keys.c.key, seq)
    return all_keys if key is None else sa.and_(all_keys, submission_keys.c.key > key)


def _batches(rows: list[Any]) -> list[list[Any]]:
    """Return segments in batches to join: of one hour, and at most _CHUNK_BYTES together."""
    batches = []
    for _, of_hour in groupby(sorted(rows, key=lambda row: row.hour), key=lambda row: row.hour):
        batch: list[Any] = []
        remaining_bytes = _CHUNK_BYTES
        for row in of_hour:
            if batch and (row.size > remaining_bytes or len(batch) == _MAX_JOINED):
                batches.append(batch)
                batch, remaining_bytes = [], _CHUNK_BYTES
            batch.append(row)
            remaining_bytes -= row.size
        batches.append(batch)
    return batches
