"""Whether what is stored agrees with itself: counts with reports, reports with keys, rows with
rounds.

Nothing is written, and a server may be running: each round is looked at as it is in one moment.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from ldprecover import FrequencyOracle, RoundParameters, Tally
from ldprecover.errors import LDPRecoverError
from ldprecover.protocols import PROTOCOLS, wire
from ldprecover_server.storage.key_encoding import of_round
from ldprecover_server.storage.maintenance.deletion import rows_left
from ldprecover_server.storage.rounds import Rounds, parameters_of
from ldprecover_server.storage.schema import quarantine, rounds, segments, submission_keys, tallies
from ldprecover_server.storage.segments import leading, list_segments, read_segments
from ldprecover_server.storage.tally_encoding import read_tally

_OPEN_NUMBERS = {"sqlite": 1, "postgresql": 1024}
"""How many numbers processes can have."""


@dataclass(frozen=True)
class Finding:
    """Something of a round that is not as it should be, and by how much: `expected` against
    `found`.
    """

    round: str
    what: str
    expected: int
    found: int
    fault: bool = True
    """False for what a server will put right by itself: rows of a deleted round that are yet to go.
    """


class Checking(Rounds):
    """The check of a database."""

    def check(self) -> list[Finding]:
        """Return what does not agree, round by round; nothing for a database that is whole.

        Every report that is kept is counted anew, so it takes about as long as counting them took.
        Raises StoreUnavailableError.
        """
        with self.database.read() as connection:
            seqs = connection.scalars(sa.select(rounds.c.seq).order_by(rounds.c.seq)).all()
        return [finding for seq in seqs for finding in self._check(seq)]

    def _check(self, seq: int) -> Iterator[Finding]:
        with self.database.read() as connection:
            round = connection.execute(sa.select(rounds).where(rounds.c.seq == seq)).one_or_none()
            if round is None:  # deleted meanwhile
                return
            if round.state == "gone":
                left = rows_left(connection, seq)
                yield Finding(
                    round.name, "rows of a deleted round, yet to go", 0, left, fault=False
                )
                return
            if round.protocol not in PROTOCOLS:
                yield Finding(
                    round.name,
                    f"a protocol that is loaded, not the plugin {round.protocol!r}",
                    1,
                    0,
                )
                return
            try:
                parameters = parameters_of(round)
                oracle = parameters.oracle
            except (LDPRecoverError, ValueError):
                yield Finding(round.name, "parameters that can be read", 1, 0)
                return
            tally, damaged = self._tally(connection, seq, oracle.summary_size)
            if damaged:
                yield Finding(round.name, "tallies that are damaged, or of no process", 0, damaged)
                return
            yield from self._check_keys(connection, round, tally)
            yield from self._check_reports(connection, round, parameters, oracle, tally)

    def _tally(self, connection: sa.Connection, seq: int, size: int) -> tuple[Tally, int]:
        """Return the sum of the tallies that are whole, and how many are not."""
        total, damaged = Tally.empty(size), 0
        for row in connection.execute(sa.select(tallies).where(tallies.c.round == seq)):
            try:
                if not 0 <= row.process < _OPEN_NUMBERS[self.database.dialect]:
                    raise ValueError(row.process)
                total += read_tally(row.counts, row.n)
            except (LDPRecoverError, ValueError):
                damaged += 1
        return total, damaged

    def _check_keys(self, connection: sa.Connection, round: Any, tally: Tally) -> Iterator[Finding]:
        """Each submission left a key, and had one report at least."""
        mine = of_round(submission_keys.c.key, round.seq)
        count = sa.select(sa.func.count()).select_from(submission_keys).where(mine)
        found = connection.scalars(count).one()
        accepted = tally.n + self._aside_by_size(connection, round.seq) + round.seeds_quarantined
        if found > accepted:
            yield Finding(
                round.name, "submission keys, at most one for each report", accepted, found
            )
        if accepted and not found:
            yield Finding(round.name, "submission keys, at least one for any reports", 1, found)

    def _check_reports(
        self,
        connection: sa.Connection,
        round: Any,
        parameters: RoundParameters,
        oracle: FrequencyOracle,
        tally: Tally,
    ) -> Iterator[Finding]:
        mine = segments.c.round == round.seq
        whole = sa.and_(
            segments.c.n > 0, sa.func.length(segments.c.data) == segments.c.n * oracle.report_size
        )
        damaged = sa.select(sa.func.count()).select_from(segments).where(mine, sa.not_(whole))
        if found := connection.scalars(damaged).one():
            yield Finding(round.name, "segments whose size is not that of their reports", 0, found)
        kept = 0 if round.retention == 0 else tally.n - round.purged
        stored = int(
            connection.scalars(
                sa.select(sa.func.coalesce(sa.func.sum(segments.c.n), 0)).where(mine)
            ).one()
        )
        if stored != kept:
            what = (
                "reports in segments"
                if not round.purged
                else f"reports in segments, {round.purged} being purged"
            )
            yield Finding(round.name, what, kept, stored)
        yield from self._check_quarantine(connection, round, oracle)
        if round.retention == 0 or round.purged:
            return
        again, bad = self._recount(connection, round.seq, oracle, whole)
        if bad:
            yield Finding(round.name, "pieces of reports that the protocol does not have", 0, bad)
        expected, counted = again.counts(oracle), tally.counts(oracle)
        differs = np.flatnonzero(expected != counted)
        if differs.size:
            first = int(differs[0])
            what = (
                f"support of {parameters.items[first]!r}, the first of {differs.size} items "
                "that differ"
            )
            yield Finding(round.name, what, int(expected[first]), int(counted[first]))
        elif (again.summary != tally.summary).any():
            yield Finding(round.name, "tallies that are not those of the reports", 0, 1)

    def _aside_by_size(self, connection: sa.Connection, seq: int) -> int:
        """Return how many reports the tallies say were set aside by their size."""
        total = sa.select(sa.func.coalesce(sa.func.sum(tallies.c.quarantined), 0)).where(
            tallies.c.round == seq
        )
        return int(connection.scalars(total).one())

    def _check_quarantine(
        self, connection: sa.Connection, round: Any, oracle: FrequencyOracle
    ) -> Iterator[Finding]:
        """Each report that was set aside is there, unless retention has let it go."""
        mine = quarantine.c.round == round.seq
        whole = sa.and_(
            quarantine.c.n > 0,
            sa.func.length(quarantine.c.data) == quarantine.c.n * oracle.report_size,
        )
        damaged = sa.select(sa.func.count()).select_from(quarantine).where(mine, sa.not_(whole))
        if found := connection.scalars(damaged).one():
            yield Finding(
                round.name,
                "rows of the quarantine whose size is not that of their reports",
                0,
                found,
            )
        if round.retention is not None:
            return
        total = sa.select(quarantine.c.reason, sa.func.sum(quarantine.c.n).label("total")).where(
            mine
        )
        stored = {
            row.reason: int(row.total)
            for row in connection.execute(total.group_by(quarantine.c.reason))
        }
        counted = {
            "size": self._aside_by_size(connection, round.seq),
            "seed": round.seeds_quarantined,
        }
        for reason, number in counted.items():
            if stored.get(reason, 0) != number:
                yield Finding(
                    round.name,
                    f"reports set aside by their {reason}",
                    number,
                    stored.get(reason, 0),
                )

    def _recount(
        self,
        connection: sa.Connection,
        seq: int,
        oracle: FrequencyOracle,
        whole: sa.ColumnElement[bool],
    ) -> tuple[Tally, int]:
        """Count the reports of the segments that are whole, a piece at a time; return also how many
        pieces are bad.
        """
        total, bad, after = Tally.empty(oracle.summary_size), 0, 0
        while batch := leading(list_segments(connection, seq, after, None, whole)):
            with contextlib.closing(read_segments(self.database, connection, seq, batch)) as pieces:
                for piece in pieces:
                    try:
                        total += Tally.of(oracle, wire.unpack(oracle, piece))
                    except LDPRecoverError:
                        bad += 1
            after = batch[-1].id
        return total, bad
