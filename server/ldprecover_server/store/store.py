"""Rounds, reports and keys in the database: the one room that knows SQL."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_bytes
from typing import Any

import msgspec
import sqlalchemy as sa

from ldprecover.errors import ParameterError
from ldprecover.parameters import RoundParameters
from ldprecover.tally import Tally
from ldprecover_server.errors import (
    ConfigurationError,
    KeyNotFoundError,
    NameTakenError,
    NoCurrentRoundError,
    RoundNotFoundError,
    SeriesMismatchError,
    ServiceError,
)
from ldprecover_server.keys import AccessKey, HashedKey
from ldprecover_server.store import migrations
from ldprecover_server.store.commit import Batch, Commit, Outcome, upsert
from ldprecover_server.store.jobs import StoredJobs
from ldprecover_server.store.opening import open_database
from ldprecover_server.store.reports import StoredReports
from ldprecover_server.store.schema import (
    access_keys,
    keys,
    refusals,
    rounds,
    secrets,
    segments,
    tallies,
)

__all__ = ["CURRENT", "Store", "StoredRound"]

CURRENT = "current"

_TICKETS = "tickets"

_PROBE_BYTES = 1 << 18

Clock = Callable[[], datetime]

_BRIEF = [column for column in rounds.c if column.name != "items"]


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


class Store:
    """Everything the service keeps. Methods are safe to call from several threads."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        answer_seconds: float | None = None,
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self.database = open_database(url, pool_size=pool_size, answer_seconds=answer_seconds)
        self.clock = clock
        self._upsert = upsert(self.database.dialect)
        self._commit = Commit(self.database)
        self.jobs = StoredJobs(self.database, clock)

    def prepare(self) -> None:
        """See that the schema is this version's; a SQLite file is migrated on the way.

        Raises ConfigurationError for a database that cannot serve, or that `migrate` has to move on first.
        """
        try:
            if self.database.dialect == "sqlite":
                migrations.migrate(self.database)
            else:
                migrations.check(self.database)
        except (ServiceError, sa.exc.DatabaseError) as error:
            raise ConfigurationError(f"{self.database.name} cannot serve as database: {error}") from error

    def migrate(self) -> list[str]:
        """Bring the schema to this version's; return the revisions it went through. Raises ConfigurationError."""
        try:
            return migrations.migrate(self.database)
        except (ServiceError, sa.exc.DatabaseError) as error:
            raise ConfigurationError(f"{self.database.name} cannot be migrated: {error}") from error

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def check_writable(self) -> None:
        """Raise StoreUnavailableError or StorageFullError unless a transaction can write."""
        with self.database.write() as connection:
            connection.execute(sa.update(rounds).where(rounds.c.seq == 0).values(seq=0))

    def check_room(self) -> None:
        """Raise StorageFullError unless the database takes more bytes: it is given some, and they are deleted."""
        probe = {"name": f"probe-{self.database.process}", "value": os.urandom(_PROBE_BYTES)}
        with self.database.write() as connection:
            connection.execute(sa.insert(secrets), probe)
            connection.execute(sa.delete(secrets).where(secrets.c.name == probe["name"]))

    def watch_pool(self, taken: Callable[[], None], given_back: Callable[[], None]) -> None:
        """Call `taken` for each connection to the database that is taken from the pool, `given_back` at its return."""
        sa.event.listen(self.database.engine, "checkout", lambda *connection: taken())
        sa.event.listen(self.database.engine, "checkin", lambda *connection: given_back())

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
            "hash_range": parameters.hash_range,
            "items": items,
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
            statement = self._upsert(rounds).on_conflict_do_nothing(index_elements=["name"])
            if connection.scalar(statement.returning(rounds.c.seq), row) is None:
                raise NameTakenError(f"a round named {name!r} exists")
            return _find(connection, id)

    def round(self, identifier: str) -> StoredRound:
        """Return the round with this id or name, or the `current` one. Raises RoundNotFoundError."""
        with self.database.read() as connection:
            return _find(connection, identifier)

    def rounds(self, limit: int, before: str | None = None) -> list[StoredRound]:
        """Return rounds, the one opened last first; `before` is the id after which the page starts."""
        with self.database.read() as connection:
            query = _query().order_by(rounds.c.seq.desc()).limit(limit)
            if before is not None:
                query = query.where(rounds.c.seq < _find(connection, before).seq)
            return [_stored(row) for row in connection.execute(query)]

    def parameters(self, seq: int) -> RoundParameters:
        """Return the immutable parameters of a round. Raises RoundNotFoundError."""
        with self.database.read() as connection:
            row = connection.execute(sa.select(rounds).where(rounds.c.seq == seq)).one_or_none()
        if row is None:
            raise RoundNotFoundError("the round was deleted")
        items = tuple(msgspec.json.decode(row.items, type=list[str]))
        return RoundParameters(row.protocol, row.epsilon, items, row.hash_range)

    def close_round(self, identifier: str) -> StoredRound:
        """Close a round: no commit after this one adds a report to it."""
        with self.database.write() as connection:
            found = _find(connection, identifier)
            if found.state == "open":
                values = {"state": "closed", "closed_at": self._now()}
                connection.execute(
                    sa.update(rounds).where(rounds.c.seq == found.seq, rounds.c.state == "open").values(values)
                )
            return _find(connection, found.id)

    def delete_round(self, identifier: str) -> StoredRound:
        """Delete a round with everything it holds, and return what it was."""
        with self.database.write() as connection:
            found = _find(connection, identifier)
            # Held back until this has ended: whoever would add a row to the round.
            connection.execute(sa.select(rounds.c.seq).where(rounds.c.seq == found.seq).with_for_update())
            for table in (segments, tallies, keys, refusals):
                connection.execute(sa.delete(table).where(table.c.round == found.seq))
            connection.execute(sa.delete(rounds).where(rounds.c.seq == found.seq))
        self.database.forget()
        return found

    def tally(self, seq: int, d: int) -> Tally:
        """Return the sum of every process's tally of a round over d items. Raises RoundNotFoundError."""
        with self.database.read() as connection:
            return _tally(connection, seq, d)

    def tally_and_reports(self, seq: int, d: int) -> tuple[Tally, StoredReports]:
        """Return a round's tally, and its reports of the same moment, as far as they are kept."""
        with self.database.read() as connection:
            tally = _tally(connection, seq, d)
            query = sa.select(segments.c.id, segments.c.n).where(segments.c.round == seq).order_by(segments.c.id)
            rows = connection.execute(query).all()
        return tally, StoredReports(self.database, [row.id for row in rows], sum(row.n for row in rows))

    def earlier(self, seq: int) -> list[StoredRound]:
        """Return the rounds of a round's series that were opened before it, the last one first."""
        this = sa.select(rounds.c.series).where(rounds.c.seq == seq).scalar_subquery()
        before = sa.and_(rounds.c.series == this, rounds.c.seq < seq)
        with self.database.read() as connection:
            return [_stored(row) for row in connection.execute(_query().where(before).order_by(rounds.c.seq.desc()))]

    def commit(self, batches: Sequence[Batch]) -> list[list[Outcome]]:
        """Store submissions, durably, each exactly once; return the outcomes in the order given."""
        return self._commit(batches, self.hour())

    def hour(self) -> int:
        """Return the hour it is, since the epoch."""
        return int(self.clock().timestamp()) // 3600

    def purge(self) -> int:
        """Delete the segments that their round's retention has let go; return how many."""
        # A segment's reports came during its hour: none is deleted before its time, none kept an hour longer.
        over = segments.c.hour + rounds.c.retention < self.hour()
        let_go = sa.select(segments.c.id).join(rounds, segments.c.round == rounds.c.seq)
        with self.database.write() as connection:
            deleted = connection.execute(sa.delete(segments).where(segments.c.id.in_(let_go.where(over)))).rowcount
        if deleted:
            self.database.forget()
        return deleted

    def add_refusals(self, counts: Mapping[tuple[int, str], int]) -> None:
        """Add refusals by round (its place in the order of opening) and reason; of rounds that are gone, none."""
        added = self._upsert(refusals)
        with self.database.write() as connection:
            for (seq, reason), n in sorted(counts.items()):
                row = sa.select(
                    rounds.c.seq, sa.literal(self.database.process), sa.literal(reason), sa.literal(n, sa.BigInteger)
                )
                there = row.where(rounds.c.seq == seq)
                connection.execute(
                    added.from_select(["round", "process", "reason", "n"], there).on_conflict_do_update(
                        index_elements=["round", "process", "reason"], set_={"n": refusals.c.n + added.excluded.n}
                    )
                )

    def refused(self, seq: int) -> dict[str, int]:
        """Return how many submissions of a round were refused, by reason, as far as that has been written."""
        total = sa.func.sum(refusals.c.n).label("total")
        query = sa.select(refusals.c.reason, total).where(refusals.c.round == seq).group_by(refusals.c.reason)
        with self.database.read() as connection:
            return {row.reason: int(row.total) for row in connection.execute(query.order_by(refusals.c.reason))}

    def live_keys(self) -> list[HashedKey]:
        """Return the keys that are not revoked."""
        query = sa.select(access_keys.c.name, access_keys.c.scope, access_keys.c.hash)
        with self.database.read() as connection:
            rows = connection.execute(query.where(access_keys.c.revoked_at.is_(None)))
            return [HashedKey(row.name, row.scope, row.hash) for row in rows]

    def access_keys(self) -> list[AccessKey]:
        """Return all keys by name, the revoked ones too."""
        with self.database.read() as connection:
            rows = connection.execute(sa.select(access_keys).order_by(access_keys.c.name))
            return [AccessKey(row.name, row.scope, row.created_at, row.revoked_at) for row in rows]

    def revoke_key(self, name: str) -> None:
        """Revoke a key, for good. Raises KeyNotFoundError when it is unknown or revoked."""
        live = sa.and_(access_keys.c.name == name, access_keys.c.revoked_at.is_(None))
        with self.database.write() as connection:
            if not connection.execute(sa.update(access_keys).where(live).values(revoked_at=self._now())).rowcount:
                raise KeyNotFoundError(f"no key that is not revoked is named {name[:80]!r}")

    def add_key(self, name: str, scope: str, hash: bytes) -> None:
        """Keep the hash of a key. Raises NameTakenError."""
        row = {"name": name, "scope": scope, "hash": hash, "created_at": self._now()}
        with self.database.write() as connection:
            statement = self._upsert(access_keys).on_conflict_do_nothing(index_elements=["name"])
            if connection.scalar(statement.returning(access_keys.c.name), row) is None:
                raise NameTakenError(f"a key named {name!r} exists")

    def ticket_secret(self) -> bytes:
        """Return the secret under which tickets are made; the first call makes it."""
        query = sa.select(secrets.c.value).where(secrets.c.name == _TICKETS)
        with self.database.read() as connection:
            found: bytes | None = connection.scalar(query)
        if found is None:
            row = {"name": _TICKETS, "value": token_bytes(32)}
            with self.database.write() as connection:
                connection.execute(self._upsert(secrets).on_conflict_do_nothing(index_elements=["name"]), row)
                found = connection.scalars(query).one()
        return found

    def _now(self) -> str:
        return self.clock().isoformat(timespec="seconds")


def _tally(connection: sa.Connection, seq: int, d: int) -> Tally:
    # In the same view as its tallies: a round that was deleted since it was found has none.
    if connection.scalar(sa.select(rounds.c.seq).where(rounds.c.seq == seq)) is None:
        raise RoundNotFoundError("the round was deleted")
    rows = connection.execute(sa.select(tallies.c.n, tallies.c.counts).where(tallies.c.round == seq)).all()
    try:
        return sum((Tally.from_bytes(row.counts, row.n) for row in rows), Tally.empty(d))
    except ParameterError as error:  # no fault of the caller's parameters
        raise RuntimeError("the stored counts do not fit the round: the database is damaged") from error


def _query() -> sa.Select[Any]:
    total = sa.select(sa.func.coalesce(sa.func.sum(tallies.c.n), 0)).where(tallies.c.round == rounds.c.seq)
    return sa.select(*_BRIEF, total.scalar_subquery().label("total"))


def _find(connection: sa.Connection, identifier: str) -> StoredRound:
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
    )
