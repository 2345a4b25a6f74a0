"""Checks whether stored data agree: counts with reports, reports with keys, rows with rounds.

The check writes nothing, and a server may be running: each round is read in one transaction.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from ldprecover import FrequencyOracle, Tally
from ldprecover.errors import LDPRecoverError
from ldprecover.protocols import PROTOCOLS
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.key_encoding import in_round
from ldprecover_server.storage.maintenance.deletion import rows_of_round
from ldprecover_server.storage.rounds import read_parameters
from ldprecover_server.storage.schema import quarantine, rounds, segments, submission_keys, tallies
from ldprecover_server.storage.segments import first_bytes, list_segments, read_segments
from ldprecover_server.storage.tally_encoding import decode_tally

_MAX_PROCESSES = {"sqlite": 1, "postgresql": 1024}


@dataclass(frozen=True)
class Finding:
    """A disagreement in a round: `expected` against `found`.

    `fault` is False for what a server puts right by itself: rows of a deleted round.
    """

    round: str
    what: str
    expected: int
    found: int
    fault: bool = True


def check(database: Database) -> list[Finding]:
    """Return what does not agree, round by round; an empty list for an intact database.

    It recounts every stored report, which takes about as long as counting them did. Raises
    StoreUnavailableError.
    """
    with database.read() as connection:
        seqs = connection.scalars(sa.select(rounds.c.seq).order_by(rounds.c.seq)).all()
    return [finding for seq in seqs for finding in _check_round(database, seq)]


def _check_round(database: Database, seq: int) -> Iterator[Finding]:
    with database.read() as connection:
        round = connection.execute(sa.select(rounds).where(rounds.c.seq == seq)).one_or_none()
        if round is None:  # deleted meanwhile
            return
        if round.state == "gone":
            n = rows_of_round(connection, seq)
            yield Finding(round.name, "rows of a deleted round, not deleted yet", 0, n, fault=False)
        elif round.protocol not in PROTOCOLS:
            what = f"a protocol that is loaded, not the plugin {round.protocol!r}"
            yield Finding(round.name, what, 1, 0)
        else:
            yield from _RoundCheck(database, connection, round).run()


class _RoundCheck:
    """The check of one round in one transaction."""

    def __init__(self, database: Database, connection: sa.Connection, round: Any) -> None:
        self._database = database
        self._connection = connection
        self._round = round

    def run(self) -> Iterator[Finding]:
        try:
            parameters = read_parameters(self._round)
            oracle = parameters.oracle
        except (LDPRecoverError, ValueError):
            yield self._finding("parameters that can be read", 1, 0)
            return
        tally, damaged = self._tally(oracle.summary_size)
        if damaged:
            yield self._finding("tallies that are damaged, or of no process", 0, damaged)
            return
        yield from self._check_keys(tally)
        yield from self._check_segments(oracle, tally)
        yield from self._check_quarantine(oracle)
        if self._round.retention != 0 and not self._round.purged:
            yield from self._check_counts(parameters.items, oracle, tally)

    def _finding(self, what: str, expected: int, found: int) -> Finding:
        return Finding(self._round.name, what, expected, found)

    def _scalar(self, query: sa.Select[Any]) -> int:
        return int(self._connection.scalars(query).one())

    def _tally(self, size: int) -> tuple[Tally, int]:
        """Return the sum of the undamaged tallies, and the number of damaged ones."""
        total, damaged = Tally.empty(size), 0
        query = sa.select(tallies).where(tallies.c.round == self._round.seq)
        for row in self._connection.execute(query):
            try:
                if not 0 <= row.process < _MAX_PROCESSES[self._database.dialect]:
                    raise ValueError(row.process)
                total += decode_tally(row.counts, row.n)
            except (LDPRecoverError, ValueError):
                damaged += 1
        return total, damaged

    def _quarantined_by_size(self) -> int:
        """Return how many reports the tallies say were quarantined by their size."""
        total = sa.func.coalesce(sa.func.sum(tallies.c.quarantined), 0)
        return self._scalar(sa.select(total).where(tallies.c.round == self._round.seq))

    def _check_keys(self, tally: Tally) -> Iterator[Finding]:
        """Each submission has one key and at least one report."""
        condition = in_round(submission_keys.c.key, self._round.seq)
        keys = self._scalar(
            sa.select(sa.func.count()).select_from(submission_keys).where(condition)
        )
        accepted = tally.n + self._quarantined_by_size() + self._round.seeds_quarantined
        if keys > accepted:
            yield self._finding("submission keys, at most one for each report", accepted, keys)
        if accepted and not keys:
            yield self._finding("submission keys, at least one for any reports", 1, keys)

    def _check_sizes(
        self, table: sa.Table, what: str, oracle: FrequencyOracle
    ) -> Iterator[Finding]:
        """Each row has the bytes of its reports."""
        damaged = sa.select(sa.func.count()).select_from(table)
        damaged = damaged.where(
            table.c.round == self._round.seq, sa.not_(_is_undamaged(table, oracle))
        )
        if n := self._scalar(damaged):
            yield self._finding(f"{what} whose size is not that of their reports", 0, n)

    def _check_segments(self, oracle: FrequencyOracle, tally: Tally) -> Iterator[Finding]:
        """The segments have all counted reports that were not purged."""
        yield from self._check_sizes(segments, "segments", oracle)
        purged = self._round.purged
        expected = 0 if self._round.retention == 0 else tally.n - purged
        total = sa.select(sa.func.coalesce(sa.func.sum(segments.c.n), 0))
        stored = self._scalar(total.where(segments.c.round == self._round.seq))
        if stored != expected:
            what = "reports in segments" + (f", {purged} being purged" if purged else "")
            yield self._finding(what, expected, stored)

    def _check_quarantine(self, oracle: FrequencyOracle) -> Iterator[Finding]:
        """Each quarantined report is stored, unless the round has a retention."""
        yield from self._check_sizes(quarantine, "rows of the quarantine", oracle)
        if self._round.retention is not None:
            return
        total = sa.select(quarantine.c.reason, sa.func.sum(quarantine.c.n).label("n"))
        total = total.where(quarantine.c.round == self._round.seq).group_by(quarantine.c.reason)
        stored = {row.reason: int(row.n) for row in self._connection.execute(total)}
        counted = {"size": self._quarantined_by_size(), "seed": self._round.seeds_quarantined}
        for reason, n in counted.items():
            if stored.get(reason, 0) != n:
                what = f"reports quarantined by their {reason}"
                yield self._finding(what, n, stored.get(reason, 0))

    def _check_counts(
        self, items: tuple[str, ...], oracle: FrequencyOracle, tally: Tally
    ) -> Iterator[Finding]:
        """The tally is that of the stored reports."""
        recounted, damaged = self._recount(oracle)
        if damaged:
            yield self._finding("pieces of reports that the protocol does not have", 0, damaged)
        expected, counted = recounted.counts(oracle), tally.counts(oracle)
        differing = np.flatnonzero(expected != counted)
        if differing.size:
            i = int(differing[0])
            what = f"support of {items[i]!r}, the first of {differing.size} items that differ"
            yield self._finding(what, int(expected[i]), int(counted[i]))
        elif (recounted.summary != tally.summary).any():
            yield self._finding("tallies that are not those of the reports", 0, 1)

    def _recount(self, oracle: FrequencyOracle) -> tuple[Tally, int]:
        """Return the tally of the undamaged segments, and the number of damaged pieces."""
        total, damaged, after = Tally.empty(oracle.summary_size), 0, 0
        connection, seq = self._connection, self._round.seq
        undamaged = _is_undamaged(segments, oracle)
        while listed := first_bytes(list_segments(connection, seq, after, None, undamaged)):
            with contextlib.closing(
                read_segments(self._database, connection, seq, listed)
            ) as pieces:
                for piece in pieces:
                    try:
                        total += Tally.of(oracle, oracle.wire.unpack(piece))
                    except LDPRecoverError:
                        damaged += 1
            after = listed[-1].id
        return total, damaged


def _is_undamaged(table: sa.Table, oracle: FrequencyOracle) -> sa.ColumnElement[bool]:
    return sa.and_(table.c.n > 0, sa.func.length(table.c.data) == table.c.n * oracle.wire.size)
