"""The one transaction that stores submissions: exactly once, or not at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ldprecover.tally import Tally
from ldprecover_server.store.schema import keys, rounds, segments, tallies

__all__ = ["Batch", "Commit", "Outcome", "Sealed", "Submitted", "upsert"]


class Outcome(Enum):
    """What became of a submission."""

    STORED = auto()
    DUPLICATE = auto()  # stored before, under this key, with these bytes
    KEY_REUSED = auto()  # the key belongs to other bytes
    CLOSED = auto()
    GONE = auto()


class Submitted(Protocol):
    """A submission as the store sees it."""

    key: bytes
    digest: bytes


@dataclass(frozen=True)
class Sealed:
    """What a batch adds to its round: packed reports in no order, and their tally."""

    data: bytes
    tally: Tally


class Batch(Protocol):
    """The submissions of one group for one round."""

    @property
    def seq(self) -> int:
        """The round's place in the order of opening."""

    @property
    def submissions(self) -> Sequence[Submitted]:
        """Submissions in order of arrival."""

    def seal(self, fresh: Sequence[int]) -> Sealed:
        """Return segment and tally of the submissions at these positions."""


class Commit:
    """The transaction's statements, made once for a dialect: making them costs more than running them."""

    def __init__(self, dialect: str, process: int) -> None:
        self._process = process
        insert = upsert(dialect)
        # FOR SHARE holds a closing server back until this commit; SQLite's BEGIN IMMEDIATE already does.
        self._state = sa.select(rounds.c.state).where(rounds.c.seq == sa.bindparam("seq")).with_for_update(read=True)
        self._insert_keys = insert(keys).on_conflict_do_nothing().returning(keys.c.key)
        self._stored_keys = sa.select(keys.c.key, keys.c.digest).where(
            keys.c.round == sa.bindparam("seq"), keys.c.key.in_(sa.bindparam("wanted", expanding=True))
        )
        self._insert_segment = sa.insert(segments)
        self._tally = sa.select(tallies.c.n, tallies.c.counts).where(
            tallies.c.round == sa.bindparam("seq"), tallies.c.process == process
        )
        new = insert(tallies)
        self._put_tally = new.on_conflict_do_update(
            index_elements=["round", "process"], set_={"n": new.excluded.n, "counts": new.excluded.counts}
        )

    def __call__(self, connection: sa.Connection, batches: Sequence[Batch], hour: int) -> list[list[Outcome]]:
        """Store the batches within the caller's transaction; return each submission's outcome.

        Run again after an unknown outcome it is harmless: what had been stored is found as
        duplicates. Rounds and keys are taken in sorted order, so that writers in several
        processes cannot deadlock.
        """
        outcomes: dict[int, list[Outcome]] = {}
        for batch in sorted(batches, key=lambda batch: batch.seq):
            outcomes[batch.seq] = self._store(connection, batch, hour)
        return [outcomes[batch.seq] for batch in batches]

    def _store(self, connection: sa.Connection, batch: Batch, hour: int) -> list[Outcome]:
        state = connection.scalar(self._state, {"seq": batch.seq})
        if state is None:
            return [Outcome.GONE] * len(batch.submissions)
        # Of several submissions under one key in this group, the first one stands for the key.
        first: dict[bytes, int] = {}
        for i, submission in enumerate(batch.submissions):
            first.setdefault(submission.key, i)
        new: set[bytes] = set()
        if state == "open":
            rows = [
                {"round": batch.seq, "key": key, "digest": batch.submissions[i].digest}
                for key, i in sorted(first.items())
            ]
            new = set(connection.scalars(self._insert_keys, rows))
        known = {key: batch.submissions[i].digest for key, i in first.items() if key in new}
        if missing := [key for key in first if key not in new]:
            stored = connection.execute(self._stored_keys, {"seq": batch.seq, "wanted": missing})
            known |= {row.key: row.digest for row in stored}

        outcomes = []
        for i, submission in enumerate(batch.submissions):
            if submission.key not in known:
                outcomes.append(Outcome.CLOSED)
            elif known[submission.key] != submission.digest:
                outcomes.append(Outcome.KEY_REUSED)
            elif submission.key in new and first[submission.key] == i:
                outcomes.append(Outcome.STORED)
            else:
                outcomes.append(Outcome.DUPLICATE)
        if fresh := [i for i, outcome in enumerate(outcomes) if outcome is Outcome.STORED]:
            self._add(connection, batch.seq, batch.seal(fresh), hour)
        return outcomes

    def _add(self, connection: sa.Connection, seq: int, sealed: Sealed, hour: int) -> None:
        segment = {"round": seq, "hour": hour, "n": sealed.tally.n, "data": sealed.data}
        connection.execute(self._insert_segment, segment)
        row = connection.execute(self._tally, {"seq": seq}).one_or_none()
        tally = sealed.tally if row is None else Tally.from_bytes(row.counts, row.n) + sealed.tally
        counted = {"round": seq, "process": self._process, "n": tally.n, "counts": tally.to_bytes()}
        connection.execute(self._put_tally, counted)


def upsert(dialect: str) -> Callable[[sa.Table], postgresql.Insert | sqlite.Insert]:
    """Return the dialect's INSERT, which knows ON CONFLICT."""
    return postgresql.insert if dialect == "postgresql" else sqlite.insert
