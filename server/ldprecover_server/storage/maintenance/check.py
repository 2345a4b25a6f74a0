"""Checks whether stored data agree: counts with reports, reports with keys, rows with rounds, and
rounds with their form and series.

The check writes nothing, and a server may be running: each round is read in one transaction. Small
rounds share it, with one statement for each table.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import sqlalchemy as sa

from ldprecover import RoundParameters, Tally
from ldprecover.errors import LDPRecoverError
from ldprecover.items import quoted
from ldprecover.protocols import PROTOCOLS
from ldprecover_server.errors import PluginNotLoadedError, RoundDamagedError
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.encoding import in_round
from ldprecover_server.storage.rounds import parameters_of
from ldprecover_server.storage.schema import (
    forms,
    labels,
    rounds,
    segments,
    series,
    submission_keys,
    tallies,
)
from ldprecover_server.storage.segments import first_bytes, read_segments
from ldprecover_server.storage.tallies import NUMBER_OF_REPORTS, decode_tally

_MAX_PROCESSES = {"sqlite": 1, "postgresql": 1024}
_ROUNDS = 256
"""Rounds that share a transaction, if their labels, tallies and reports are small."""
_SEGMENTS = 1024
"""Segments read at a time."""
_SMALL_BYTES = 1 << 13
"""Size of a segment up to which its reports are read with others."""
_ROUND_OF_KEY = {"sqlite": "substr(key, 1, 4)", "postgresql": "substr(uuid_send(key), 1, 4)"}


Expectation = tuple[str, int, int]
"""A description, and the expected and the actual number."""


@dataclass(frozen=True)
class Finding:
    """A disagreement in a round, form or series: `expected` against `found`.

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
    size = rounds.c.labels_bytes + 8 * (rounds.c.domain_size + NUMBER_OF_REPORTS)
    query = sa.select(rounds.c.seq, size.label("size")).order_by(rounds.c.seq).limit(_ROUNDS)
    findings: list[Finding] = []
    last = 0
    while True:
        with database.read() as connection:
            page = first_bytes(list(connection.execute(query.where(rounds.c.seq > last))))
            if not page:
                return [*findings, *_check_forms(connection), *_check_series(connection)]
            findings += _check_rounds(database, connection, page[0].seq, last := page[-1].seq)


def _check_rounds(
    database: Database, connection: sa.Connection, first: int, last: int
) -> Iterator[Finding]:
    """Yield the findings of successive rounds, read with one statement for each table."""
    among = rounds.c.seq.between(first, last)
    query = sa.select(rounds, labels.c["items"]).outerjoin(labels).where(among)
    checks = {row.seq: _RoundCheck(row) for row in connection.execute(query)}
    for row in connection.execute(sa.select(tallies).join(rounds).where(among)):
        checks[row.round].add_tally(row, _MAX_PROCESSES[database.dialect])
    columns, size = segments.c, sa.func.length(segments.c.data)
    data = sa.case((size <= _SMALL_BYTES, columns.data)).label("data")
    query = sa.select(columns.round, columns.id, columns.n, size.label("size"), data)
    query = query.where(columns.round.between(first, last)).order_by(columns.round, columns.id)
    options = {"yield_per": _SEGMENTS}
    for listed in connection.execute(query, execution_options=options).partitions():
        for seq, group in groupby(listed, lambda row: row.round):
            check = checks.get(seq)
            if check and (whole := [row for row in group if check.add_segment(row)]):
                if small := b"".join(row.data for row in whole if row.data is not None):
                    check.recount(small)
                for row in whole:
                    if row.data is None:
                        for piece in read_segments(database, connection, seq, [row]):
                            check.recount(piece)
    key = submission_keys.c.key
    round = sa.literal_column(_ROUND_OF_KEY[database.dialect], sa.LargeBinary)
    query = sa.select(round, sa.func.count()).where(in_round(key, first, last)).group_by(round)
    keys = {int.from_bytes(seq, "big"): number for seq, number in connection.execute(query)}
    for seq, check in sorted(checks.items()):
        yield from check.findings(keys.get(seq, 0))


def _check_forms(connection: sa.Connection) -> Iterator[Finding]:
    """Yield the findings of forms: all of their rounds are there, and in one state."""
    is_in_place = (rounds.c.form == forms.c.id) & (rounds.c.position < forms.c.size)
    counts = sa.func.count(rounds.c.seq), sa.func.count(rounds.c.state.distinct())
    query = sa.select(forms.c.name, forms.c.size, *counts)
    query = query.outerjoin_from(forms, rounds, is_in_place).group_by(forms.c.seq)
    for name, size, n, states in connection.execute(query.order_by(forms.c.seq)):
        if n != size:
            yield Finding(f"form {name}", "rounds", size, n)
        elif states > 1:
            yield Finding(f"form {name}", "states of its rounds", 1, states)


def _check_series(connection: sa.Connection) -> Iterator[Finding]:
    """Yield the findings of series: the last number is the greatest, and one number is open."""
    open_number = sa.case((rounds.c.state == "open", rounds.c.number))
    query = (
        sa.select(rounds.c.series, sa.func.max(series.c.last), sa.func.max(rounds.c.number))
        .add_columns(sa.func.count(open_number.distinct()))
        .outerjoin_from(rounds, series, series.c.name == rounds.c.series)
        .where(rounds.c.series.is_not(None))
        .group_by(rounds.c.series)
    )
    for name, last, greatest, n_open in connection.execute(query):
        if greatest > (last or 0):
            yield Finding(f"series {name}", "the last number", greatest, last or 0)
        if n_open > 1:
            yield Finding(f"series {name}", "open rounds or forms, at most", 1, n_open)


class _RoundCheck:
    """What is stored of one round."""

    def __init__(self, round: Any) -> None:
        self._round = round
        self._parameters: RoundParameters | None = None
        with contextlib.suppress(PluginNotLoadedError, RoundDamagedError):
            self._parameters = parameters_of(round, round.items)
        self._damaged_tallies = self._segments = self._damaged = self._reports = 0
        self._impossible = 0
        size = self._parameters.oracle.summary_size if self._parameters else 0
        self._tally = self._recounted = Tally.empty(size)

    def add_tally(self, row: Any, processes: int) -> None:
        """Add a tally, or count it as damaged."""
        try:
            if not 0 <= row.process < processes:
                raise ValueError(row.process)
            self._tally += decode_tally(row.counts, row.n)
        except (LDPRecoverError, ValueError):
            self._damaged_tallies += 1

    def add_segment(self, row: Any) -> bool:
        """Count a segment; return whether its reports are to be counted."""
        self._segments += 1
        self._reports += row.n
        if self._parameters is None:
            return False
        is_whole: bool = 0 < row.n * self._parameters.oracle.wire.size == row.size
        self._damaged += not is_whole
        return is_whole and self._round.state != "gone" and self._round.retention != "none"

    def recount(self, packed: bytes) -> None:
        """Count the reports of undamaged segments."""
        assert self._parameters is not None
        oracle = self._parameters.oracle
        try:
            self._recounted += Tally.of(oracle, oracle.wire.unpack(packed))
        except LDPRecoverError:
            self._impossible += 1

    def findings(self, keys: int) -> Iterator[Finding]:
        """Yield a finding for each expectation that does not hold."""
        name, protocol = self._round.name, self._round.protocol
        if self._round.state == "gone":
            n = keys + self._segments
            yield Finding(name, "rows of a deleted round, not deleted yet", 0, n, fault=False)
        elif protocol not in PROTOCOLS:
            yield Finding(name, f"a protocol that is loaded, not the plugin {protocol!r}", 1, 0)
        elif self._parameters is None:
            yield Finding(name, "parameters of the round's digest, p and q", 1, 0)
        else:
            for description, expected, actual in self._expectations(self._parameters, keys):
                if expected != actual:
                    yield Finding(name, description, expected, actual)

    def _expectations(self, parameters: RoundParameters, keys: int) -> Iterator[Expectation]:
        yield "tallies that are damaged, or of no process", 0, self._damaged_tallies
        if self._damaged_tallies:
            return
        n = self._tally.n
        if keys > n:
            yield "submission keys, at most one for each report", n, keys
        if n:
            yield "submission keys, at least one for any reports", 1, min(keys, 1)
        yield "segments whose size is not that of their reports", 0, self._damaged
        is_kept = self._round.retention != "none"
        yield "reports in segments", n if is_kept else 0, self._reports
        if is_kept:
            yield from self._check_counts(parameters)

    def _check_counts(self, parameters: RoundParameters) -> Iterator[Expectation]:
        """The tally is that of the stored reports."""
        yield "pieces of reports that the protocol does not have", 0, self._impossible
        oracle, items = parameters.oracle, parameters.items
        expected, counted = self._recounted.counts(oracle), self._tally.counts(oracle)
        differing = np.flatnonzero(expected != counted)
        if differing.size:
            i = int(differing[0])
            description = (
                f"support of {quoted(items[i])}, the first of {differing.size} items that differ"
            )
            yield description, int(expected[i]), int(counted[i])
        else:
            is_other = (self._recounted.summary != self._tally.summary).any()
            yield "tallies that are not those of the reports", 0, int(is_other)
