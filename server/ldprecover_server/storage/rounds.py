"""Rounds: opened, found, closed, and what was counted of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sa

from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError
from ldprecover.evidence.quarantine import Quarantined, judges_seeds
from ldprecover.protocols import PROTOCOLS
from ldprecover.rounds.parameters import RoundParameters, digest_of
from ldprecover_server.errors import (
    NameTakenError,
    NoCurrentRoundError,
    PluginNotLoadedError,
    RoundNotFoundError,
    SeriesMismatchError,
)
from ldprecover_server.storage.base import Room
from ldprecover_server.storage.database import Database, upsert
from ldprecover_server.storage.schema import rejections, rounds, tallies
from ldprecover_server.storage.tally_encoding import read_tally

CURRENT = "current"

_LIVE = rounds.c.state != "gone"  # a round that is deleted has rows for a while: see `deletion`

_BRIEF = [
    column for column in rounds.c if column.name not in ("items", "canaries", "recurring_seeds")
]


@dataclass(frozen=True)
class StoredRound:
    """A round as stored, without its labels; `seq` orders rounds by their opening."""

    seq: int
    id: str
    name: str
    state: str
    opened_at: str
    closed_at: str | None
    access: str
    read_access: str
    retention: int | None
    series: str | None
    n: int
    quarantined: Quarantined | None
    """Reports that were set aside; None for a round that sets none aside."""


@dataclass(frozen=True)
class Unread:
    """What can be said of a round whose protocol is not loaded."""

    protocol: str
    epsilon: float
    domain_size: int
    canaries: tuple[int, ...]
    quarantine: bool
    digest: str


class Rounds(Room):
    """The rounds of a database, their tallies and their refusals."""

    def open_round(
        self,
        id: str,
        name: str,
        parameters: RoundParameters,
        *,
        access: str = "open",
        read_access: str = "public",
        retention: int | None = None,
        series: str | None = None,
    ) -> StoredRound:
        """Open a round. `retention` is in hours, None for ever.

        Raises NameTakenError, and SeriesMismatchError for a series whose rounds have other items.
        """
        items = msgspec.json.encode(parameters.items)
        row: dict[str, Any] = {
            "id": id,
            "name": name,
            "protocol": parameters.protocol,
            "epsilon": parameters.epsilon,
            "parameter": parameters.parameter,
            "given_seeds": parameters.given_seeds,
            "items": items,
            "canaries": msgspec.json.encode(parameters.canaries) if parameters.canaries else None,
            "quarantine": parameters.quarantine,
            "filtered": not (parameters.quarantine and judges_seeds(parameters.oracle)),
            "access": access,
            "read_access": read_access,
            "retention": retention,
            "series": series,
            "state": "open",
            "opened_at": self._now(),
        }
        others = sa.select(rounds.c["items"]).where(rounds.c.series == series).limit(1)
        with self.database.write() as connection:
            if series is not None and connection.scalar(others) not in (None, items):
                raise SeriesMismatchError(f"the rounds of the series {series!r} have other items")
            statement = upsert(self.database.dialect)(rounds).on_conflict_do_nothing(
                index_elements=["name"]
            )
            if connection.scalar(statement.returning(rounds.c.seq), row) is None:
                raise NameTakenError(f"a round named {name!r} exists")
            return find(connection, id)

    def round(self, identifier: str) -> StoredRound:
        """Return the round with this id or name, or the `current` one. Raises
        RoundNotFoundError.
        """
        with self.database.read() as connection:
            return find(connection, identifier)

    def rounds(self, limit: int, before: str | None = None) -> list[StoredRound]:
        """Return rounds, the one opened last first; `before` is the id after which the page
        starts.
        """
        with self.database.read() as connection:
            query = _query().order_by(rounds.c.seq.desc()).limit(limit)
            if before is not None:
                query = query.where(rounds.c.seq < find(connection, before).seq)
            return [_stored(row) for row in connection.execute(query)]

    def earlier(self, seq: int) -> list[StoredRound]:
        """Return the rounds of a round's series that were opened before it, the last one first."""
        this = sa.select(rounds.c.series).where(rounds.c.seq == seq).scalar_subquery()
        before = sa.and_(rounds.c.series == this, rounds.c.seq < seq)
        with self.database.read() as connection:
            return [
                _stored(row)
                for row in connection.execute(_query().where(before).order_by(rounds.c.seq.desc()))
            ]

    def parameters(self, seq: int) -> RoundParameters:
        """Return the immutable parameters of a round. Raises RoundNotFoundError and
        PluginNotLoadedError.
        """
        return parameters_of(self._row(seq))

    def unread(self, seq: int) -> Unread:
        """Return what can be said of a round whose protocol is not loaded. Raises
        RoundNotFoundError.
        """
        row = self._row(seq)
        items, canaries = _labels(row), _canaries(row)
        digest = digest_of(
            row.protocol,
            row.epsilon,
            items,
            row.parameter,
            canaries,
            row.quarantine,
            given_seeds=row.given_seeds,
        )
        return Unread(row.protocol, row.epsilon, len(items), canaries, row.quarantine, digest)

    def _row(self, seq: int) -> Any:
        with self.database.read() as connection:
            row = connection.execute(
                sa.select(rounds).where(rounds.c.seq == seq, _LIVE)
            ).one_or_none()
        if row is None:
            raise RoundNotFoundError("the round was deleted")
        return row

    def close_round(self, identifier: str) -> StoredRound:
        """Close a round: no commit after this one adds a report to it."""
        with self.database.write() as connection:
            found = find(connection, identifier)
            if found.state == "open":
                values = {"state": "closed", "closed_at": self._now()}
                end_round(self.database, connection, found.seq, rounds.c.state == "open", values)
            return find(connection, found.id)

    def tally(self, seq: int, size: int) -> Tally:
        """Return the sum of every process's tally of a round, summaries of this size. Raises
        RoundNotFoundError.
        """
        with self.database.read() as connection:
            return tally_of(connection, seq, size)

    def counted(self, seq: int, size: int) -> tuple[Tally, Quarantined | None]:
        """Return a round's tally, and how many reports are set aside in the same moment. Raises
        RoundNotFoundError.
        """
        with self.database.read() as connection:
            tally = tally_of(connection, seq, size)
            return tally, _aside(connection.execute(_query().where(rounds.c.seq == seq)).one())

    def add_rejections(self, counts: Mapping[tuple[int, str], int]) -> None:
        """Add refusals by round (its place in the order of opening) and reason; of rounds that are
        gone, none.
        """
        added = upsert(self.database.dialect)(rejections)
        with self.database.write() as connection:
            for (seq, reason), n in sorted(counts.items()):
                row = sa.select(
                    rounds.c.seq,
                    sa.literal(self.database.process),
                    sa.literal(reason),
                    sa.literal(n, sa.BigInteger),
                )
                # Held until this has ended, so that the round cannot go between the look and the
                # row.
                there = row.where(rounds.c.seq == seq, _LIVE).with_for_update(
                    read=True, key_share=True
                )
                connection.execute(
                    added.from_select(
                        ["round", "process", "reason", "n"], there
                    ).on_conflict_do_update(
                        index_elements=["round", "process", "reason"],
                        set_={"n": rejections.c.n + added.excluded.n},
                    )
                )

    def refused(self, seq: int) -> dict[str, int]:
        """Return how many submissions of a round were refused, by reason, as far as that has been
        written.
        """
        total = sa.func.sum(rejections.c.n).label("total")
        query = (
            sa.select(rejections.c.reason, total)
            .where(rejections.c.round == seq)
            .group_by(rejections.c.reason)
        )
        with self.database.read() as connection:
            return {
                row.reason: int(row.total)
                for row in connection.execute(query.order_by(rejections.c.reason))
            }


def end_round(
    database: Database,
    connection: sa.Connection,
    seq: int,
    of: sa.ColumnElement[bool],
    values: Mapping[str, Any],
) -> bool:
    """Write what ends a round, of those `of` which this may be; return whether it was one of them.

    Once the transaction has committed none adds to the round. The usual commit does not lock it: a
    lock of several processes on one row is written down for each combination of them. It writes a
    tally only where its own token stands, and here the tokens go: who comes to its tally later
    undoes what it did. A tally that is not there yet is written with a lock on the round, for which
    this waits: so none is missed. Commits under way are waited for, and begin no more meanwhile.
    """
    database.hold_back(connection, seq)
    written = (
        connection.execute(sa.update(rounds).where(rounds.c.seq == seq, of).values(values)).rowcount
        == 1
    )
    connection.execute(sa.update(tallies).where(tallies.c.round == seq).values(token=None))
    return written


def parameters_of(row: Any) -> RoundParameters:
    """Return the parameters in a round's row. Raises PluginNotLoadedError."""
    if row.protocol not in PROTOCOLS:
        raise PluginNotLoadedError(
            f"this server has not loaded the plugin {row.protocol!r}, the protocol of the round"
        )
    return RoundParameters(
        row.protocol,
        row.epsilon,
        _labels(row),
        row.parameter,
        given_seeds=row.given_seeds,
        canaries=_canaries(row),
        quarantine=row.quarantine,
    )


def _labels(row: Any) -> tuple[str, ...]:
    return tuple(msgspec.json.decode(row.items, type=list[str]))


def _canaries(row: Any) -> tuple[int, ...]:
    return () if row.canaries is None else tuple(msgspec.json.decode(row.canaries, type=list[int]))


def _aside(row: Any) -> Quarantined | None:
    if not row.quarantine:
        return None
    return Quarantined(int(row.aside), int(row.seeds_quarantined) if row.filtered else None)


def tally_of(connection: sa.Connection, seq: int, size: int) -> Tally:
    """Return the sum of every process's tally of a round, summaries of this size. Raises
    RoundNotFoundError.
    """
    # In the same view as its tallies: a round that was deleted since it was found has none.
    if connection.scalar(sa.select(rounds.c.seq).where(rounds.c.seq == seq, _LIVE)) is None:
        raise RoundNotFoundError("the round was deleted")
    rows = connection.execute(
        sa.select(tallies.c.n, tallies.c.counts).where(tallies.c.round == seq)
    ).all()
    try:
        return sum((read_tally(row.counts, row.n) for row in rows), Tally.empty(size))
    except (ParameterError, ValueError) as error:  # no fault of the caller's parameters
        raise RuntimeError(
            "the stored counts do not fit the round: the database is damaged"
        ) from error


def _query() -> sa.Select[Any]:
    mine = tallies.c.round == rounds.c.seq
    total, aside = (
        sa.select(sa.func.coalesce(sa.func.sum(column), 0)).where(mine).scalar_subquery()
        for column in (tallies.c.n, tallies.c.quarantined)
    )
    return sa.select(*_BRIEF, total.label("total"), aside.label("aside")).where(_LIVE)


def find(connection: sa.Connection, identifier: str) -> StoredRound:
    """Return the round with this id or name, or the current one. Raises RoundNotFoundError,
    NoCurrentRoundError.
    """
    if identifier == CURRENT:
        row = connection.execute(_query().order_by(rounds.c.seq.desc()).limit(1)).one_or_none()
        if row is None:
            raise NoCurrentRoundError("no round has been opened")
        return _stored(row)
    match = sa.or_(rounds.c.id == identifier, rounds.c.name == identifier)
    # Postgres takes no text with a NUL in it, and no round has one.
    row = None if "\0" in identifier else connection.execute(_query().where(match)).one_or_none()
    if row is None:
        raise RoundNotFoundError(f"no round has the id or name {identifier[:80]!r}")
    return _stored(row)


def _stored(row: Any) -> StoredRound:
    return StoredRound(
        row.seq,
        row.id,
        row.name,
        row.state,
        row.opened_at,
        row.closed_at,
        row.access,
        row.read_access,
        row.retention,
        row.series,
        int(row.total),
        _aside(row),
    )
