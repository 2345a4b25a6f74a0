"""A SQLite file: for one server process, durable to the last commit."""

import contextlib
import fcntl
import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection

from ldprecover_server.errors import (
    ConfigurationError,
    DatabaseGoneError,
    ServiceError,
    StoreUnavailableError,
)
from ldprecover_server.storage.database import Database, PinnedConnection, is_write
from ldprecover_server.storage.one_statement import (
    SQLITE,
    SQLITE_ROUNDS,
    SQLITE_ROW,
    SQLITE_SETUP,
    RoundRows,
)

_log = logging.getLogger(__name__)

PAGES = 2000  # of 4 KiB; submission keys are random, so fewer pages rarely repeat
MAX_PAGES = 16_000
DEFAULT_MAX_PAGES = 8000
"""Limit in processes without the thread: commands that run beside a server."""
_BUSY_MS = 10_000
_ERASE_BUSY_MS = 200  # commits wait for it
_PAGE_BYTES = 4096
_EXTRA_PAGES = 6  # of a transaction beside those of its rows: inner pages, indexes
_PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: a commit is on disk when it returns
    "busy_timeout": _BUSY_MS,
    "foreign_keys": 1,
    "cache_size": -8192,  # 8 MiB for each of up to 15 connections
    "temp_store": 2,  # MEMORY: no report is written to other files
    "secure_delete": 1,  # deleted data are overwritten
}

_MAGIC = b"SQLite format 3\0"

# All keys in one step of a constant statement. A step releases the interpreter's lock, and after
# it the writer must win the lock back from the event loop: with one step a key, that took most of a
# commit's time.
_FIND_KEYS = """
WITH RECURSIVE each (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM each WHERE i + 1 < :number)
SELECT key, digest FROM each JOIN keys ON key = substr(:keys, 16 * i + 1, 16)
"""
# OR IGNORE, because a statement that may fail midway first copies every page it changes.
_INSERT_KEYS = """
WITH RECURSIVE each (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM each WHERE i + 1 < :number)
INSERT OR IGNORE INTO keys (key, digest)
SELECT substr(:keys, 16 * i + 1, 16), substr(:digests, 8 * i + 1, 8) FROM each
"""


class SQLite(Database):
    """A file with a write-ahead log and synchronous=FULL.

    Writes begin IMMEDIATE, so that what they read still holds when they write. A lock file beside
    the database excludes a second server. Only the file's owner can read it. If the file is removed
    or replaced while it is open, reads and writes fail and no new file is created.
    """

    def __init__(self, url: sa.URL) -> None:
        super().__init__()
        # Options may open another file, or this one in another mode.
        if url.database in (None, "", ":memory:") or url.query:
            raise ConfigurationError(
                "the database must be a file, sqlite:///FILE, without options: memory does not "
                "survive a crash"
            )
        self.path = Path(os.path.realpath(str(url.database)))  # as SQLite, whose log lies there
        if not self.path.parent.is_dir():
            raise ConfigurationError(
                f"the folder of the database does not exist: {self.path.parent}"
            )
        if self.path.exists() and not self.path.is_file():
            kind = "a folder" if self.path.is_dir() else "not a regular file"
            raise ConfigurationError(f"the database must be a file: {self.path} is {kind}")
        # Nearly every connection returns with its transaction ended, so the pool need not reset it.
        self.engine = sa.create_engine(
            url.set(database=str(self.path)),
            pool_reset_on_return=None,
            hide_parameters=True,
            connect_args={"timeout": _BUSY_MS / 1000},
        )
        sa.event.listen(self.engine, "do_connect", self._on_do_connect)
        sa.event.listen(self.engine, "connect", self._on_connect)
        sa.event.listen(self.engine, "begin", _on_begin)
        sa.event.listen(self.engine, "checkin", _on_checkin)
        self._pinned = PinnedConnection(self.engine, _prepare)
        self._lock: TextIO | None = None
        self._checkpoints: Checkpoints | None = None
        self._opened: tuple[int, int] | None = None
        """Device and inode of the file since the first connection."""

    @property
    def name(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        return self.path.is_file() and self.path.stat().st_size > 0

    def claim(self) -> None:
        while self._lock is None:
            try:
                file = os.fdopen(
                    os.open(self._lock_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a"
                )
            except OSError as error:
                raise ConfigurationError(
                    f"cannot write {self._lock_path}: {error.strerror}"
                ) from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.close()
                raise ConfigurationError(
                    f"another server has {self.path} open; a SQLite file serves one server process "
                    "at a time"
                ) from error
            except OSError as error:  # network file systems without locks
                file.close()
                raise ConfigurationError(
                    f"cannot lock {self._lock_path}: {error.strerror}; a local disk can"
                ) from error
            # Another process may have removed the file after we opened it; our lock is then void.
            if _identity(self._lock_path) == _identity(file.fileno()):
                self._lock = file
            else:
                file.close()
        if self._checkpoints is None:
            self._checkpoints = Checkpoints(self.path, self._check_same)

    @property
    def _lock_path(self) -> Path:
        return self.path.with_name(self.path.name + ".lock")

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        with super().read() as connection:
            self._check_same()
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[sa.Connection]:
        with super().write() as connection:
            self._check_same()
            raw = _raw(connection)
            before = raw.total_changes
            yield connection
            changed = raw.total_changes - before
        self._check_same()  # otherwise the commit went into a removed file
        self._count_pages(changed)

    def _count_pages(self, rows: int, size: int = 0) -> None:
        """Report written rows, most of them on separate pages, and further bytes."""
        if self._checkpoints is not None:
            self._checkpoints.add_pages(rows + size // _PAGE_BYTES + _EXTRA_PAGES)

    def _check_same(self) -> None:
        if _identity(self.path) != self._opened:
            raise DatabaseGoneError(
                f"the file {self.path.name} was removed or replaced while the server had it open"
            )

    def _on_do_connect(self, *arguments: Any) -> None:
        if self._opened is None:
            self._open()
        self._check_same()  # SQLite would silently create a new file

    def _on_connect(self, connection: DBAPIConnection, record: Any) -> None:
        assert isinstance(connection, sqlite3.Connection)
        connection.isolation_level = None  # the begin event writes BEGIN, not the driver
        _configure(connection)
        pages = DEFAULT_MAX_PAGES if self._checkpoints is None else MAX_PAGES
        connection.execute(f"PRAGMA wal_autocheckpoint={pages}")

    def _open(self) -> None:
        """Create the file if it does not exist.

        Raises ConfigurationError for another program's file, before changing it.
        """
        try:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            _check_ours(self.path)
        except OSError as error:
            raise ConfigurationError(f"cannot open {self.path}: {error.strerror}") from error
        self._opened = _identity(self.path)

    def is_full(self, error: sa.exc.DBAPIError) -> bool:
        return getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL

    def fault_of_file(self, error: sa.exc.DBAPIError) -> str | None:
        extended = getattr(error.orig, "sqlite_errorcode", 0)
        code = extended & 0xFF
        if code == sqlite3.SQLITE_READONLY and extended != sqlite3.SQLITE_READONLY_DBMOVED:
            return "takes no writes: it or its folder is read-only for this user"
        is_damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        return "is damaged; restore it from a backup" if is_damaged else None

    def find_submission_keys(
        self, connection: sa.Connection, keys: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        rows = connection.exec_driver_sql(_FIND_KEYS, {"number": len(keys), "keys": b"".join(keys)})
        return {row.key: row.digest for row in rows}

    def insert_submission_keys(
        self, connection: sa.Connection, digests: Mapping[bytes, bytes]
    ) -> set[bytes]:
        stored = self.find_submission_keys(connection, list(digests))
        new = digests
        if stored:
            new = {key: digest for key, digest in digests.items() if key not in stored}
        if new:
            values = {"number": len(new), "keys": b"".join(new), "digests": b"".join(new.values())}
            connection.exec_driver_sql(_INSERT_KEYS, values)
        return set(new)

    def commit_in_one_statement(
        self, rows: Sequence[RoundRows], process: int, hour: int, generation: int
    ) -> bool:
        if len(rows) > SQLITE_ROUNDS:
            return False
        parameters: list[int | bytes] = []
        for each in rows:
            keys, digests = b"".join(each.digests), b"".join(each.digests.values())
            parameters += (each.round, process, self.token, len(each.digests), keys, digests)
            parameters += (each.n_before, each.n_after, each.counts, hour, each.n, each.data)
        with self.translated_errors():
            self._check_same()
            try:
                statement = SQLITE + ", ".join(len(rows) * [SQLITE_ROW])
                self._pinned.get().execute(statement, parameters)
            except sqlite3.IntegrityError:
                return False
            except sqlite3.Error as error:
                raise self._pinned.translate(error, is_lost=False) from error
            self._check_same()
        for each in rows:
            self._count_pages(len(each.digests), len(each.data) + len(each.counts))
        return True

    def write_nothing(self, connection: sa.Connection) -> None:
        # One page: SQLite writes the file's header again, although the number stays.
        connection.exec_driver_sql("PRAGMA user_version = 0")

    def free_bytes(self) -> int | None:
        return shutil.disk_usage(self.path.parent).free

    def read_slices(
        self, connection: sa.Connection, id: int, size: int, step: int
    ) -> Iterator[bytes]:
        with _raw(connection).blobopen("segments", "data", id, readonly=True) as blob:
            while piece := blob.read(step):
                yield piece

    def erase_deleted(self) -> bool:
        # The write-ahead log still has the pages from before secure_delete overwrote them. Readers
        # keep them there. Commits wait meanwhile, so the attempt ends after _ERASE_BUSY_MS.
        with self.translated_errors(), self.engine.connect() as connection:
            raw = _raw(connection)
            try:
                raw.execute(f"PRAGMA busy_timeout={_ERASE_BUSY_MS}")
                busy, _, _ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                raw.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        return not busy

    def close(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.close()
            self._checkpoints = None
        self._pinned.release()
        super().close()
        if self._lock is not None:
            self._lock_path.unlink(missing_ok=True)  # before the lock is released
            self._lock.close()
            self._lock = None


class Checkpoints:
    """A thread that checkpoints the write-ahead log beside the writer.

    A commit is durable once it is in the log. When the log has grown by PAGES, the thread copies
    pages to the file over its own connection, while commits continue. It never quite catches up
    with a busy writer, so at MAX_PAGES the writer does the little that is left
    (`wal_autocheckpoint`) and restarts the log. After a crash the next connection reads the log.
    `check` raises a ServiceError unless `path` is still the opened file.
    """

    def __init__(self, path: Path, check: Callable[[], None]) -> None:
        self._path = path
        self._check = check
        self._pages = 0
        self._wake = threading.Event()
        self._stopping = False
        self.done = 0
        """Number of checkpoints, each as far as readers allowed."""
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def add_pages(self, pages: int) -> None:
        """Report that the log has grown by about this many pages."""
        self._pages += pages
        if self._pages >= PAGES:
            self._pages = 0
            self._wake.set()
            if self._thread is None:
                self._start()

    def close(self) -> None:
        """Stop the thread after the current checkpoint."""
        with self._starting:
            self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(
                    target=self._run, name="ldprecover-checkpoints", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                break
            try:
                if connection is None:
                    connection = self._connect()
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                self.done += 1
            except Exception as error:  # noqa: BLE001
                # No data are lost. The next attempt uses a new connection: without the thread the
                # log would grow for ever.
                expected = isinstance(error, sqlite3.Error | ServiceError)
                _log.warning(
                    "the checkpoint of the write-ahead log failed: %s", error, exc_info=not expected
                )
                if connection is not None:
                    connection.close()
                    connection = None
        if connection is not None:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        self._check()
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None
        )
        try:
            self._check()  # the file may have been replaced meanwhile
            _configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _identity(file: Path | int) -> tuple[int, int] | None:
    try:
        status = os.fstat(file) if isinstance(file, int) else file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _configure(connection: sqlite3.Connection) -> None:
    for name, expected in _PRAGMAS.items():
        connection.execute(f"PRAGMA {name}={expected}")
        (value,) = connection.execute(f"PRAGMA {name}").fetchone()
        if value != expected:  # as on a file system without shared memory, which has no WAL
            raise StoreUnavailableError(
                f"{name} is {value}, not {expected}; the file must be on a local disk"
            )


def _prepare(connection: sqlite3.Connection) -> None:
    for statement in SQLITE_SETUP:
        connection.execute(statement)


def _raw(connection: sa.Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def _check_ours(path: Path) -> None:
    if path.stat().st_nlink > 1:  # SQLite would name another log after each
        raise ConfigurationError(f"{path} has a second name, a hard link; serve a copy of it")
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start not in (b"", _MAGIC):  # SQLite would overwrite a file shorter than a page
        raise ConfigurationError(f"{path} is not a database of SQLite; nothing in it was changed")
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        tables = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    if tables and not {"alembic_version", "rounds"} <= tables:
        raise ConfigurationError(
            f"{path} is a database of another program; nothing in it was changed"
        )


def _on_begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write(connection) else "BEGIN")


def _on_checkin(connection: Any, record: Any) -> None:
    # A failed COMMIT may leave its transaction open, and then the next user could not begin.
    if connection is not None and connection.in_transaction:
        connection.rollback()
