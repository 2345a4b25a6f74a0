"""The one transaction that stores submissions: exactly once, or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import sqlalchemy as sa

from ldprecover.counting.tally import Tally
from ldprecover_server.storage.commit.one_statement import AtOnce
from ldprecover_server.storage.database import Database, upsert
from ldprecover_server.storage.key_encoding import stored_digest, stored_key
from ldprecover_server.storage.schema import quarantine, rounds, segments, tallies
from ldprecover_server.storage.tally_encoding import read_tally, stored_counts


class Outcome(Enum):
    """What became of a submission."""

    STORED = auto()
    DUPLICATE = auto()  # stored before, under this key, with these bytes
    KEY_REUSED = auto()  # the key belongs to other bytes
    CLOSED = auto()
    GONE = auto()


class Submitted(Protocol):
    """A submission as the store sees it: hashes of its key and of its reports, of which it keeps
    the first bytes.
    """

    key: bytes
    digest: bytes


@dataclass(frozen=True)
class Sealed:
    """What a batch adds to its round: packed reports in no order, and their tally.

    `aside` are the packed reports that are set aside for their size, `aside_n` of them, in neither
    of the two.
    """

    data: bytes
    tally: Tally
    aside: bytes = b""
    aside_n: int = 0


class Batch(Protocol):
    """The submissions of one group for one round."""

    @property
    def seq(self) -> int:
        """The round's place in the order of opening."""

    @property
    def submissions(self) -> Sequence[Submitted]:
        """Submissions in order of arrival."""

    def seal(self, fresh: Sequence[int]) -> Sealed:
        """Return segment, tally and what is set aside of the submissions at these positions."""


class Commit:
    """The transaction's statements, made once for a database: making them costs more than running
    them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        insert = upsert(database.dialect)
        # FOR SHARE holds a closing server back until this commit, as SQLite's BEGIN IMMEDIATE does.
        # The usual way is without it: see `end_round`.
        state = sa.select(rounds.c.state, rounds.c.retention)
        self._state = state.where(rounds.c.seq == sa.bindparam("seq")).with_for_update(read=True)
        self._insert_segment = sa.insert(segments)
        self._insert_aside = sa.insert(quarantine).values(reason="size")
        mine = sa.and_(
            tallies.c.round == sa.bindparam("seq"), tallies.c.process == sa.bindparam("number")
        )
        # Locked before it is read: should two processes ever have one number, both still count.
        self._tally = sa.select(tallies.c.n, tallies.c.counts).where(mine).with_for_update()
        self._first_tally = insert(tallies).on_conflict_do_nothing().returning(tallies.c.n)
        put = sa.update(tallies).where(mine, tallies.c.n == sa.bindparam("old_n"))
        put = put.values(
            n=sa.bindparam("new_n"), counts=sa.bindparam("new"), token=sa.bindparam("own")
        )
        put = put.values(
            quarantined=tallies.c.quarantined + sa.bindparam("aside", type_=sa.BigInteger)
        )
        self._put_locked = put
        self._put_as_left = put.where(tallies.c.token == sa.bindparam("own"))
        self._written: dict[int, Tally] = {}
        self._writer = (-1, -1)

    def __call__(self, batches: Sequence[Batch], hour: int) -> list[list[Outcome]]:
        """Store the batches in one transaction; return each submission's outcome.

        Run again after an unknown outcome it is harmless: what had been stored is found as
        duplicates. Rounds and keys are taken in sorted order, so that writers in several
        processes cannot deadlock.
        """
        # What this process wrote last stands in the database unless number or token say otherwise:
        # only what was certainly committed is remembered, by this process under this number and on
        # these connections. So the row is mostly added to without being read.
        written, self._written = self._written, {}
        process, generation = self._database.process, self._database.generation
        if len(batches) == 1 and self._writer == (process, generation):
            total = self._at_once(batches[0], hour, written)
            if total is not None:
                self._written = {batches[0].seq: total}
                return [[Outcome.STORED] * len(batches[0].submissions)]
        totals: dict[int, Tally] = {}
        outcomes: dict[int, list[Outcome]] = {}
        with self._database.write() as connection:
            writer = (process, self._database.generation)  # the connection may be a new one
            known = written if writer == self._writer else {}
            for batch in sorted(batches, key=lambda batch: batch.seq):
                outcomes[batch.seq], sealed = self._store(connection, batch, hour)
                if sealed is not None:
                    totals[batch.seq] = self._add(
                        connection, process, batch.seq, sealed, known.get(batch.seq)
                    )
        self._written, self._writer = totals, writer
        return [outcomes[batch.seq] for batch in batches]

    def _at_once(self, batch: Batch, hour: int, written: Mapping[int, Tally]) -> Tally | None:
        """Store a batch of fresh submissions where this process was the last to write; else return
        None.
        """
        keys = dict(sorted(_stored(batch)))
        there = written.get(batch.seq)
        if there is None or len(keys) < len(batch.submissions):
            return None
        sealed = batch.seal(range(len(keys)))
        if sealed.aside_n:
            return None
        total = there + sealed.tally
        wish = AtOnce(
            round=batch.seq,
            process=self._writer[0],
            token=self._database.token,
            generation=self._writer[1],
            keys=keys,
            hour=hour,
            n=sealed.tally.n,
            data=sealed.data,
            n_before=there.n,
            n_after=total.n,
            counts=stored_counts(total),
        )
        return total if self._database.store_at_once(wish) else None

    def _store(
        self, connection: sa.Connection, batch: Batch, hour: int
    ) -> tuple[list[Outcome], Sealed | None]:
        """Store keys and segment; return outcomes, and what is to be added to the tally."""
        round = connection.execute(self._state, {"seq": batch.seq}).one_or_none()
        if round is None or round.state == "gone":
            return [Outcome.GONE] * len(batch.submissions), None
        submissions = _stored(batch)
        # Of several submissions under one key in this group, the first one stands for the key.
        first: dict[bytes, int] = {}
        for i, (key, _) in enumerate(submissions):
            first.setdefault(key, i)
        new: set[bytes] = set()
        if round.state == "open":
            wanted = {key: submissions[first[key]][1] for key in sorted(first)}
            new = self._database.insert_submission_keys(connection, wanted)
        known = {key: submissions[i][1] for key, i in first.items() if key in new}
        if missing := [key for key in first if key not in new]:
            known |= self._database.known_submission_keys(connection, missing)

        outcomes = []
        for i, (key, digest) in enumerate(submissions):
            if key not in known:
                outcomes.append(Outcome.CLOSED)
            elif known[key] != digest:
                outcomes.append(Outcome.KEY_REUSED)
            elif key in new and first[key] == i:
                outcomes.append(Outcome.STORED)
            else:
                outcomes.append(Outcome.DUPLICATE)
        fresh = [i for i, outcome in enumerate(outcomes) if outcome is Outcome.STORED]
        if not fresh:
            return outcomes, None
        sealed = batch.seal(fresh)
        if round.retention != 0:  # else what is counted is all that ever reaches the disk
            here = {"round": batch.seq, "hour": hour}
            if sealed.tally.n:
                connection.execute(
                    self._insert_segment, {**here, "n": sealed.tally.n, "data": sealed.data}
                )
            if sealed.aside_n:
                connection.execute(
                    self._insert_aside, {**here, "n": sealed.aside_n, "data": sealed.aside}
                )
        return outcomes, sealed

    def _add(
        self,
        connection: sa.Connection,
        process: int,
        seq: int,
        sealed: Sealed,
        written: Tally | None,
    ) -> Tally:
        """Add to the process's tally of a round, and return it."""
        added, aside = sealed.tally, sealed.aside_n

        def put(statement: sa.Update, there: Tally) -> Tally | None:
            total = there + added
            values = {**mine, "old_n": there.n, "new_n": total.n, "new": stored_counts(total)}
            values |= {"own": self._database.token, "aside": aside}
            return total if connection.execute(statement, values).rowcount == 1 else None

        mine = {"seq": seq, "number": process}
        if written is not None and (total := put(self._put_as_left, written)) is not None:
            return total
        row = connection.execute(self._tally, mine).one_or_none()
        if row is None:
            first = {"round": seq, "process": process, "n": added.n, "counts": stored_counts(added)}
            first |= {"token": self._database.token, "quarantined": aside}
            if connection.scalar(self._first_tally, first) is not None:
                return added
            row = connection.execute(self._tally, mine).one()
        total = put(self._put_locked, read_tally(row.counts, row.n))
        assert total is not None  # the row is locked
        return total


def _stored(batch: Batch) -> list[tuple[bytes, bytes]]:
    """Return what is stored of the key and of the digest of each submission."""
    return [
        (stored_key(batch.seq, submission.key), stored_digest(submission.digest))
        for submission in batch.submissions
    ]
