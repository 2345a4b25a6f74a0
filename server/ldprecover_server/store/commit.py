"""The one transaction that stores submissions: exactly once, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ldprecover.tally import Tally
from ldprecover_server.store.schema import keys, rounds, segments, tallies

__all__ = ["Batch", "Outcome", "Sealed", "Submitted", "commit", "insert"]


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


def insert(connection: sa.Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """Return the dialect's INSERT, which knows ON CONFLICT."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def commit(connection: sa.Connection, batches: Sequence[Batch], process: int, hour: int) -> list[list[Outcome]]:
    """Store the batches within the caller's transaction; return each submission's outcome.

    Run again after an unknown outcome it is harmless: what had been stored is found as duplicates.
    Rounds and keys are taken in sorted order, so that writers in several processes cannot deadlock.
    """
    outcomes: dict[int, list[Outcome]] = {}
    for batch in sorted(batches, key=lambda batch: batch.seq):
        outcomes[batch.seq] = _commit_batch(connection, batch, process, hour)
    return [outcomes[batch.seq] for batch in batches]


def _commit_batch(connection: sa.Connection, batch: Batch, process: int, hour: int) -> list[Outcome]:
    # FOR SHARE holds a closing server back until this commit; SQLite's BEGIN IMMEDIATE already does.
    state = connection.scalar(sa.select(rounds.c.state).where(rounds.c.seq == batch.seq).with_for_update(read=True))
    if state is None:
        return [Outcome.GONE] * len(batch.submissions)
    # Of several submissions under one key in this group, the first one stands for the key.
    first: dict[bytes, int] = {}
    for i, submission in enumerate(batch.submissions):
        first.setdefault(submission.key, i)
    new = _insert_keys(connection, batch, sorted(first)) if state == "open" else set()
    known = {key: batch.submissions[i].digest for key, i in first.items() if key in new}
    known |= _stored_digests(connection, batch.seq, [key for key in first if key not in new])

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
    fresh = [i for i, outcome in enumerate(outcomes) if outcome is Outcome.STORED]
    if fresh:
        _add(connection, batch.seq, batch.seal(fresh), process, hour)
    return outcomes


def _insert_keys(connection: sa.Connection, batch: Batch, wanted: list[bytes]) -> set[bytes]:
    """Insert the keys that are not there yet; return those inserted."""
    digests = {submission.key: submission.digest for submission in reversed(batch.submissions)}
    statement = insert(connection, keys).on_conflict_do_nothing().returning(keys.c.key)
    rows = [{"round": batch.seq, "key": key, "digest": digests[key]} for key in wanted]
    return set(connection.scalars(statement, rows))


def _stored_digests(connection: sa.Connection, seq: int, wanted: list[bytes]) -> dict[bytes, bytes]:
    if not wanted:
        return {}
    query = sa.select(keys.c.key, keys.c.digest).where(keys.c.round == seq, keys.c.key.in_(wanted))
    return {row.key: row.digest for row in connection.execute(query)}


def _add(connection: sa.Connection, seq: int, sealed: Sealed, process: int, hour: int) -> None:
    connection.execute(sa.insert(segments), {"round": seq, "hour": hour, "n": sealed.tally.n, "data": sealed.data})
    row = connection.execute(
        sa.select(tallies.c.n, tallies.c.counts).where(tallies.c.round == seq, tallies.c.process == process)
    ).one_or_none()
    tally = sealed.tally if row is None else Tally.from_bytes(row.counts, row.n) + sealed.tally
    statement = insert(connection, tallies)
    statement = statement.on_conflict_do_update(
        index_elements=["round", "process"],
        set_={"n": statement.excluded.n, "counts": statement.excluded.counts},
    )
    connection.execute(statement, {"round": seq, "process": process, "n": tally.n, "counts": tally.to_bytes()})
