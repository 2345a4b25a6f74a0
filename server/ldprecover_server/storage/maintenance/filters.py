"""Closed rounds are screened: reports under hash seeds that come too often are set aside.

How often is too often hangs on the number of reports, which is known once a round is closed;
nothing is added to it then. Two passes over its segments find the seeds, and one small transaction
writes them down. Then the segments are gone through in order, in pieces of a transaction each,
which moves reports with such a seed into the quarantine, takes their support out of the tally and
notes how far it has come: so each is moved exactly once, whatever breaks off, and whoever comes
next goes on there. A round is mixed only afterwards.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from ldprecover import FrequencyOracle, Tally
from ldprecover.evidence.quarantine import SeedScreen, of_seeds
from ldprecover.protocols import PROTOCOLS
from ldprecover.types import Reports, UInt32Array
from ldprecover_server.storage.maintenance.deletion import GoOn, Piece, Progress, in_pieces
from ldprecover_server.storage.rounds import Rounds
from ldprecover_server.storage.schema import quarantine, rounds, segments, tallies
from ldprecover_server.storage.segments import leading, list_segments
from ldprecover_server.storage.tally_encoding import read_tally, stored_counts

_TO_SCREEN = sa.and_(rounds.c.state == "closed", sa.not_(rounds.c.filtered))
_PASSES = 2


@dataclass(frozen=True, eq=False)
class QuarantinedReports:
    """Reports of a round that are in quarantine together: why, and the hour they came in, since the
    epoch.
    """

    reason: str
    hour: int
    reports: Reports
    oracle: FrequencyOracle


@dataclass
class _Search:
    """How far the search for a round's seeds has come: what this process knows, to be found anew by
    another.
    """

    seq: int
    oracle: FrequencyOracle
    screen: SeedScreen
    passes: int = 0
    after: int = 0


class Screening(Rounds):
    """The screening of a database's closed rounds."""

    _search: _Search | None = None

    def quarantined(self, identifier: str) -> Iterator[QuarantinedReports]:
        """Yield what a round has in quarantine, in the order in which it was set aside, some at a
        time.

        Raises RoundNotFoundError, PluginNotLoadedError and StoreUnavailableError.
        """
        seq, after = self.round(identifier).seq, 0
        oracle = self.parameters(seq).oracle
        while True:
            with self.database.read() as connection:
                listed = leading(list_segments(connection, seq, after, table=quarantine))
                if not listed:
                    return
                mine = quarantine.c.id.between(listed[0].id, listed[-1].id)
                query = (
                    sa.select(quarantine)
                    .where(quarantine.c.round == seq, mine)
                    .order_by(quarantine.c.id)
                )
                rows = connection.execute(query).all()
            for row in rows:
                yield QuarantinedReports(row.reason, row.hour, _reports(oracle, row.data), oracle)
            after = listed[-1].id

    def screen(self, go_on: GoOn = lambda: True) -> Progress:
        """Screen the rounds that are closed, while there is time; return how many reports were set
        aside.

        What a report is its protocol knows: rounds whose protocol is not loaded wait until it is.
        Raises ServiceError.
        """
        with self.database.read() as connection:
            mine = sa.and_(_TO_SCREEN, rounds.c.protocol.in_(PROTOCOLS))
            query = sa.select(rounds.c.seq, rounds.c.recurring_seeds.is_not(None).label("known"))
            found = connection.execute(query.where(mine).order_by(rounds.c.seq)).all()
        moved = 0
        for round in found:
            oracle = self.parameters(round.seq).oracle
            if not round.known and not in_pieces(self._find_seeds(round.seq, oracle), go_on).done:
                return Progress(moved, False)
            taken: list[int] = []
            done = in_pieces(self._move_reports(round.seq, oracle, taken), go_on).done
            moved += sum(taken)
            if not done:
                return Progress(moved, False)
        return Progress(moved, True)

    def _find_seeds(self, seq: int, oracle: FrequencyOracle) -> Piece:
        """Read the segments twice, some at a time, and write down the seeds that come too often."""
        if self._search is None or self._search.seq != seq:
            with self.database.read() as connection:
                total = sa.select(sa.func.coalesce(sa.func.sum(segments.c.n), 0)).where(
                    _whole(seq, oracle)
                )
                n = int(connection.scalars(total).one())
            self._search = _Search(seq, oracle, SeedScreen(n))
        search = self._search

        def piece(limit: int) -> int:
            with self.database.read() as connection:
                listed = leading(
                    list_segments(connection, seq, search.after, None, _whole(seq, oracle))[:limit]
                )
                read = [_reports(oracle, row.data) for row in _rows(connection, listed)]
            for reports in read:
                seeds = np.ascontiguousarray(oracle.seeds(reports))
                (search.screen.compare if search.passes else search.screen.count)(seeds)
            if listed:
                search.after = listed[-1].id
                return len(listed)
            search.passes, search.after = search.passes + 1, 0
            if search.passes < _PASSES:
                return 1
            self._write_down(seq, search.screen.found())
            self._search = None
            return 0

        return piece

    def _write_down(self, seq: int, seeds: UInt32Array) -> None:
        """Write the seeds down, unless another process did before: then its list stands."""
        unknown = sa.and_(rounds.c.seq == seq, _TO_SCREEN, rounds.c.recurring_seeds.is_(None))
        with self.database.write() as connection:
            connection.execute(
                sa.update(rounds)
                .where(unknown)
                .values(recurring_seeds=seeds.astype("<u4").tobytes())
            )

    def _move_reports(self, seq: int, oracle: FrequencyOracle, taken: list[int]) -> Piece:
        """Set reports of the seeds that were written down aside; note in `taken` how many each
        piece found.
        """
        this = rounds.c.seq == seq

        def piece(limit: int) -> int:
            with self.database.write() as connection:
                self.database.take_turn(connection)
                state = sa.select(rounds.c.recurring_seeds, rounds.c.filtered_segment).where(
                    this, _TO_SCREEN
                )
                if (row := connection.execute(state).one_or_none()) is None:
                    return 0  # another process has come to the end
                seeds = np.frombuffer(row.recurring_seeds or b"", "<u4")
                after = row.filtered_segment or 0
                listed = leading(
                    list_segments(connection, seq, after, None, _whole(seq, oracle))[:limit]
                )
                if not listed or not seeds.size:
                    connection.execute(
                        sa.update(rounds).where(this).values(filtered=True, recurring_seeds=None)
                    )
                    return 0
                removed = self._move(connection, seq, oracle, listed, seeds)
                values: dict[str, Any] = {"filtered_segment": listed[-1].id}
                if removed.n:
                    _take_out(connection, seq, removed)
                    values |= {
                        "seeds_quarantined": rounds.c.seeds_quarantined + removed.n,
                        "rewrites": rounds.c.rewrites + 1,
                    }
                connection.execute(sa.update(rounds).where(this).values(values))
            taken.append(removed.n)
            return len(listed)

        return piece

    def _move(
        self,
        connection: sa.Connection,
        seq: int,
        oracle: FrequencyOracle,
        listed: list[Any],
        seeds: UInt32Array,
    ) -> Tally:
        """Move the reports of these segments that have one of the seeds, and return their tally."""
        removed = Tally.empty(oracle.summary_size)
        for row in _rows(connection, listed):
            reports = _reports(oracle, row.data)
            bad = of_seeds(oracle, reports, seeds)
            if not bad.any():
                continue
            aside, kept = reports[bad], reports[~bad]
            removed += Tally.of(oracle, aside)
            moved = {
                "round": seq,
                "reason": "seed",
                "hour": row.hour,
                "n": len(aside),
                "data": aside.tobytes(),
            }
            connection.execute(sa.insert(quarantine), moved)
            this = segments.c.id == row.id
            if len(kept):
                left = sa.update(segments).where(this).values(n=len(kept), data=kept.tobytes())
                connection.execute(left)
            else:
                connection.execute(sa.delete(segments).where(this))
        return removed


def _whole(seq: int, oracle: FrequencyOracle) -> sa.ColumnElement[bool]:
    """Return which segments of a round are whole: another is damaged, and left as it is."""
    size = sa.func.length(segments.c.data) == segments.c.n * oracle.report_size
    return sa.and_(segments.c.round == seq, segments.c.n > 0, size)


def _rows(connection: sa.Connection, listed: list[Any]) -> list[Any]:
    ids = [row.id for row in listed]
    query = sa.select(segments.c.id, segments.c.hour, segments.c.data).where(segments.c.id.in_(ids))
    return list(connection.execute(query.order_by(segments.c.id)))


def _reports(oracle: FrequencyOracle, data: bytes) -> Reports:
    return np.frombuffer(data, dtype=oracle.report_dtype)


def _take_out(connection: sa.Connection, seq: int, removed: Tally) -> None:
    """Take reports out of a closed round's tally: its rows become one, for no single one need have
    them all.
    """
    mine = tallies.c.round == seq
    rows = connection.execute(
        sa.select(tallies).where(mine).order_by(tallies.c.process).with_for_update()
    ).all()
    left = (
        sum((read_tally(row.counts, row.n) for row in rows), Tally.empty(removed.summary.size))
        - removed
    )
    first, *others = (row.process for row in rows)
    if others:
        connection.execute(sa.delete(tallies).where(mine, tallies.c.process.in_(others)))
    values = {
        "n": left.n,
        "counts": stored_counts(left),
        "quarantined": sum(row.quarantined for row in rows),
    }
    connection.execute(
        sa.update(tallies).where(mine, tallies.c.process == first).values(token=None, **values)
    )
