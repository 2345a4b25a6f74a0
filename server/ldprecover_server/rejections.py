"""Counts rejected submissions and duplicates by round, in memory, and stores them regularly."""

import logging
import threading
from collections import Counter

from ldprecover_server.errors import ServiceError
from ldprecover_server.storage import Storage

DUPLICATE = "duplicate"

_log = logging.getLogger(__name__)


class Rejections:
    """Counts by round and reason. A crash loses the counts since the last flush.

    They are written in a separate transaction, so that an error in it rolls back no report.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._counts: Counter[tuple[int, str]] = Counter()

    def count(self, seq: int, reason: str) -> None:
        """Count one rejected or duplicate submission to a round."""
        with self._lock:
            self._counts[seq, reason] += 1

    def flush(self) -> None:
        """Store the counts; after an error they stay in memory. Raises ServiceError."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            self._storage.rounds.add_rejections(counts)
        except BaseException:
            with self._lock:
                self._counts.update(counts)
            raise

    def flush_or_warn(self) -> None:
        """Store the counts; log an error."""
        try:
            self.flush()
        except ServiceError as error:
            _log.warning("refusals since the last flush are not in the stats: %s", error)
