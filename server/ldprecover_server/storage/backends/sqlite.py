"""A SQLite file: one server process, durable to the last commit."""

import contextlib
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection

from ldprecover_server.errors import ConfigurationError, DatabaseGoneError
from ldprecover_server.storage.backends.sqlite_checkpoints import (
    ALONE_PAGES,
    MOST_PAGES,
    Checkpoints,
)
from ldprecover_server.storage.commit.one_statement import SQLITE, SQLITE_MADE, AtOnce
from ldprecover_server.storage.commit.pinned_connection import Kept
from ldprecover_server.storage.database import Database, is_write

_BUSY_MS = 10_000
_FORGET_MS = 200
_PAGE = 4096
_MORE_PAGES = 6  # of a transaction that writes but one row: inner pages, indexes
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",  # a commit is on disk when it returns
    f"busy_timeout={_BUSY_MS}",
    "foreign_keys=ON",
    "cache_size=-65536",  # 64 MiB
    "temp_store=MEMORY",  # nothing of a report goes to other files
    "secure_delete=ON",  # what is deleted is overwritten
)

_MAGIC = b"SQLite format 3\0"

# All keys in one step of a statement whose text never changes. In a step the interpreter's lock is
# free, and after each the writer has to win it back from the event loop: with a step a key that was
# most of a commit's time.
_KNOWN = """
WITH RECURSIVE each (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM each WHERE i + 1 < ?1)
SELECT key, digest FROM each JOIN keys ON key = substr(?2, 16 * i + 1, 16)
"""
# OR IGNORE: a statement that may fail midway would first copy every page that it changes.
_INSERT_KEYS = """
WITH RECURSIVE each (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM each WHERE i + 1 < ?1)
INSERT OR IGNORE INTO keys (key, digest)
SELECT substr(?2, 16 * i + 1, 16), substr(?3, 8 * i + 1, 8) FROM each
"""


class SQLite(Database):
    """WAL with synchronous=FULL; writes begin IMMEDIATE, so that what they read still holds when
    they write.

    A lock file beside the database keeps a second server away. The file is made for its owner
    alone, once: if it is removed or replaced while it is open, nothing more is read or written, and
    none is made in its place.
    """

    def __init__(self, url: sa.URL) -> None:
        super().__init__()
        if url.database in (None, "", ":memory:"):
            raise ConfigurationError(
                "the database must be a file, sqlite:///FILE: memory would not survive a crash"
            )
        self.path = Path(str(url.database)).absolute()
        if not self.path.parent.is_dir():
            raise ConfigurationError(
                f"the folder of the database does not exist: {self.path.parent}"
            )
        # Nearly every connection is given back with its transaction ended: the pool need not end it
        # again.
        self.engine = sa.create_engine(
            url,
            pool_reset_on_return=None,
            hide_parameters=True,
            connect_args={"timeout": _BUSY_MS / 1000},
        )
        sa.event.listen(self.engine, "do_connect", self._on_do_connect)
        sa.event.listen(self.engine, "connect", self._on_connect)
        sa.event.listen(self.engine, "begin", _on_begin)
        sa.event.listen(self.engine, "checkin", _on_checkin)
        self._kept = Kept(self.engine, _prepare)
        self._lock: TextIO | None = None
        self._checkpoints: Checkpoints | None = None
        self._opened: tuple[int, int] | None = None
        """Which file this is, from the first connection on: its device and its number there."""

    @property
    def name(self) -> str:
        return str(self.path)

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
            # Whoever held it before may have removed it as we opened it: then it locks nothing.
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
        self._check_same()  # else the commit went into a file that nobody will ever read
        self._grown(changed)

    def _grown(self, rows: int, size: int = 0) -> None:
        """Say what was written: rows, most of them on pages of their own, and so many bytes
        besides.
        """
        if self._checkpoints is not None:
            self._checkpoints.grown(rows + size // _PAGE + _MORE_PAGES)

    def _check_same(self) -> None:
        if _identity(self.path) != self._opened:
            raise DatabaseGoneError(
                f"the file {self.path.name} was removed or replaced while the server had it open"
            )

    def _on_do_connect(self, *arguments: Any) -> None:
        if self._opened is None:
            self._open()
        self._check_same()  # SQLite would make a new file, silently

    def _on_connect(self, connection: DBAPIConnection, record: Any) -> None:
        assert isinstance(connection, sqlite3.Connection)
        connection.isolation_level = None  # the begin event writes BEGIN, not the driver
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        pages = ALONE_PAGES if self._checkpoints is None else MOST_PAGES
        connection.execute(f"PRAGMA wal_autocheckpoint={pages}")

    def _open(self) -> None:
        """Make the file if there is none.

        Raises ConfigurationError for another program's file, before anything is changed in it.
        """
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            _check_ours(self.path)
        except OSError as error:
            raise ConfigurationError(f"cannot make {self.path}: {error.strerror}") from error
        self._opened = _identity(self.path)

    def is_full(self, error: sa.exc.DBAPIError) -> bool:
        return getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL

    def is_damaged(self, error: sa.exc.DBAPIError) -> bool:
        code = (
            getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        )  # above are SQLite's finer distinctions
        return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

    def known_submission_keys(
        self, connection: sa.Connection, wanted: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        rows = connection.exec_driver_sql(_KNOWN, (len(wanted), b"".join(wanted)))
        return {row.key: row.digest for row in rows}

    def insert_submission_keys(
        self, connection: sa.Connection, wanted: Mapping[bytes, bytes]
    ) -> set[bytes]:
        there = self.known_submission_keys(connection, list(wanted))
        fresh = (
            {key: digest for key, digest in wanted.items() if key not in there} if there else wanted
        )
        if fresh:
            connection.exec_driver_sql(
                _INSERT_KEYS, (len(fresh), b"".join(fresh), b"".join(fresh.values()))
            )
        return set(fresh)

    def store_at_once(self, wish: AtOnce) -> bool:
        whose = (wish.round, wish.process, wish.token)
        keys = (len(wish.keys), b"".join(wish.keys), b"".join(wish.keys.values()))
        values = (
            *whose,
            *keys,
            wish.n_before,
            wish.n_after,
            wish.counts,
            wish.hour,
            wish.n,
            wish.data,
        )
        with self.translated_errors():
            self._check_same()
            try:
                self._kept.connection().execute(SQLITE, values)
            except sqlite3.IntegrityError:
                return False
            except sqlite3.Error as error:
                raise self._kept.raised(error, is_lost=False) from error
            self._check_same()
        self._grown(len(wish.keys), len(wish.data) + len(wish.counts))
        return True

    def free_bytes(self) -> int | None:
        return shutil.disk_usage(self.path.parent).free

    def next_segment(self, connection: sa.Connection) -> int:
        return int(
            connection.exec_driver_sql("SELECT coalesce(max(id), 0) + 1 FROM segments").scalar_one()
        )

    def slices(self, connection: sa.Connection, id: int, size: int, step: int) -> Iterator[bytes]:
        with _raw(connection).blobopen("segments", "data", id, readonly=True) as blob:
            while piece := blob.read(step):
                yield piece

    def forget(self) -> bool:
        # The write-ahead log still has the pages as they were before secure_delete overwrote them.
        # Whoever reads keeps them there; commits wait meanwhile, so it is left for later soon.
        with self.translated_errors(), self.engine.connect() as connection:
            raw = _raw(connection)
            try:
                raw.execute(f"PRAGMA busy_timeout={_FORGET_MS}")
                busy, _, _ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                raw.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        return not busy

    def close(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.close()
            self._checkpoints = None
        self._kept.give_back()
        super().close()
        if self._lock is not None:
            self._lock_path.unlink(
                missing_ok=True
            )  # while it is ours: who opens it next makes another
            self._lock.close()
            self._lock = None


def _identity(file: Path | int) -> tuple[int, int] | None:
    try:
        found = os.fstat(file) if isinstance(file, int) else file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _prepare(connection: sqlite3.Connection) -> None:
    for made in SQLITE_MADE:
        connection.execute(made)


def _raw(connection: sa.Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def _check_ours(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start not in (b"", _MAGIC):  # SQLite itself would write over a file shorter than a page
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
    # A COMMIT that fails may leave its transaction open, and whoever gets the connection next could
    # not begin.
    if connection is not None and connection.in_transaction:
        connection.rollback()
