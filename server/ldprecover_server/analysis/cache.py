"""A cache of results with single flight: equal requests in progress share one computation."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ldprecover_server.analysis.worker_pool import OnProgress
from ldprecover_server.byte_cache import ByteCache

Work = Callable[[OnProgress], Coroutine[Any, Any, bytes]]
"""Computes a result and reports its progress."""


class _Flight:
    """A computation in progress and the callers that wait for it."""

    def __init__(self, work: Work) -> None:
        self._listeners: list[OnProgress] = []
        self._progress: float | None = None
        self.waiting = 0
        self.task = asyncio.ensure_future(work(self._report_progress))

    def add(self, listener: OnProgress | None) -> None:
        self.waiting += 1
        if listener is not None:
            self._listeners.append(listener)
            if self._progress is not None:
                listener(self._progress)

    def remove(self, listener: OnProgress | None) -> None:
        self.waiting -= 1
        if listener is not None:
            self._listeners.remove(listener)

    def _report_progress(self, progress: float) -> None:
        self._progress = progress
        for listener in self._listeners:
            listener(progress)


class ResultCache:
    """Packed results by key, the most recently used ones up to `max_bytes`; for one event loop.

    A key must contain everything that the result depends on, so that no entry is ever stale. Errors
    are not cached.
    """

    def __init__(self, max_bytes: int) -> None:
        self._results: ByteCache[bytes] = ByteCache(max_bytes)
        self._flights: dict[tuple[bytes, bool], _Flight] = {}

    async def get(
        self, key: bytes, work: Work, *, keyed: bool, on_progress: OnProgress | None = None
    ) -> bytes:
        """Return the cached result, or that of a computation in progress, or else that of `work`.

        The work is cancelled with its last caller. A caller with a key does not share work that was
        started for callers without one, because they have less time. Raises the errors of `work`.
        """
        if (result := self._results.get(key)) is not None:
            return result
        flight = self._flights.get((key, True)) or self._flights.get((key, keyed))
        if flight is None:
            flight = self._flights[key, keyed] = _Flight(work)
            flight.task.add_done_callback(lambda task: self._end((key, keyed), task))
        flight.add(on_progress)
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.remove(on_progress)
            if not flight.waiting and not flight.task.done():
                flight.task.cancel()
                # A caller that arrives before the cancellation ends must not join it.
                self._flights = {
                    name: other for name, other in self._flights.items() if other is not flight
                }

    def _end(self, name: tuple[bytes, bool], task: "asyncio.Future[bytes]") -> None:
        if (flight := self._flights.get(name)) is not None and flight.task is task:
            del self._flights[name]
        if task.cancelled() or task.exception() is not None:
            return
        self._results.add(name[0], task.result())
