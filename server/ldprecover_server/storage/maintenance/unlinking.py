"""Closed rounds are mixed: what a database keeps beside its columns no longer links a key to a
report.

A commit writes keys and a segment together, and it shows: on Postgres by the transaction in each
row's version (`xmin`) and by the rows' places in their tables, and everywhere by the order of
segments. So once a round is closed, in pieces of a transaction each: segments of the same hour are
drawn at random, joined, shuffled as one, and written anew; and on Postgres, whose tables are heaps,
keys are written anew in the order of the keys. How far that has come stands in the round, so that
whoever comes next goes on there. Retries, answers and readers notice nothing. A segment that is as
large as a piece is left as it is: its reports were shuffled among as many.
"""

from itertools import groupby
from random import SystemRandom
from typing import Any

import numpy as np
import sqlalchemy as sa

from ldprecover.protocols import PROTOCOLS
from ldprecover_server.shuffle import shuffled
from ldprecover_server.storage.key_encoding import of_round
from ldprecover_server.storage.maintenance.deletion import (
    Deletion,
    GoOn,
    Piece,
    Progress,
    count_at_most,
    in_pieces,
)
from ldprecover_server.storage.rounds import Rounds
from ldprecover_server.storage.schema import rounds, segments, submission_keys

_BYTES = 1 << 20  # of segments that are joined
_LISTED = 200_000  # segments among which those to be joined are drawn
_JOINED = 1000  # segments at the most

# Before it is mixed a round is screened, which goes by the segments as they were.
_TO_MIX = sa.and_(rounds.c.state == "closed", sa.not_(rounds.c.unlinked), rounds.c.filtered)


class Mixing(Rounds, Deletion):
    """The mixing of a database's closed rounds."""

    def mix(self, go_on: GoOn = lambda: True) -> Progress:
        """Mix the rounds that are closed, while there is time. Raises ServiceError.

        How long a report is its protocol knows: rounds whose protocol is not loaded wait until it
        is.
        """
        with self.database.read() as connection:
            mine = sa.and_(_TO_MIX, rounds.c.protocol.in_(PROTOCOLS))
            seqs = connection.scalars(
                sa.select(rounds.c.seq).where(mine).order_by(rounds.c.seq)
            ).all()
        rows = 0
        for seq in seqs:
            for piece in (self._mix_segments(seq), self._mix_keys(seq)):
                progress = in_pieces(piece, go_on)
                rows += progress.rows
                if not progress.done:
                    return Progress(rows, False)
            with self.database.write() as connection:
                connection.execute(
                    sa.update(rounds).where(rounds.c.seq == seq, _TO_MIX).values(unlinked=True)
                )
            self.forget()
        return Progress(rows, True)

    def rows_to_unlink(self) -> int:
        """Return how many keys and segments of closed rounds are yet to be mixed.

        Of either in a round 1,000,000 stands for as many or more: to count all would take long.
        """
        left = 0
        with self.database.read() as connection:
            for round in connection.execute(sa.select(rounds).where(_TO_MIX)):
                mine = sa.and_(segments.c.round == round.seq)
                if round.unlinked_segment is not None:
                    mine = sa.and_(mine, segments.c.id <= round.unlinked_segment)
                left += count_at_most(connection, segments, mine)
                if self.database.rows_tell_order:
                    left += count_at_most(
                        connection, submission_keys, _after(round.seq, round.unlinked_key)
                    )
        return left

    def _mix_segments(self, seq: int) -> Piece:
        waiting: list[tuple[int, list[Any]]] = []

        def piece(limit: int) -> int:
            nonlocal waiting
            if not waiting:
                upto, drawn = self._draw(seq)
                waiting = [(upto, rows) for rows in _divided(drawn)]
            if not waiting:
                return 0
            upto, drawn = waiting.pop()
            if len(drawn) > limit:
                drawn, rest = drawn[:limit], drawn[limit:]
                waiting.append((upto, rest))
            self._join(seq, [row.id for row in drawn], upto)
            return len(drawn)

        return piece

    def _draw(self, seq: int) -> tuple[int, list[Any]]:
        """Return the last segment that is to be mixed, and those that are left, in random order."""
        size = self.parameters(seq).oracle.report_size
        with self.database.write() as connection:
            upto = self._begin(connection, seq)
            length = sa.func.length(segments.c.data).label("size")
            query = sa.select(segments.c.id, segments.c.hour, length).where(
                segments.c.round == seq, segments.c.id <= upto, segments.c.n > 0, length < _BYTES
            )
            query = query.where(
                length == segments.c.n * size
            )  # another is damaged, and left as it is
            found = list(connection.execute(query.order_by(segments.c.id).limit(_LISTED)))
        SystemRandom().shuffle(found)
        return upto, found

    def _begin(self, connection: sa.Connection, seq: int) -> int:
        """Return the last segment to be mixed: those that are joined have later ids."""
        upto = connection.scalar(sa.select(rounds.c.unlinked_segment).where(rounds.c.seq == seq))
        if upto is None:
            last = sa.select(sa.func.coalesce(sa.func.max(segments.c.id), 0)).where(
                segments.c.round == seq
            )
            upto = connection.scalars(last).one()
            unset = sa.and_(rounds.c.seq == seq, rounds.c.unlinked_segment.is_(None))
            connection.execute(sa.update(rounds).where(unset).values(unlinked_segment=upto))
        return int(upto)

    def _join(self, seq: int, ids: list[int], upto: int) -> None:
        """Write the reports of these segments anew, as one, in one transaction: none is lost, none
        comes twice.
        """
        with self.database.write() as connection:
            self.database.take_turn(connection)
            # Later than any there was: SQLite would give the last one's again, once that is
            # deleted.
            id = max(self.database.next_segment(connection), upto + 1)
            theirs = sa.delete(segments).where(segments.c.round == seq, segments.c.id.in_(ids))
            old = connection.execute(
                theirs.returning(segments.c.n, segments.c.hour, segments.c.data)
            ).all()
            if not old:
                return  # another process was here first, or they are past their retention
            n = sum(row.n for row in old)
            data = b"".join(row.data for row in old)
            reports = np.frombuffer(data, dtype=f"V{len(data) // n}")
            mixed = {
                "id": id,
                "round": seq,
                "hour": old[0].hour,
                "n": n,
                "data": shuffled([reports]),
            }
            connection.execute(sa.insert(segments), mixed)
            count = {"rewrites": rounds.c.rewrites + 1}
            connection.execute(sa.update(rounds).where(rounds.c.seq == seq).values(count))

    def _mix_keys(self, seq: int) -> Piece:
        def piece(limit: int) -> int:
            if not self.database.rows_tell_order:
                return 0
            with self.database.write() as connection:
                self.database.take_turn(connection)
                left = _after(
                    seq,
                    connection.scalar(sa.select(rounds.c.unlinked_key).where(rounds.c.seq == seq)),
                )
                key = submission_keys.c.key
                found = connection.scalars(
                    sa.select(key).where(left).order_by(key).limit(limit)
                ).all()
                if found:
                    these = sa.delete(submission_keys).where(left, key <= found[-1])
                    old = connection.execute(these.returning(key, submission_keys.c.digest)).all()
                    self.database.insert_submission_keys(
                        connection, {row.key: row.digest for row in sorted(old)}
                    )
                    connection.execute(
                        sa.update(rounds).where(rounds.c.seq == seq).values(unlinked_key=found[-1])
                    )
                return len(found)

        return piece


def _after(seq: int, key: bytes | None) -> sa.ColumnElement[bool]:
    """Return which keys of a round come after this one."""
    mine = of_round(submission_keys.c.key, seq)
    return mine if key is None else sa.and_(mine, submission_keys.c.key > key)


def _divided(found: list[Any]) -> list[list[Any]]:
    """Return segments divided into what is joined: of one hour each, and no more than a piece
    together.
    """
    divided = []
    for _, of_hour in groupby(sorted(found, key=lambda row: row.hour), key=lambda row: row.hour):
        together: list[Any] = []
        room = _BYTES
        for row in of_hour:
            if together and (row.size > room or len(together) == _JOINED):
                divided.append(together)
                together, room = [], _BYTES
            together.append(row)
            room -= row.size
        divided.append(together)
    return divided
