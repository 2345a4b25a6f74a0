"""Connections to the database, and what each kind of database needs to keep the promises."""

import contextlib
import fcntl
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError

from ldprecover_server.errors import ConfigurationError, StorageFullError, StoreUnavailableError

__all__ = ["Database"]

_BUSY_MS = 10_000
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",  # a commit is on disk when it returns
    "wal_autocheckpoint=8000",  # 32 MiB: idempotency keys are random, so few of their pages come twice in less
    f"busy_timeout={_BUSY_MS}",
    "foreign_keys=ON",
)


class Database:
    """An engine whose `write()` transactions are durable once they return, and `read()` consistent.

    SQLite: WAL with synchronous=FULL, so that a commit is on disk when it returns; writes begin
    IMMEDIATE, so that what a transaction reads still holds when it writes. A lock file beside the
    database keeps a second server away.
    """

    def __init__(self, url: str) -> None:
        try:
            parsed = sa.make_url(url)
        except ArgumentError as error:
            raise ConfigurationError(f"the database URL {url!r} is none; try sqlite:///ldprecover.db") from error
        if parsed.drivername not in ("sqlite", "sqlite+pysqlite"):
            raise ConfigurationError(f"the database must be sqlite:///FILE, not {parsed.drivername}")
        if parsed.database in (None, "", ":memory:"):
            raise ConfigurationError("the database must be a file, sqlite:///FILE: memory would not survive a crash")
        self.path = Path(str(parsed.database)).absolute()
        if not self.path.parent.is_dir():
            raise ConfigurationError(f"the folder of the database does not exist: {self.path.parent}")
        # Every connection is given back with its transaction ended: the pool need not end it again.
        self.engine = sa.create_engine(parsed, pool_reset_on_return=None, connect_args={"timeout": _BUSY_MS / 1000})
        sa.event.listen(self.engine, "connect", _on_connect)
        sa.event.listen(self.engine, "begin", _on_begin)
        self._lock: TextIO | None = None

    def lock(self) -> None:
        """Claim the database for this server. Raises ConfigurationError when another has it."""
        path = self.path.with_name(self.path.name + ".lock")
        try:
            file = path.open("a")
        except OSError as error:
            raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise ConfigurationError(
                f"another server has {self.path} open; a SQLite file serves one server process at a time"
            ) from error
        self._lock = file

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A read-only view of one moment. Raises StoreUnavailableError."""
        with _refusals(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction: on disk when the block ends, undone when it raises.

        Raises StorageFullError when nothing more fits on the disk, StoreUnavailableError when the
        database does not answer in time; after the latter, whether the transaction took hold is
        not known.
        """
        options = {_IMMEDIATE: True}
        with _refusals(), self.engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Close every connection and give the database up."""
        self.engine.dispose()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


_IMMEDIATE = "ldprecover_immediate"


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise StorageFullError("the disk of the database is full") from error
        raise StoreUnavailableError(f"the database does not answer: {error.orig}") from error


def _on_connect(connection: DBAPIConnection, record: Any) -> None:
    assert isinstance(connection, sqlite3.Connection)
    connection.isolation_level = None  # the begin event writes BEGIN, not the driver
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _on_begin(connection: sa.Connection) -> None:
    immediate = connection.get_execution_options().get(_IMMEDIATE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
