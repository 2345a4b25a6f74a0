"""A Postgres database: for several server processes, each with its own tally rows."""

import contextlib
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import sqlalchemy as sa
from psycopg.pq import Conninfo
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from ldprecover_server.errors import ConfigurationError, StoreUnavailableError
from ldprecover_server.secrets import without_secrets
from ldprecover_server.storage.backends.postgres_arrays import Bigints, Uuids
from ldprecover_server.storage.backends.postgres_commit import PostgresCommit
from ldprecover_server.storage.backends.postgres_settings import open_sessions
from ldprecover_server.storage.backends.postgres_timeouts import LOST, PING_SECONDS, Session
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.encoding import DIGEST_BYTES
from ldprecover_server.storage.one_statement import RoundRows
from ldprecover_server.storage.schema import MAINTENANCE_NUMBER, PROCESS_CLASS, ROUND_CLASS

_log = logging.getLogger(__name__)

OPTIONS = {option.keyword.decode() for option in Conninfo.get_defaults()}
"""Options that a URL may have: those of libpq."""

_MAX_PROCESSES = 1024
_IDLE_SECONDS = 1.0  # a check on every use would add a sixth to a commit
_USED_AT = "ldprecover_used_at"

# They are the database's own, and its storage may be durable without them.
_WEAK = (
    "SELECT name || ' = ' || setting FROM pg_settings WHERE (name, setting) IN "
    "(('fsync', 'off'), ('full_page_writes', 'off'), ('track_commit_timestamp', 'on'))"
)

_SLICE = "SELECT substr(data, %(start)s, %(step)s) FROM segments WHERE id = %(id)s"

_FIND_KEYS = "SELECT key, digest FROM keys WHERE key = ANY(%(keys)b::uuid[])"

# Two binary arrays take 0.24 ms for 40 keys, against 0.57 ms with VALUES and 0.94 ms with COPY.
_INSERT_KEYS = (
    "INSERT INTO keys (key, digest) SELECT k, d FROM unnest(%(keys)b::uuid[], "
    "%(digests)b::bigint[]) "
    "AS new_keys (k, d) ON CONFLICT DO NOTHING RETURNING key"
)


class Postgres(Database):
    """Reads are REPEATABLE READ; writes are READ COMMITTED with unique indexes and row locks.

    Every commit is on disk when it returns: synchronous_commit is on.

    A process holds a session's advisory lock on its number, so that no two contend for the same
    tally rows. Correctness does not depend on it: a row is locked before it is read, or updated
    only if it is as this process left it. The lock ends with its connection, and `keep_claim` takes
    one again.
    """

    _read_options: ClassVar[Mapping[str, Any]] = {
        "isolation_level": "REPEATABLE READ",
        "postgresql_readonly": True,
    }

    def __init__(self, url: sa.URL, pool_size: int, statement_seconds: float | None) -> None:
        super().__init__()
        self.engine = sa.create_engine(
            url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            hide_parameters=True,  # logged errors contain no report and no key
            connect_args={
                "client_encoding": "UTF8",
                "connect_timeout": int(PING_SECONDS),
                "application_name": "ldprecover",
            },
        )
        open_sessions(self.engine, statement_seconds)
        sa.event.listen(self.engine, "checkin", self._on_checkin)
        sa.event.listen(self.engine, "checkout", self._on_checkout)
        sa.event.listen(self.engine, "connect", self._on_connect)
        sa.event.listen(self.engine, "handle_error", _on_error)
        self.one_statement = PostgresCommit(self.engine, lambda: self.generation, _IDLE_SECONDS)
        self._claim: sa.Connection | None = None
        self._claimed = False

    @property
    def name(self) -> str:
        return without_secrets(self.engine.url.render_as_string(hide_password=False))

    def claim(self) -> None:
        if self._claim is not None:
            return
        numbers = sorted(range(_MAX_PROCESSES), key=lambda number: number != self.process)
        with self.translated_errors(), contextlib.ExitStack() as undo:
            connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            undo.callback(connection.close)
            for number in numbers:
                if connection.scalar(
                    sa.select(sa.func.pg_try_advisory_lock(PROCESS_CLASS, number))
                ):
                    for weak in connection.exec_driver_sql(_WEAK).scalars():
                        _log.warning("the database has %s; see deploying.md", weak)
                    undo.pop_all()
                    self.process, self._claim, self._claimed = number, connection, True
                    return
        raise ConfigurationError(f"{_MAX_PROCESSES} processes serve {self.name} already")

    def keep_claim(self) -> None:
        if not self._claimed:
            return
        if self._claim is not None:
            with contextlib.suppress(sa.exc.DBAPIError):
                if not self._claim.scalar(sa.select(sa.func.pg_is_in_recovery())):
                    return
            self._release_claim()
        self.generation += 1
        self.claim()
        _log.warning(
            "the connection that held this process's number was lost; its number is now %d",
            self.process,
        )

    def _release_claim(self) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            with contextlib.suppress(sa.exc.DBAPIError, StoreUnavailableError), claim:
                claim.invalidate()  # ends the session and so the lock; the pool must not reuse it

    def is_full(self, error: sa.exc.DBAPIError) -> bool:
        return getattr(error.orig, "sqlstate", None) == "53100"

    def find_submission_keys(
        self, connection: sa.Connection, keys: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        rows = connection.exec_driver_sql(_FIND_KEYS, {"keys": Uuids(keys)})
        return {
            row.key.bytes: row.digest.to_bytes(DIGEST_BYTES, "big", signed=True) for row in rows
        }

    def insert_submission_keys(
        self, connection: sa.Connection, digests: Mapping[bytes, bytes]
    ) -> set[bytes]:
        columns = {"keys": Uuids(digests), "digests": Bigints(digests.values())}
        inserted = connection.exec_driver_sql(_INSERT_KEYS, columns).scalars()
        return {key.bytes for key in inserted}

    def write_nothing(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("SELECT pg_logical_emit_message(true, 'ldprecover', '')")

    def read_slices(
        self, connection: sa.Connection, id: int, size: int, step: int
    ) -> Iterator[bytes]:
        for start in range(0, size, step):
            yield connection.exec_driver_sql(
                _SLICE, {"id": id, "start": start + 1, "step": step}
            ).scalar_one()

    def block_commits(self, connection: sa.Connection, seq: int) -> None:
        _advisory_lock(connection, ROUND_CLASS, seq & 0x7FFFFFFF)

    def lock_maintenance(self, connection: sa.Connection) -> None:
        _advisory_lock(connection, PROCESS_CLASS, MAINTENANCE_NUMBER)
        # Chunks are found by index, whatever the table's statistics suggest.
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")

    def commit_in_one_statement(
        self, rows: Sequence[RoundRows], process: int, hour: int, generation: int
    ) -> bool:
        with self.translated_errors():
            # On a new connection the database may have lost this process's last commit: a failover.
            is_current = self.one_statement.begin() == generation
            return is_current and self.one_statement.commit(rows, process, self.token, hour)

    def close(self) -> None:
        self._claimed = False
        self._release_claim()
        self.one_statement.close()
        super().close()

    def _on_connect(self, connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        self.generation += 1

    def _on_checkin(self, connection: DBAPIConnection | None, record: ConnectionPoolEntry) -> None:
        record.info[_USED_AT] = time.monotonic()

    def _on_checkout(
        self, connection: DBAPIConnection, record: ConnectionPoolEntry, proxy: PoolProxiedConnection
    ) -> None:
        """Check a connection that has been idle: the database may have restarted."""
        if time.monotonic() - record.info.get(_USED_AT, math.inf) > _IDLE_SECONDS:
            try:
                cast(Session, connection).ping()
            except self.engine.dialect.loaded_dbapi.Error as error:
                raise sa.exc.DisconnectionError from error


def _on_error(context: sa.ExceptionContext) -> None:
    if getattr(context.original_exception, "sqlstate", None) in LOST:
        context.is_disconnect = True  # the pool drops this and all older connections


def _advisory_lock(connection: sa.Connection, class_: int, number: int) -> None:
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(class_, number)))
