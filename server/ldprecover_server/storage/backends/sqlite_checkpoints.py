"""Checkpoints a SQLite file's write-ahead log in a thread beside the writer.

A commit is durable once it is in the log. When the log has grown by PAGES, the thread copies pages
to the file over its own connection, while commits continue. It never quite catches up with a busy
writer, so at MAX_PAGES the writer does the little that is left (`wal_autocheckpoint`) and restarts
the log. After a crash the next connection reads the log.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from ldprecover_server.errors import ServiceError

_log = logging.getLogger(__name__)

PAGES = 2000  # of 4 KiB; submission keys are random, so fewer pages rarely repeat
MAX_PAGES = 16_000
DEFAULT_MAX_PAGES = 8000
"""Limit in processes without the thread: commands that run beside a server."""


class Checkpoints:
    """The thread, which starts with the first checkpoint.

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
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA secure_delete=ON")
        except BaseException:
            connection.close()
            raise
        return connection
