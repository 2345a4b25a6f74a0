"""A database: durable writes, consistent reads, and errors of the service."""

import contextlib
import io
import itertools
import logging
import math
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import PoolProxiedConnection

from ldprecover_server.errors import StorageFullError, StoreUnavailableError
from ldprecover_server.storage.one_statement import RoundRows

_log = logging.getLogger(__name__)

_WRITE = "ldprecover_write"
_SLICE_BYTES = 1 << 20
_REPEAT_SECONDS = 1.0  # the same error is logged at most once in this time


class Database(ABC):
    """An engine with durable `write()` transactions and consistent `read()` transactions."""

    engine: sa.Engine
    _read_options: ClassVar[Mapping[str, Any]] = {}

    process = 0
    """Number of this process among those that serve the database; it selects the tally rows."""

    generation = 0
    """Incremented per new connection: after a failover, earlier reads may be stale."""

    def __init__(self) -> None:
        self.token = secrets.token_bytes(16)
        """Marks the tally rows that this process wrote last."""
        self._last_cause = ("", -math.inf)
        self._logs_errors = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The database's name for messages to operators, without a password."""

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.engine.dialect.name

    def insert(self, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
        """Return the dialect's INSERT, which supports ON CONFLICT."""
        return postgresql.insert(table) if self.dialect == "postgresql" else sqlite.insert(table)

    def exists(self) -> bool:
        """Return whether there is a database, which the first connection would create."""
        return True

    @abstractmethod
    def claim(self) -> None:
        """Take a process number on the database, if it has none. Raises ConfigurationError."""

    def keep_claim(self) -> None:  # noqa: B027  a SQLite claim cannot be lost
        """Take a process number again if the connection that held it is lost.

        Raises StoreUnavailableError.
        """

    @abstractmethod
    def is_full(self, error: sa.exc.DBAPIError) -> bool:
        """Return whether an error says that the disk is full."""

    def fault_of_file(self, error: sa.exc.DBAPIError) -> str | None:
        """Return what an error says is wrong with the file of the database; None of another one."""
        return None

    @abstractmethod
    def find_submission_keys(
        self, connection: sa.Connection, keys: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        """Return those of any number of submission keys that are stored, with their digests.

        Keys and digests are encoded as in `encoding`.
        """

    @abstractmethod
    def insert_submission_keys(
        self, connection: sa.Connection, digests: Mapping[bytes, bytes]
    ) -> set[bytes]:
        """Insert new submission keys with their digests, in this order; return the new ones."""

    @abstractmethod
    def commit_in_one_statement(
        self, rows: Sequence[RoundRows], process: int, hour: int, generation: int
    ) -> bool:
        """Commit rows in one statement; return False, with nothing stored, on any conflict.

        Their rounds are in ascending order. `process` and `generation` of the connections are those
        that wrote the tallies last.
        """

    def free_bytes(self) -> int | None:
        """Return the free bytes on the database's disk, or None if unknown."""
        return None

    @abstractmethod
    def write_nothing(self, connection: sa.Connection) -> None:
        """Have the transaction write to the log of the database, and change no table."""

    @abstractmethod
    def read_slices(
        self, connection: sa.Connection, id: int, size: int, step: int
    ) -> Iterator[bytes]:
        """Yield the `size` bytes of a segment, `step` bytes at a time."""

    # SQLite serialises all writes.
    def block_commits(self, connection: sa.Connection, seq: int) -> None:  # noqa: B027
        """Wait for one-statement commits to a round, and block new ones in this transaction."""

    # SQLite serialises all writes.
    def lock_maintenance(self, connection: sa.Connection) -> None:  # noqa: B027
        """Keep maintenance of other processes out until this transaction ends.

        So maintenance cannot deadlock or repeat work. Commits do not wait for this lock.
        """

    def erase_deleted(self) -> bool:
        """Remove deleted data from the write-ahead log; return whether that succeeded."""
        return True

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open a read-only transaction with one consistent view. Raises StoreUnavailableError."""
        with self._transaction(**self._read_options) as connection:
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Open a transaction: durable when the block ends, rolled back when it raises.

        Raises StorageFullError when the disk is full. Raises StoreUnavailableError when the
        database does not answer or aborts the transaction in favour of another; the transaction
        may then be committed or not.
        """
        with self._transaction(**{_WRITE: True}) as connection:
            yield connection

    @contextlib.contextmanager
    def _transaction(self, **options: Any) -> Iterator[sa.Connection]:
        with (
            self.translated_errors(),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    def watch_pool(self, on_checkout: Callable[[], None], on_checkin: Callable[[], None]) -> None:
        """Call a function for each connection taken from the pool or returned to it."""
        sa.event.listen(self.engine, "checkout", lambda *connection: on_checkout())
        sa.event.listen(self.engine, "checkin", lambda *connection: on_checkin())

    def close(self) -> None:
        """Close every connection and release the process number."""
        self.engine.dispose()

    @contextlib.contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Raise errors of the database library as errors of the service.

        An error in the server's own statements is not translated.
        """
        try:
            yield
        except sa.exc.TimeoutError as error:
            raise StoreUnavailableError("every connection to the database is taken") from error
        except sa.exc.DBAPIError as error:
            if self.is_full(error):
                raise StorageFullError("the disk of the database is full") from error
            if fault := self.fault_of_file(error):
                self._log_cause(str(error.orig))
                raise StoreUnavailableError(f"the file of the database {fault}") from error
            if (
                isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
                or error.connection_invalidated
            ):
                self._log_cause(str(error.orig))
                raise StoreUnavailableError("the database does not answer") from error
            raise

    @contextlib.contextmanager
    def without_error_log(self) -> Iterator[None]:
        """Do not log errors of the database library; the caller reports them to the operator."""
        self._logs_errors = False
        try:
            yield
        finally:
            self._logs_errors = True

    def _log_cause(self, cause: str) -> None:
        """Log an error of the database library, which may name hosts, users and paths.

        A repeated cause is logged once a second, so that anonymous callers cannot fill the log.
        """
        if not self._logs_errors:
            return
        last_cause, logged_at = self._last_cause
        if cause != last_cause or time.monotonic() > logged_at + _REPEAT_SECONDS:
            self._last_cause = (cause, time.monotonic())
            _log.warning("the database does not answer: %s", cause)


def is_write(connection: sa.Connection) -> bool:
    """Return whether `Database.write` opened this connection."""
    return bool(connection.get_execution_options().get(_WRITE, False))


def read_large_value(
    connection: sa.Connection, column: sa.ColumnElement[Any], *conditions: sa.ColumnElement[bool]
) -> bytes | None:
    """Return the bytes in a column of the one row with these conditions; None without it.

    A connection to Postgres keeps a buffer of twice the largest value that it has read, and reading
    it whole takes three times as much again.
    """
    value = io.BytesIO()
    for start in itertools.count(1, _SLICE_BYTES):
        part = sa.func.substr(column, start, _SLICE_BYTES, type_=sa.LargeBinary)
        piece: bytes | None = connection.scalar(sa.select(part).where(*conditions))
        if piece is None:
            return None
        value.write(piece)
        if len(piece) < _SLICE_BYTES:
            break
    return value.getvalue()


class PinnedConnection:
    """A connection of an engine's pool that is kept between commits. For use by one thread.

    A small commit through the pool and SQLAlchemy takes 0.15 to 0.4 ms of processor time more than
    through the driver alone, with the interpreter's lock held. `prepare` is called with each new
    connection.
    """

    def __init__(
        self, engine: sa.Engine, prepare: Callable[[Any], None] = lambda connection: None
    ) -> None:
        self._engine = engine
        self._prepare = prepare
        self._connection: PoolProxiedConnection | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    def get(self) -> Any:
        """Return the driver's connection; the first call opens it. Raises DBAPIError."""
        if self._connection is None:
            try:
                self._connection = self._engine.raw_connection()
                self._prepare(self._connection.driver_connection)
            except self._engine.dialect.loaded_dbapi.Error as error:
                raise self.translate(error, is_lost=True) from error
        return self._connection.driver_connection

    def release(self) -> None:
        """Return the connection to the pool, which knows whether it is still usable."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def drop(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()

    def translate(self, error: Exception, *, is_lost: bool) -> BaseException:
        """Return a driver's error as SQLAlchemy's; drop the connection if it is lost."""
        if is_lost:
            self.drop()
        driver = self._engine.dialect.loaded_dbapi.Error
        return sa.exc.DBAPIError.instance(
            None, None, error, driver, hide_parameters=True, connection_invalidated=is_lost
        )


Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the time now."""
    return datetime.now(UTC)


@dataclass(eq=False)
class Repository:
    """A part of the storage over one database. Methods are safe to call from several threads."""

    database: Database
    clock: Clock

    def hour(self) -> int:
        """Return the current hour since the epoch."""
        return int(self.clock().timestamp()) // 3600

    def _now(self) -> str:
        return self.clock().isoformat(timespec="seconds")
