"""A SQLite file's write-ahead log is written back by a thread beside the writer, not inside a
commit.

A commit is on disk once it is in the log. Pages go from there to the file when the log has grown by
PAGES, by a connection of the thread's own, while commits go on. It never quite catches up with a
writer that does not pause; so a log of MOST_PAGES is written back by the writer itself
(`wal_autocheckpoint`), which finds little left to do, and then begins the log anew. Whoever dies
anywhere leaves a log that the next connection reads.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from ldprecover_server.errors import ServiceError

_log = logging.getLogger(__name__)

PAGES = 2000  # of 4 KiB: submission keys are random, so few of their pages come twice in less
MOST_PAGES = 16_000
ALONE_PAGES = 8000
"""Where there is no thread: beside a server, at the command line."""


class Checkpoints:
    """The thread, once there is something to do. `check` raises a ServiceError unless `path` is the
    file as opened.
    """

    def __init__(self, path: Path, check: Callable[[], None]) -> None:
        self._path = path
        self._check = check
        self._pages = 0
        self._wake = threading.Event()
        self._stopping = False
        self.done = 0
        """How often the log has been written back, as far as readers allowed."""
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def grown(self, pages: int) -> None:
        """Say that the log has grown by about so many pages."""
        self._pages += pages
        if self._pages >= PAGES:
            self._pages = 0
            self._wake.set()
            if self._thread is None:
                self._start()

    def close(self) -> None:
        """End the thread once what it has begun is done."""
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
            except Exception as error:  # noqa: BLE001  it must outlive any fault: the log would grow for ever
                # Nothing is lost by it. The next time is tried with a new connection.
                expected = isinstance(error, sqlite3.Error | ServiceError)
                _log.warning(
                    "the write-ahead log was not written back: %s", error, exc_info=not expected
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
            self._check()  # it may have been replaced as we opened it
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA secure_delete=ON")
        except BaseException:
            connection.close()
            raise
        return connection
