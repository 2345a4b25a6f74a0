"""Regular work of a server process: closing, deletion, and counts of rounds for the metrics."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable

from anyio import to_thread

from ldprecover_server.errors import RoundNotFoundError, ServiceError
from ldprecover_server.metrics import Metrics
from ldprecover_server.storage import CURRENT, Storage, for_seconds

_log = logging.getLogger(__name__)

_PERIOD = 10.0  # seconds
_SHORT_PERIOD = 1.0  # seconds, if work is left
_TASK_SECONDS = 5.0  # time limit of each task in one run


class Housekeeping:
    """A background task. Several processes may run it on one database; the second finds no work.

    Errors are logged, and the work is tried again in the next run.
    """

    def __init__(self, storage: Storage, metrics: Metrics | None = None) -> None:
        self._storage = storage
        self._metrics = metrics or Metrics()
        self._stopping = threading.Event()
        self.last_run: float | None = None
        """End of the last run, in seconds since the epoch; None before the first."""

    async def run(self) -> None:
        """Run every few seconds until cancelled; the current chunk is finished first."""
        while True:
            work = asyncio.ensure_future(to_thread.run_sync(self.once))
            try:
                soon = await asyncio.shield(work)
            except asyncio.CancelledError:
                self._stopping.set()
                await asyncio.wait([work])  # the database is closed next
                raise
            except Exception:  # noqa: BLE001  otherwise deletion would stop
                _log.exception("housekeeping failed")
                soon = False
            await asyncio.sleep(_SHORT_PERIOD if soon else _PERIOD)

    def once(self) -> bool:
        """Run each task, with a time limit; return whether work is left."""
        tasks = (self._keep_claim, self._close, self._delete, self._erase, self._count)
        is_left = [self._try(task) for task in tasks]
        self.last_run = time.time()
        self._metrics.last_housekeeping.set(self.last_run)
        return any(is_left)

    def _try(self, work: Callable[[], bool]) -> bool:
        try:
            return work()
        except ServiceError as error:
            _log.warning("housekeeping waits for the database: %s", error)
        except Exception:  # noqa: BLE001  the other tasks must run
            _log.exception("housekeeping failed")
        return False

    def _keep_claim(self) -> bool:
        self._storage.database.keep_claim()
        return False

    def _close(self) -> bool:
        self._storage.rounds.close_due()
        return False

    def _delete(self) -> bool:
        deleted = self._storage.deletion.delete_rest(
            for_seconds(_TASK_SECONDS, unless=self._stopping.is_set)
        )
        self._storage.acts.delete_old()
        rows = 0 if deleted.done else self._storage.deletion.remaining_rows()
        self._metrics.rows_to_delete.set(rows)
        return not deleted.done

    def _count(self) -> bool:
        for attack, number in self._storage.verdicts.open_rounds().items():
            self._metrics.open_rounds.labels(attack).set(number)
        try:
            reports = self._storage.rounds.find(CURRENT).n
        except RoundNotFoundError:
            reports = 0
        self._metrics.current_reports.set(reports)
        return False

    def _erase(self) -> bool:
        if not self._storage.deletion.is_erased:
            self._storage.deletion.erase()
        return not self._storage.deletion.is_erased
