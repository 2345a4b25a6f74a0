"""The transaction that stores a group of submissions: each exactly once, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import sqlalchemy as sa

from ldprecover.counting.tally import Tally
from ldprecover_server.storage.database import CommitValues, Database
from ldprecover_server.storage.key_encoding import encode_digest, encode_key
from ldprecover_server.storage.schema import quarantine, rounds, segments, tallies
from ldprecover_server.storage.tally_encoding import decode_tally, encode_counts


class Outcome(Enum):
    """The result of committing one submission."""

    STORED = auto()
    DUPLICATE = auto()  # stored before under the same key with the same bytes
    KEY_REUSED = auto()  # stored before under the same key with other bytes
    CLOSED = auto()
    GONE = auto()


class Submitted(Protocol):
    """A submission: hashes of its key and of its reports."""

    key: bytes
    digest: bytes


@dataclass(frozen=True)
class SealedBatch:
    """The rows that a batch adds to its round: shuffled packed reports and their tally.

    `quarantined` holds the `n_quarantined` packed reports of impossible sizes; they are in neither
    of the two.
    """

    data: bytes
    tally: Tally
    quarantined: bytes = b""
    n_quarantined: int = 0


class Batch(Protocol):
    """The submissions of one group to one round."""

    @property
    def seq(self) -> int:
        """The round's sequence number."""

    @property
    def submissions(self) -> Sequence[Submitted]:
        """The submissions in order of arrival."""

    def seal(self, positions: Sequence[int]) -> SealedBatch:
        """Return the rows for the submissions at these positions."""


class Commit:
    """Commits groups of submissions to one database.

    Its statements are built once, because building them costs more than running them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # FOR SHARE makes a process that closes the round wait for this commit. SQLite does so with
        # BEGIN IMMEDIATE, and the one statement with an advisory lock: see `end_round`.
        state = sa.select(rounds.c.state, rounds.c.retention)
        self._select_state = state.where(rounds.c.seq == sa.bindparam("seq")).with_for_update(
            read=True
        )
        self._insert_segment = sa.insert(segments)
        self._insert_quarantined = sa.insert(quarantine).values(reason="size")
        own_row = sa.and_(
            tallies.c.round == sa.bindparam("seq"), tallies.c.process == sa.bindparam("number")
        )
        # Locked before it is read: if two processes ever share a number, both still count.
        self._lock_tally = sa.select(tallies.c.n, tallies.c.counts).where(own_row).with_for_update()
        self._insert_tally = (
            database.insert(tallies).on_conflict_do_nothing().returning(tallies.c.n)
        )
        update = sa.update(tallies).where(own_row, tallies.c.n == sa.bindparam("n_before"))
        self._update_locked_tally = update.values(
            n=sa.bindparam("n_after"),
            counts=sa.bindparam("counts_after"),
            token=sa.bindparam("own_token"),
            quarantined=tallies.c.quarantined
            + sa.bindparam("added_quarantined", type_=sa.BigInteger),
        )
        self._update_own_tally = self._update_locked_tally.where(
            tallies.c.token == sa.bindparam("own_token")
        )
        self._last_tallies: dict[int, Tally] = {}
        """The tallies that the last commit wrote, by round."""
        self._last_writer = (-1, -1)
        """The process number and connection generation that wrote `_last_tallies`."""

    def __call__(self, batches: Sequence[Batch], hour: int) -> list[list[Outcome]]:
        """Store the batches in one transaction; return each submission's outcome.

        Calling it again after an unknown outcome is safe: submissions that were stored are found
        as duplicates. Rounds and keys are locked in ascending order, so that several processes
        cannot deadlock.
        """
        # A remembered tally saves reading the row. Only tallies of a finished commit are
        # remembered, and the update checks that the row still has their count and token.
        last_tallies, self._last_tallies = self._last_tallies, {}
        process, generation = self._database.process, self._database.generation
        if len(batches) == 1 and self._last_writer == (process, generation):
            batch = batches[0]
            tally = self._commit_in_one_statement(batch, hour, last_tallies.get(batch.seq))
            if tally is not None:
                self._last_tallies = {batch.seq: tally}
                return [[Outcome.STORED] * len(batch.submissions)]
        new_tallies: dict[int, Tally] = {}
        outcomes: dict[int, list[Outcome]] = {}
        with self._database.write() as connection:
            writer = (process, self._database.generation)  # the connection may be a new one
            if writer != self._last_writer:
                last_tallies = {}
            for batch in sorted(batches, key=lambda batch: batch.seq):
                outcomes[batch.seq], sealed = self._store(connection, batch, hour)
                if sealed is not None:
                    new_tallies[batch.seq] = self._add(
                        connection, process, batch.seq, sealed, last_tallies.get(batch.seq)
                    )
        self._last_tallies, self._last_writer = new_tallies, writer
        return [outcomes[batch.seq] for batch in batches]

    def _commit_in_one_statement(
        self, batch: Batch, hour: int, last_tally: Tally | None
    ) -> Tally | None:
        """Store a batch of new submissions; return the new tally, or None if nothing was stored."""
        digests = dict(sorted(_encoded(batch)))
        if last_tally is None or len(digests) < len(batch.submissions):
            return None
        sealed = batch.seal(range(len(digests)))
        if sealed.n_quarantined:
            return None
        tally = last_tally + sealed.tally
        values = CommitValues(
            round=batch.seq,
            process=self._last_writer[0],
            token=self._database.token,
            generation=self._last_writer[1],
            keys=digests,
            hour=hour,
            n=sealed.tally.n,
            data=sealed.data,
            n_before=last_tally.n,
            n_after=tally.n,
            counts=encode_counts(tally),
        )
        return tally if self._database.commit_in_one_statement(values) else None

    def _store(
        self, connection: sa.Connection, batch: Batch, hour: int
    ) -> tuple[list[Outcome], SealedBatch | None]:
        """Store keys and segment; return outcomes and what to add to the tally."""
        round = connection.execute(self._select_state, {"seq": batch.seq}).one_or_none()
        if round is None or round.state == "gone":
            return [Outcome.GONE] * len(batch.submissions), None
        submissions = _encoded(batch)
        # If a key comes several times in this group, its first submission decides.
        first_position: dict[bytes, int] = {}
        for position, (key, _) in enumerate(submissions):
            first_position.setdefault(key, position)
        digests = {key: submissions[first_position[key]][1] for key in sorted(first_position)}
        inserted: set[bytes] = set()
        if round.state == "open":
            inserted = self._database.insert_submission_keys(connection, digests)
        stored = {key: digest for key, digest in digests.items() if key in inserted}
        if others := [key for key in first_position if key not in inserted]:
            stored |= self._database.find_submission_keys(connection, others)

        outcomes = []
        for position, (key, digest) in enumerate(submissions):
            if key not in stored:
                outcomes.append(Outcome.CLOSED)
            elif stored[key] != digest:
                outcomes.append(Outcome.KEY_REUSED)
            elif key in inserted and first_position[key] == position:
                outcomes.append(Outcome.STORED)
            else:
                outcomes.append(Outcome.DUPLICATE)
        new = [i for i, outcome in enumerate(outcomes) if outcome is Outcome.STORED]
        if not new:
            return outcomes, None
        sealed = batch.seal(new)
        if round.retention != 0:  # with retention 0 no report is stored, only counted
            row = {"round": batch.seq, "hour": hour}
            if sealed.tally.n:
                row_values = {**row, "n": sealed.tally.n, "data": sealed.data}
                connection.execute(self._insert_segment, row_values)
            if sealed.n_quarantined:
                row_values = {**row, "n": sealed.n_quarantined, "data": sealed.quarantined}
                connection.execute(self._insert_quarantined, row_values)
        return outcomes, sealed

    def _add(
        self,
        connection: sa.Connection,
        process: int,
        seq: int,
        sealed: SealedBatch,
        last_tally: Tally | None,
    ) -> Tally:
        """Add a batch to the process's tally of a round; return the new tally."""
        own_row = {"seq": seq, "number": process}

        def update(statement: sa.Update, tally: Tally) -> Tally | None:
            new_tally = tally + sealed.tally
            values = {
                **own_row,
                "n_before": tally.n,
                "n_after": new_tally.n,
                "counts_after": encode_counts(new_tally),
                "own_token": self._database.token,
                "added_quarantined": sealed.n_quarantined,
            }
            return new_tally if connection.execute(statement, values).rowcount == 1 else None

        if last_tally is not None:
            new_tally = update(self._update_own_tally, last_tally)
            if new_tally is not None:
                return new_tally
        row = connection.execute(self._lock_tally, own_row).one_or_none()
        if row is None:
            new_row = {
                "round": seq,
                "process": process,
                "n": sealed.tally.n,
                "counts": encode_counts(sealed.tally),
                "token": self._database.token,
                "quarantined": sealed.n_quarantined,
            }
            if connection.scalar(self._insert_tally, new_row) is not None:
                return sealed.tally
            row = connection.execute(self._lock_tally, own_row).one()
        new_tally = update(self._update_locked_tally, decode_tally(row.counts, row.n))
        assert new_tally is not None  # the row is locked
        return new_tally


def _encoded(batch: Batch) -> list[tuple[bytes, bytes]]:
    """Return the encoded key and digest of each submission."""
    return [
        (encode_key(batch.seq, submission.key), encode_digest(submission.digest))
        for submission in batch.submissions
    ]
