"""A Postgres database: any number of server processes, each with tally rows of its own."""

import contextlib
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from ldprecover_server.errors import ConfigurationError, StoreUnavailableError
from ldprecover_server.storage.backends.postgres_arrays import Bigints, Uuids
from ldprecover_server.storage.backends.postgres_commit import UsualCommit
from ldprecover_server.storage.backends.postgres_timeouts import PING_SECONDS, Session, bound
from ldprecover_server.storage.commit.one_statement import ROUND_LOCK, AtOnce
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.key_encoding import DIGEST_BYTES

_log = logging.getLogger(__name__)

_CLASS = 0x4C44505  # our advisory locks among those of the whole database
_MAX_PROCESSES = 1024
_TURN = -1  # among our locks, where the others are numbers of processes
_IDLE_SECONDS = 1.0  # a round trip on every use would be a sixth of a commit
_USED = "ldprecover_used"
_OPTIONS = (
    "-c synchronous_commit=on -c default_transaction_isolation=read\\ committed "
    "-c statement_timeout=60s -c lock_timeout=30s -c timezone=UTC"
)

# The session is of no more use: it ends, or its server takes no writes, as after a switchover
# (25006, and 0A000 for a transaction that asks for writing on a standby).
_LOST = frozenset({"25006", "0A000", "57P01", "57P02", "57P03"})

_SLICE = "SELECT substr(data, %(start)s, %(step)s) FROM segments WHERE id = %(id)s"

_KNOWN_KEYS = "SELECT key, digest FROM keys WHERE key = ANY(%(keys)b::uuid[])"

# Two binary arrays, not two parameters a key: for 40 keys 0.24 ms, against 0.57 by VALUES and
# 0.94 by COPY.
_INSERT_KEYS = (
    "INSERT INTO keys (key, digest) SELECT k, d FROM unnest(%(keys)b::uuid[], "
    "%(digests)b::bigint[]) "
    "AS wanted (k, d) ON CONFLICT DO NOTHING RETURNING key"
)


class Postgres(Database):
    """Reads see one moment; writes are READ COMMITTED, where unique indexes and row locks decide.

    Every commit is on disk when it returns: synchronous_commit is on.

    A process holds a session's advisory lock on its number, so that two do not contend for the same
    tally rows. Only speed hangs on that: a row is always locked before it is added to, or found as
    this process left it. The lock goes with its connection, and `keep_claim` takes it again.
    """

    rows_tell_order = True
    _read_options: ClassVar[Mapping[str, Any]] = {
        "isolation_level": "REPEATABLE READ",
        "postgresql_readonly": True,
    }

    def __init__(self, url: sa.URL, pool_size: int, answer_seconds: float | None = None) -> None:
        super().__init__()
        self.engine = sa.create_engine(
            url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            hide_parameters=True,  # an error that is logged tells no report and no key
            connect_args={
                "connect_timeout": int(PING_SECONDS),
                "options": _OPTIONS,
                "application_name": "ldprecover",
            },
        )
        bound(self.engine, answer_seconds)
        sa.event.listen(self.engine, "checkin", self._on_checkin)
        sa.event.listen(self.engine, "checkout", self._on_checkout)
        sa.event.listen(self.engine, "connect", self._on_connect)
        sa.event.listen(self.engine, "handle_error", _on_error)
        self.usual = UsualCommit(self.engine, lambda: self.generation, _IDLE_SECONDS, _LOST)
        self._claim: sa.Connection | None = None
        self._claimed = False

    @property
    def name(self) -> str:
        return self.engine.url.render_as_string(hide_password=True)

    def claim(self) -> None:
        numbers = sorted(range(_MAX_PROCESSES), key=lambda number: number != self.process)
        with self.translated_errors(), contextlib.ExitStack() as undo:
            connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            undo.callback(connection.close)
            for number in numbers:
                if connection.scalar(sa.select(sa.func.pg_try_advisory_lock(_CLASS, number))):
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
            self._give_up_claim()
        self.generation += 1
        self.claim()
        _log.warning(
            "the connection that held this process's place was lost; its number is now %d",
            self.process,
        )

    def _give_up_claim(self) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            with contextlib.suppress(sa.exc.DBAPIError, StoreUnavailableError):
                claim.invalidate()  # the lock goes with the session, which another must not inherit
            with contextlib.suppress(sa.exc.DBAPIError, StoreUnavailableError):
                claim.close()

    def is_full(self, error: sa.exc.DBAPIError) -> bool:
        return getattr(error.orig, "sqlstate", None) == "53100"

    def known_submission_keys(
        self, connection: sa.Connection, wanted: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        rows = connection.exec_driver_sql(_KNOWN_KEYS, {"keys": Uuids(wanted)})
        return {
            row.key.bytes: row.digest.to_bytes(DIGEST_BYTES, "big", signed=True) for row in rows
        }

    def insert_submission_keys(
        self, connection: sa.Connection, wanted: Mapping[bytes, bytes]
    ) -> set[bytes]:
        inserted = connection.exec_driver_sql(_INSERT_KEYS, self._columns(wanted)).scalars()
        return {key.bytes for key in inserted}

    def _columns(self, keys: Mapping[bytes, bytes]) -> dict[str, object]:
        return {"keys": Uuids(keys), "digests": Bigints(keys.values())}

    def next_segment(self, connection: sa.Connection) -> int:
        return int(connection.exec_driver_sql("SELECT nextval('segments_id_seq')").scalar_one())

    def slices(self, connection: sa.Connection, id: int, size: int, step: int) -> Iterator[bytes]:
        for start in range(0, size, step):
            yield connection.exec_driver_sql(
                _SLICE, {"id": id, "start": start + 1, "step": step}
            ).scalar_one()

    def hold_back(self, connection: sa.Connection, round: int) -> None:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(ROUND_LOCK, round & 0x7FFFFFFF)))

    def take_turn(self, connection: sa.Connection) -> None:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CLASS, _TURN)))
        # Pieces are found by their index, whatever the statistics of the table say.
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")

    def store_at_once(self, wish: AtOnce) -> bool:
        with self.translated_errors():
            # After a new connection the database may have forgotten what this process wrote last.
            return self.usual.begin() == wish.generation and self.usual.store(wish)

    def close(self) -> None:
        self._claimed = False
        self._give_up_claim()
        self.usual.close()
        super().close()

    def _on_connect(self, connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        self.generation += 1

    def _on_checkin(self, connection: DBAPIConnection | None, record: ConnectionPoolEntry) -> None:
        record.info[_USED] = time.monotonic()

    def _on_checkout(
        self, connection: DBAPIConnection, record: ConnectionPoolEntry, proxy: PoolProxiedConnection
    ) -> None:
        """See that a connection that has been idle still lives: after a restart of the database it
        does not.
        """
        if time.monotonic() - record.info.get(_USED, math.inf) > _IDLE_SECONDS:
            try:
                cast(Session, connection).ping()
            except self.engine.dialect.loaded_dbapi.Error as error:
                raise sa.exc.DisconnectionError from error


def _on_error(context: sa.ExceptionContext) -> None:
    if getattr(context.original_exception, "sqlstate", None) in _LOST:
        context.is_disconnect = (
            True  # the pool gives this connection up, and all that were made before
        )
