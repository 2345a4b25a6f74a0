"""What was refused of each round: counted in memory, written now and then."""

import logging
import threading
from collections import Counter

from ldprecover_server.errors import ServiceError
from ldprecover_server.storage import Storage

DUPLICATE = "duplicate"

_log = logging.getLogger(__name__)


class Rejections:
    """Counts by round and reason. A crash loses those not yet flushed; no report hangs on them.

    They go to the database in a small transaction of their own, so that they can undo no report.
    """

    def __init__(self, store: Storage) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counts: Counter[tuple[int, str]] = Counter()

    def count(self, seq: int, reason: str) -> None:
        """Count one submission of a round that was refused, or was a duplicate."""
        with self._lock:
            self._counts[seq, reason] += 1

    def flush(self) -> None:
        """Write what has been counted; where that fails it stays counted. Raises ServiceError."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            self._store.rounds.add_rejections(counts)
        except BaseException:
            with self._lock:
                self._counts.update(counts)
            raise

    def flush_or_warn(self) -> None:
        """Write what has been counted; where that fails, say so in the log."""
        try:
            self.flush()
        except ServiceError as error:
            _log.warning("refusals since the last flush are not in the stats: %s", error)
