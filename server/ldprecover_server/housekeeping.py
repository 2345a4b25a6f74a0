"""What a server process does from time to time: write what it refused, forget what is past its time."""

import asyncio
import logging

from starlette.concurrency import run_in_threadpool

from ldprecover_server.errors import ServiceError
from ldprecover_server.refusals import Refusals
from ldprecover_server.store import Store

__all__ = ["Housekeeping"]

_log = logging.getLogger(__name__)

_PERIOD = 10.0  # seconds


class Housekeeping:
    """A task beside the requests. Several processes may do the same work at once: the second finds it done."""

    def __init__(self, store: Store, refusals: Refusals) -> None:
        self._store = store
        self._refusals = refusals
        self._purged: int | None = None

    async def run(self) -> None:
        """Do the work at once, and again every few seconds, until cancelled."""
        while True:
            work = asyncio.ensure_future(run_in_threadpool(self.once))
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                await work  # whoever ends this closes the database next
                raise
            await asyncio.sleep(_PERIOD)

    def once(self) -> None:
        """Flush the refusals; forget old jobs; purge segments once an hour. What fails is tried again next time."""
        try:
            self._refusals.flush()
            self._store.jobs.expire()
            hour = self._store.hour()
            if hour != self._purged:
                purged = self._store.purge()
                self._purged = hour
                if purged:
                    _log.info("purged %d segments past their retention", purged)
        except ServiceError as error:
            _log.warning("housekeeping waits for the database: %s", error)
