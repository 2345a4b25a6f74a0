"""Filters closed rounds: quarantines reports that repeat too often.

The threshold depends on the number of reports, which is final once the round is closed. Two passes
over the segments count recurring seeds; where the tally is the histogram of the reports, it has the
repeats. One small transaction records them. Then the segments are processed in order, in chunks of
one transaction: repeats move to the quarantine, the tally loses their support, and the round
records the last segment and the repeats that remain. So each report moves exactly once, and after a
crash the next process continues. Unlinking comes afterwards.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from ldprecover import FrequencyOracle, Tally
from ldprecover.evidence.quarantine import Repeats, SeedFilter
from ldprecover.protocols import PROTOCOLS
from ldprecover.types import Reports
from ldprecover_server.errors import RoundNotFoundError, ServiceError
from ldprecover_server.storage.base import Clock, Repository
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.maintenance.chunks import (
    Chunk,
    HasTime,
    Progress,
    for_one_chunk,
    run_each,
)
from ldprecover_server.storage.rounds import Rounds, sum_tallies, update_round
from ldprecover_server.storage.schema import quarantine, rounds, segments, tallies, total
from ldprecover_server.storage.segments import first_bytes, is_undamaged, list_segments
from ldprecover_server.storage.tally_encoding import decode_tally, encode_counts

_log = logging.getLogger(__name__)

_TO_FILTER = sa.and_(rounds.c.state == "closed", sa.not_(rounds.c.filtered))
_PASSES = 2


@dataclass(frozen=True, eq=False)
class QuarantinedReports:
    """Reports that were quarantined together, for one reason, in one hour since the epoch."""

    reason: str
    hour: int
    reports: Reports
    oracle: FrequencyOracle


@dataclass
class _Search:
    """This process's progress in the search for a round's recurring seeds."""

    seq: int
    oracle: FrequencyOracle
    seed_filter: SeedFilter
    passes: int = 0
    after: int = 0


class Filters(Repository):
    """Filtering of a database's closed rounds, and their quarantine."""

    def __init__(self, database: Database, clock: Clock, stored_rounds: Rounds) -> None:
        super().__init__(database, clock)
        self._rounds = stored_rounds
        self._search: _Search | None = None
        self._given_up: set[int] = set()

    def quarantined(self, identifier: str) -> Iterator[QuarantinedReports]:
        """Yield a round's quarantined reports in the order in which they were quarantined.

        Raises RoundNotFoundError, PluginNotLoadedError and StoreUnavailableError.
        """
        seq, after = self._rounds.find(identifier).seq, 0
        oracle = self._rounds.oracle(seq)
        while True:
            with self.database.read() as connection:
                listed = first_bytes(list_segments(connection, seq, after, table=quarantine))
                rows = _read_rows(connection, quarantine, listed)
            if not rows:
                return
            for row in rows:
                reports = _reports(oracle, row.data)
                yield QuarantinedReports(row.reason, row.hour, reports, oracle)
            after = rows[-1].id

    def run(self, has_time: HasTime = lambda: True) -> Progress:
        """Filter the closed rounds while there is time; return how many reports were quarantined.

        Rounds of a protocol that is not loaded wait, because it defines what a report is. A round
        that cannot be filtered, say because its rows are damaged, is logged and left out until the
        process restarts. Raises ServiceError.
        """
        is_counted = rounds.c.repeats.is_not(None).label("is_counted")
        query = sa.select(rounds.c.seq, is_counted).where(
            _TO_FILTER, rounds.c.protocol.in_(PROTOCOLS)
        )
        with self.database.read() as connection:
            to_filter = connection.execute(query.order_by(rounds.c.seq)).all()
        self._given_up &= {round.seq for round in to_filter}
        moved: list[int] = []
        for round in to_filter:
            if round.seq in self._given_up:
                continue
            try:
                progress = run_each(self._chunks(round.seq, round.is_counted, moved), has_time)
            except ServiceError:
                raise
            except Exception:  # noqa: BLE001  the other rounds must be filtered
                _log.exception("the round with seq %d cannot be filtered", round.seq)
                self._given_up.add(round.seq)
                self._search = None
                continue
            if not progress.done:
                return Progress(sum(moved), False)
        return Progress(sum(moved), True)

    def _chunks(self, seq: int, is_counted: bool, moved: list[int]) -> Iterator[Chunk]:
        oracle = self._rounds.oracle(seq)
        if not is_counted:
            yield (self._find_seeds if oracle.traits.seeded else self._count)(seq, oracle)
        yield self._move_reports(seq, oracle, moved)

    def _count(self, seq: int, oracle: FrequencyOracle) -> Chunk:
        """Return the chunk that records the repeats that the tally has."""

        def chunk(limit: int) -> int:
            with self.database.read() as connection:
                try:
                    tally = sum_tallies(connection, seq, oracle.summary_size)
                except RoundNotFoundError:
                    return 0
            self._record(seq, Repeats.of_tally(oracle, tally))
            return 0

        return chunk

    def _find_seeds(self, seq: int, oracle: FrequencyOracle) -> Chunk:
        """Return the chunk that reads the segments twice and records the recurring seeds."""
        if self._search is None or self._search.seq != seq:
            count = sa.select(total(segments.c.n))
            with self.database.read() as connection:
                count = count.where(segments.c.round == seq, is_undamaged(oracle))
                n = int(connection.scalars(count).one())
            self._search = _Search(seq, oracle, SeedFilter(n))
        search = self._search

        def chunk(limit: int) -> int:
            with self.database.read() as connection:
                listed = list_segments(connection, seq, search.after, is_undamaged(oracle))
                rows = _read_rows(connection, segments, first_bytes(listed[:limit]))
            for row in rows:
                seeds = np.ascontiguousarray(oracle.seeds(_reports(oracle, row.data)))
                (search.seed_filter.compare if search.passes else search.seed_filter.count)(seeds)
            if rows:
                search.after = rows[-1].id
                return len(rows)
            search.passes, search.after = search.passes + 1, 0
            if search.passes < _PASSES:
                return 1
            self._record(seq, search.seed_filter.repeats())
            self._search = None
            return 0

        return chunk

    def _record(self, seq: int, repeats: Repeats) -> None:
        """Record the repeats, unless another process has: then its list stands."""
        values = {"repeats": repeats.to_bytes()}
        with self.database.write() as connection:
            update_round(connection, seq, values, _TO_FILTER, rounds.c.repeats.is_(None))

    def _move_reports(self, seq: int, oracle: FrequencyOracle, moved: list[int]) -> Chunk:
        """Return the chunk that quarantines the recorded repeats; it appends to `moved`."""
        state = sa.select(rounds.c.repeats, rounds.c.filtered_segment).where(
            rounds.c.seq == seq, _TO_FILTER
        )

        def chunk(limit: int) -> int:
            with self.database.write() as connection:
                self.database.lock_maintenance(connection)
                has_time = for_one_chunk()
                if (row := connection.execute(state).one_or_none()) is None:
                    return 0  # another process has finished
                repeats = Repeats.from_bytes(row.repeats or b"")
                after = row.filtered_segment or 0
                listed = list_segments(connection, seq, after, is_undamaged(oracle))
                listed = first_bytes(listed[:limit])
                if not listed or not repeats.n:
                    update_round(connection, seq, {"filtered": True, "repeats": None})
                    return 0
                removed, remaining, processed = self._move(
                    connection, seq, oracle, listed, repeats, has_time
                )
                values: dict[str, Any] = {"filtered_segment": listed[processed - 1].id}
                if remaining is not repeats:
                    values["repeats"] = remaining.to_bytes()
                if removed.n:
                    _subtract_from_tallies(connection, seq, removed)
                    values |= {
                        "repeats_quarantined": rounds.c.repeats_quarantined + removed.n,
                        "rewrites": rounds.c.rewrites + 1,
                    }
                update_round(connection, seq, values)
            moved.append(removed.n)
            return processed

        return chunk

    def _move(
        self,
        connection: sa.Connection,
        seq: int,
        oracle: FrequencyOracle,
        listed: list[Any],
        repeats: Repeats,
        has_time: HasTime,
    ) -> tuple[Tally, Repeats, int]:
        """Quarantine the repeats in the first of these segments, as many as there is time for.

        Returns their tally, the repeats that remain, and the number of segments, at least one.
        """
        removed = Tally.empty(oracle.summary_size)
        processed = 0
        for row in _read_rows(connection, segments, listed):
            if processed and not has_time():
                break
            processed += 1
            reports = _reports(oracle, row.data)
            repeated, repeats = repeats.split(oracle, reports)
            if not repeated.any():
                continue
            quarantined, remaining = reports[repeated], reports[~repeated]
            removed += Tally.of(oracle, quarantined)
            moved = {
                "round": seq,
                "reason": "repeat",
                "hour": row.hour,
                "n": len(quarantined),
                "data": quarantined.tobytes(),
            }
            connection.execute(sa.insert(quarantine), moved)
            this = segments.c.id == row.id
            if len(remaining):
                values = {"n": len(remaining), "data": remaining.tobytes()}
                connection.execute(sa.update(segments).where(this).values(values))
            else:
                connection.execute(sa.delete(segments).where(this))
        return removed, repeats, processed


def _read_rows(connection: sa.Connection, table: sa.Table, listed: list[Any]) -> list[Any]:
    query = sa.select(table).where(table.c.id.in_([row.id for row in listed]))
    return list(connection.execute(query.order_by(table.c.id)))


def _reports(oracle: FrequencyOracle, data: bytes) -> Reports:
    return np.frombuffer(data, dtype=oracle.wire.dtype)


def _subtract_from_tallies(connection: sa.Connection, seq: int, removed: Tally) -> None:
    """Subtract reports from a closed round's tally, and merge its rows into one.

    No single row need contain all the removed reports.
    """
    of_round = tallies.c.round == seq
    rows = connection.execute(
        sa.select(tallies).where(of_round).order_by(tallies.c.process).with_for_update()
    ).all()
    total = sum(
        (decode_tally(row.counts, row.n) for row in rows), Tally.empty(removed.summary.size)
    )
    total -= removed
    first, *others = (row.process for row in rows)
    if others:
        connection.execute(sa.delete(tallies).where(of_round, tallies.c.process.in_(others)))
    merged = sa.update(tallies).where(of_round, tallies.c.process == first)
    connection.execute(
        merged.values(
            n=total.n,
            counts=encode_counts(total),
            quarantined=sum(row.quarantined for row in rows),
            token=sa.null(),
        )
    )
