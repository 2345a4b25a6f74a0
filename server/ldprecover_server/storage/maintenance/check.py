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
from ldprecover_server.errors import RoundNotFoundError
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.encoding import decode_tally, in_round
from ldprecover_server.storage.maintenance.deletion import rows_of_round
from ldprecover_server.storage.rounds import read_parameters
from ldprecover_server.storage.schema import rounds, segments, submission_keys, tallies, total
from ldprecover_server.storage.segments import (
    first_bytes,
    is_undamaged,
    list_segments,
    read_segments,
)

_MAX_PROCESSES = {"sqlite": 1, "postgresql": 1024}


Expectation = tuple[str, int, int]
"""A description, and the expected and the actual number."""


@dataclass(frozen=True)
class Finding:
    """A disagreement in a round: `expected` against `found`.

    `fault` is False for what a server puts right by itself: rows of a deleted round.
    """

    round: str
    what: str  # phrases: quoted
    expected: int
    found: int  # phrases: quoted
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
            description = f"a protocol that is loaded, not the plugin {round.protocol!r}"
            yield Finding(round.name, description, 1, 0)
        else:
            yield from _RoundCheck(database, connection, round).run()


class _RoundCheck:
    """The check of one round in one transaction."""

    def __init__(self, database: Database, connection: sa.Connection, round: Any) -> None:
        self._database = database
        self._connection = connection
        self._round = round

    def run(self) -> Iterator[Finding]:
        """Yield a finding for each expectation that does not hold."""
        for description, expected, actual in self._expectations():
            if expected != actual:
                yield Finding(self._round.name, description, expected, actual)

    def _expectations(self) -> Iterator[Expectation]:
        try:
            parameters = read_parameters(self._connection, self._round.seq)
            oracle = parameters.oracle
        except (LDPRecoverError, RoundNotFoundError, ValueError):
            yield "parameters that can be read", 1, 0
            return
        tally, damaged = self._tally(oracle.summary_size)
        yield "tallies that are damaged, or of no process", 0, damaged
        if damaged:
            return
        yield from self._check_keys(tally)
        yield from self._check_segments(oracle, tally)
        if self._round.retention != "none":
            yield from self._check_counts(parameters.items, oracle, tally)

    def _scalar(self, value: sa.ColumnElement[int], *conditions: sa.ColumnElement[bool]) -> int:
        return int(self._connection.scalars(sa.select(value).where(*conditions)).one())

    def _tally(self, size: int) -> tuple[Tally, int]:
        """Return the sum of the undamaged tallies, and the number of damaged ones."""
        tally, damaged = Tally.empty(size), 0
        query = sa.select(tallies).where(tallies.c.round == self._round.seq)
        for row in self._connection.execute(query):
            try:
                if not 0 <= row.process < _MAX_PROCESSES[self._database.dialect]:
                    raise ValueError(row.process)
                tally += decode_tally(row.counts, row.n)
            except (LDPRecoverError, ValueError):
                damaged += 1
        return tally, damaged

    def _check_keys(self, tally: Tally) -> Iterator[Expectation]:
        """Each submission has one key and at least one report."""
        key = submission_keys.c.key
        keys = self._scalar(sa.func.count(key), in_round(key, self._round.seq))
        if keys > tally.n:
            yield "submission keys, at most one for each report", tally.n, keys
        if tally.n:
            yield "submission keys, at least one for any reports", 1, min(keys, 1)

    def _check_segments(self, oracle: FrequencyOracle, tally: Tally) -> Iterator[Expectation]:
        """The segments have all counted reports, unless the round retains none."""
        of_round = segments.c.round == self._round.seq
        is_damaged = sa.not_(is_undamaged(oracle))
        damaged = self._scalar(sa.func.count(segments.c.id), of_round, is_damaged)
        yield "segments whose size is not that of their reports", 0, damaged
        expected = 0 if self._round.retention == "none" else tally.n
        stored = self._scalar(total(segments.c.n), of_round)
        yield "reports in segments", expected, stored

    def _check_counts(
        self, items: tuple[str, ...], oracle: FrequencyOracle, tally: Tally
    ) -> Iterator[Expectation]:
        """The tally is that of the stored reports."""
        recounted, damaged = self._recount(oracle)
        yield "pieces of reports that the protocol does not have", 0, damaged
        expected, counted = recounted.counts(oracle), tally.counts(oracle)
        differing = np.flatnonzero(expected != counted)
        if differing.size:
            i = int(differing[0])
            description = (
                f"support of {items[i]!r}, the first of {differing.size} items that differ"
            )
            yield description, int(expected[i]), int(counted[i])
        else:
            is_other = (recounted.summary != tally.summary).any()
            yield "tallies that are not those of the reports", 0, int(is_other)

    def _recount(self, oracle: FrequencyOracle) -> tuple[Tally, int]:
        """Return the tally of the undamaged segments, and the number of damaged pieces."""
        tally, damaged, after = Tally.empty(oracle.summary_size), 0, 0
        connection, seq = self._connection, self._round.seq
        while listed := first_bytes(list_segments(connection, seq, after, is_undamaged(oracle))):
            with contextlib.closing(
                read_segments(self._database, connection, seq, listed)
            ) as pieces:
                for piece in pieces:
                    try:
                        tally += Tally.of(oracle, oracle.wire.unpack(piece))
                    except LDPRecoverError:
                        damaged += 1
            after = listed[-1].id
        return tally, damaged
