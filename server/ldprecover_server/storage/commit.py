"""The commit of submissions: exactly once, and durable before the answer.

A group of submissions is one transaction, by one of two paths: one statement (`one_statement`) or
several for all its rounds. `Commit` is the entry to both. The tests that prove a case are in
tests/server/storage, but for the last.

| case | path | proved by |
|---|---|---|
| new keys, this process wrote the tally of each round last | one statement | test_one_statement |
| the same, after a new connection | several statements | test_fencing |
| the same, but another process changed the tally or took a key | one statement fails on token, \
  count or key and stores nothing; then several | test_fencing, test_one_statement |
| a key is stored already, or comes twice in the group | several statements | test_storage |
| a process's first report to a round | several statements | test_storage |
| a round ends meanwhile | one statement fails on the cleared token; several wait for the \
  round's row and answer CLOSED or GONE | test_fencing |
| unknown outcome: lost connection, killed server | the same group again; stored keys are \
  duplicates | tests/system/test_histories.py, test_crashes.py |

Durability is the database's: SQLite with synchronous=FULL, Postgres with synchronous_commit=on.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

import sqlalchemy as sa

from ldprecover.reports.tally import Tally
from ldprecover_server.storage.database import Clock, Database, Repository
from ldprecover_server.storage.encoding import (
    encode_digest,
    encode_key,
)
from ldprecover_server.storage.one_statement import RoundRows
from ldprecover_server.storage.schema import rounds, segments, tallies
from ldprecover_server.storage.tallies import decode_tally, encode_counts

_TALLIES, _TALLY_BYTES = 64, 8 << 20  # that are remembered, beside those of the last commit


class Outcome(Enum):
    """The result of committing one submission."""

    STORED = auto()
    DUPLICATE = auto()  # stored before under the same key with the same bytes
    KEY_REUSED = auto()  # stored before under the same key with other bytes
    CLOSED = auto()
    GONE = auto()


class Batch(ABC):
    """The submissions of one group to one round."""

    seq: int
    """The round's sequence number."""
    hashes: Sequence[tuple[bytes, bytes]]
    """Of each submission, in order of arrival: the hashes of its key and of its reports."""

    @abstractmethod
    def rows(self, positions: Sequence[int]) -> tuple[bytes, Tally]:
        """Return the shuffled packed reports of the submissions at these positions; their tally."""


class Commit(Repository):
    """Commits groups of submissions to one database.

    Its statements are built once, because building them costs more than running them.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        # Literals, because a statement's parameters are limited.
        seqs: sa.BindParameter[int] = sa.bindparam("seqs", expanding=True, literal_execute=True)
        # FOR SHARE makes a process that closes a round wait for this commit. SQLite does so with
        # BEGIN IMMEDIATE, and the one statement with an advisory lock: see `end_round`.
        states = sa.select(rounds.c.seq, rounds.c.state, rounds.c.retention)
        states = states.where(rounds.c.seq.in_(seqs)).order_by(rounds.c.seq)
        self._select_states = states.with_for_update(read=True)
        # With RETURNING, SQLAlchemy sends the rows in one statement.
        self._insert_segments = sa.insert(segments).returning(segments.c.id)
        # Locked before they are read: if two processes ever share a number, both still count.
        own_rows = sa.select(tallies.c.round, tallies.c.n, tallies.c.counts).where(
            tallies.c.round.in_(seqs), tallies.c.process == sa.bindparam("number")
        )
        self._lock_tallies = own_rows.order_by(tallies.c.round).with_for_update()
        insert = database.insert(tallies)
        self._insert_tallies = insert.on_conflict_do_nothing().returning(tallies.c.round)
        written = ("n", "counts", "token")
        self._update_tallies = insert.on_conflict_do_update(
            index_elements=["round", "process"],
            set_={name: insert.excluded[name] for name in written},
        ).returning(tallies.c.round)
        self._last_tallies: dict[int, Tally] = {}
        """The tallies that the last commits wrote, by round; the last written is last."""
        self._last_writer = (-1, -1)
        """The process number and connection generation that wrote `_last_tallies`."""

    def __call__(self, batches: Sequence[Batch]) -> list[list[Outcome]]:
        """Store the batches in one durable transaction; return each submission's outcome.

        Calling it again after an unknown outcome is safe: submissions that were stored are found
        as duplicates. All rounds share each statement, because after a statement the thread waits
        for the interpreter's lock. Rounds, then keys, then tallies are locked, each in ascending
        order, so that several processes cannot deadlock.
        """
        # A remembered tally saves reading the row. Only tallies of a finished commit are
        # remembered, and the one statement checks that the row still has their count and token.
        process = self.database.process
        if self._last_writer != (process, self.database.generation):
            self._last_tallies.clear()
        last_tallies = {}
        for batch in batches:
            if (tally := self._last_tallies.pop(batch.seq, None)) is not None:
                last_tallies[batch] = tally
        if len(last_tallies) == len(batches):
            tallies = self._commit_in_one_statement(last_tallies)
            if tallies is not None:
                self._remember(tallies)
                return [[Outcome.STORED] * len(batch.hashes) for batch in batches]
        with self.database.write() as connection:
            generation = self.database.generation  # the connection may be a new one
            outcomes, added = self._store(connection, batches)
            new_tallies = self._add(connection, process, added) if added else {}
        if self._last_writer != (process, generation):
            self._last_tallies, self._last_writer = {}, (process, generation)
        self._remember(new_tallies)
        return outcomes

    def _remember(self, tallies: Mapping[int, Tally]) -> None:
        """Remember the tallies of a commit, and of those before it as many as there is room for."""
        self._last_tallies |= tallies
        size = sum(tally.summary.nbytes for tally in self._last_tallies.values())
        for seq in [seq for seq in self._last_tallies if seq not in tallies]:
            if size <= _TALLY_BYTES and len(self._last_tallies) <= _TALLIES:
                break
            size -= self._last_tallies.pop(seq).summary.nbytes

    def _commit_in_one_statement(
        self, last_tallies: Mapping[Batch, Tally]
    ) -> dict[int, Tally] | None:
        """Store batches of new submissions; return the new tallies, or None if nothing is stored.

        `last_tallies` are those of each batch's round.
        """
        tallies, rows = {}, []
        for batch, before in sorted(last_tallies.items(), key=lambda pair: pair[0].seq):
            digests = dict(sorted(_encoded(batch)))
            if len(digests) < len(batch.hashes):
                return None
            data, added = batch.rows(range(len(digests)))
            tallies[batch.seq] = after = before + added
            rows.append(
                RoundRows(
                    round=batch.seq,
                    digests=digests,
                    n=added.n,
                    data=data,
                    n_before=before.n,
                    n_after=after.n,
                    counts=encode_counts(after),
                )
            )
        process, generation = self._last_writer
        is_stored = self.database.commit_in_one_statement(rows, process, self.hour(), generation)
        return tallies if is_stored else None

    def _store(
        self, connection: sa.Connection, batches: Sequence[Batch]
    ) -> tuple[list[list[Outcome]], dict[int, Tally]]:
        """Store keys and segments; return the outcomes, and what to add to each tally."""
        seqs = {"seqs": [batch.seq for batch in batches]}
        states = {
            row.seq: row
            for row in connection.execute(self._select_states, seqs)
            if row.state != "gone"
        }
        submissions = {batch.seq: _encoded(batch) for batch in batches if batch.seq in states}
        # If a key comes several times in this group, its first submission decides.
        digests: dict[bytes, bytes] = {}
        new_keys: list[bytes] = []
        for seq, encoded in submissions.items():
            by_key = dict(reversed(encoded))
            digests |= by_key
            if states[seq].state == "open":
                new_keys += by_key
        inserted: set[bytes] = set()
        if new_keys:
            new_digests = {key: digests[key] for key in sorted(new_keys)}
            inserted = self.database.insert_submission_keys(connection, new_digests)
        stored = {key: digests[key] for key in inserted}
        if others := [key for key in digests if key not in inserted]:
            stored |= self.database.find_submission_keys(connection, others)

        def outcome_of(key: bytes, digest: bytes) -> Outcome:
            if key in inserted:
                inserted.remove(key)
                return Outcome.STORED
            if key not in stored:
                return Outcome.CLOSED
            return Outcome.DUPLICATE if stored[key] == digest else Outcome.KEY_REUSED

        outcomes: list[list[Outcome]] = []
        added: dict[int, Tally] = {}
        segment_rows = []
        for batch in batches:
            if batch.seq not in states:
                outcomes.append([Outcome.GONE] * len(batch.hashes))
                continue
            outcomes.append([outcome_of(*each) for each in submissions[batch.seq]])
            new = [i for i, outcome in enumerate(outcomes[-1]) if outcome is Outcome.STORED]
            if not new:
                continue
            data, tally = batch.rows(new)
            added[batch.seq] = tally
            # With the retention none no report is stored, only counted.
            if states[batch.seq].retention != "none":
                segment = {"round": batch.seq, "hour": self.hour(), "n": tally.n, "data": data}
                segment_rows.append(segment)
        if segment_rows:
            connection.execute(self._insert_segments, segment_rows)
        return outcomes, added

    def _add(
        self, connection: sa.Connection, process: int, added: Mapping[int, Tally]
    ) -> dict[int, Tally]:
        """Add to the process's tallies of the rounds; return the new tallies."""

        def row_of(seq: int, tally: Tally) -> dict[str, Any]:
            return {
                "round": seq,
                "process": process,
                "n": tally.n,
                "counts": encode_counts(tally),
                "token": self.database.token,
            }

        new_tallies = dict(added)
        locked = self._locked(connection, process, added)
        if absent := sorted(added.keys() - locked.keys()):
            rows = [row_of(seq, added[seq]) for seq in absent]
            inserted = set(connection.scalars(self._insert_tallies, rows))
            # Another process with this number may have inserted rows first.
            if taken := [seq for seq in absent if seq not in inserted]:
                locked |= self._locked(connection, process, taken)
        rows = []
        for seq in [*locked]:
            n, counts = locked.pop(seq)
            new_tallies[seq] = decode_tally(counts, n) + added[seq]
            rows.append(row_of(seq, new_tallies[seq]))
        if rows:
            connection.execute(self._update_tallies, rows)
        return new_tallies

    def _locked(
        self, connection: sa.Connection, process: int, seqs: Iterable[int]
    ) -> dict[int, tuple[int, bytes]]:
        """Lock the process's tallies of rounds; return the number of reports and the counts."""
        values = {"seqs": [*seqs], "number": process}
        rows = connection.execute(self._lock_tallies, values)
        return {row.round: (row.n, row.counts) for row in rows}


def _encoded(batch: Batch) -> list[tuple[bytes, bytes]]:
    """Return the encoded key and digest of each submission."""
    return [(encode_key(batch.seq, key), encode_digest(digest)) for key, digest in batch.hashes]
