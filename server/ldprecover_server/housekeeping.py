"""What a server process does from time to time: write what it refused, let go of what is over, mix
what is closed.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable

from anyio import to_thread

from ldprecover_server.datasets import DatasetPurge
from ldprecover_server.errors import ServiceError
from ldprecover_server.metrics import Metrics
from ldprecover_server.rejections import Rejections
from ldprecover_server.storage import Progress, Storage, for_seconds

_log = logging.getLogger(__name__)

_PERIOD = 10.0  # seconds
_SOON = 1.0  # where something was left to do
_SECONDS = 5.0  # that one kind of work may take before the others have their turn


class Housekeeping:
    """A task beside the requests. Several processes may do the same work at once: the second finds
    it done.

    Whatever fails is logged and tried again next time; nothing ends it but its owner.
    """

    def __init__(
        self, store: Storage, rejections: Rejections, metrics: Metrics | None = None
    ) -> None:
        self._store = store
        self._metrics = metrics or Metrics()
        self._rejections = rejections
        self._purge_datasets = DatasetPurge(store)
        self._stopping = threading.Event()
        self._purged_hour: int | None = None
        self.last_run: float | None = None
        """When all of the work was last gone through, in seconds since the epoch; None for not yet.
        """
        self.last_purge: float | None = None
        """When nothing was found any more, or left, that is past its retention."""
        self.rows_to_delete = 0
        """Keys and segments left of rounds that are deleted; see `Storage.rows_to_delete`."""
        self.rows_to_unlink = 0
        """Keys and segments of closed rounds that are to unlink; see `Storage.rows_to_unlink`."""

    async def run(self) -> None:
        """Do the work at once, and again every few seconds, until cancelled; then the piece under
        way is finished.
        """
        while True:
            work = asyncio.ensure_future(to_thread.run_sync(self.once))
            try:
                soon = await asyncio.shield(work)
            except asyncio.CancelledError:
                self._stopping.set()
                await asyncio.wait([work])  # whoever ends this closes the database next
                raise
            except Exception:  # noqa: BLE001  it must outlive any fault: reports past their time would stay
                _log.exception("housekeeping failed")
                soon = False
            await asyncio.sleep(_SOON if soon else _PERIOD)

    def once(self) -> bool:
        """Do each kind of work, for some seconds at the most; return whether something is left to
        do soon.
        """
        works = (
            self._keep_claim,
            self._flush,
            self._purge,
            self._delete,
            self._screen,
            self._mix,
            self._forget,
            self._expire,
        )
        left = [self._try(work) for work in works]
        self.last_run = time.time()
        self._metrics.last_housekeeping.set(self.last_run)
        self._metrics.last_purge.set(self.last_purge or 0.0)
        self._metrics.rows_to_delete.set(self.rows_to_delete)
        return any(left)

    def _try(self, work: Callable[[], bool]) -> bool:
        try:
            return work()
        except ServiceError as error:
            _log.warning("housekeeping waits for the database: %s", error)
        except Exception:  # noqa: BLE001  the other kinds of work must not wait for this one to be mended
            _log.exception("housekeeping failed")
        return False

    def _keep_claim(self) -> bool:
        self._store.database.keep_claim()
        return False

    def _flush(self) -> bool:
        self._rejections.flush()
        return False

    def _purge(self) -> bool:
        hour = self._store.hour()
        if hour == self._purged_hour:
            return False
        purged = self._for_a_while(self._store.deletion.purge)
        if purged.rows:
            _log.info("purged %d segments past their retention", purged.rows)
        if purged.done and self._purge_datasets():
            self._purged_hour, self.last_purge = hour, time.time()
        return not purged.done

    def _delete(self) -> bool:
        deleted = self._for_a_while(self._store.deletion.delete_rest)
        self.rows_to_delete = 0 if deleted.done else self._store.deletion.rows_left()
        return not deleted.done

    def _screen(self) -> bool:
        screened = self._for_a_while(self._store.filters.run)
        self._metrics.quarantined.labels("seed").inc(screened.rows)
        return not screened.done

    def _mix(self) -> bool:
        mixed = self._for_a_while(self._store.unlinking.run)
        self.rows_to_unlink = 0 if mixed.done else self._store.unlinking.rows_left()
        return not mixed.done

    def _forget(self) -> bool:
        if not self._store.deletion.is_erased:
            self._store.deletion.erase()
        return not self._store.deletion.is_erased

    def _expire(self) -> bool:
        self._store.jobs.expire()
        return False

    def _for_a_while(self, work: Callable[[Callable[[], bool]], Progress]) -> Progress:
        return work(for_seconds(_SECONDS, unless=self._stopping.is_set))
