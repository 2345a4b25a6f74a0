"""A cache of results with single flight: equal requests in progress share one computation."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ldprecover_server.limits import ByteCache

Work = Callable[[Callable[[], None]], Coroutine[Any, Any, bytes]]
"""Computes a result; calls its argument when the computation no longer waits for a worker."""


class _Flight:
    """A computation in progress and the number of callers that wait for it."""

    def __init__(self, work: Work) -> None:
        self.waiting = 0
        self.is_running = False
        self.task = asyncio.ensure_future(work(self._start))

    def _start(self) -> None:
        self.is_running = True


class ResultCache:
    """Packed results by key, the most recently used ones up to `max_bytes`; for one event loop.

    A key must contain everything that the result depends on, so that no entry is ever stale. Errors
    are not cached.
    """

    def __init__(self, max_bytes: int) -> None:
        self._results: ByteCache[bytes] = ByteCache(max_bytes)
        self._flights: dict[tuple[bytes, bool], _Flight] = {}

    async def get(self, key: bytes, work: Work, *, keyed: bool) -> bytes:
        """Return the cached result, or that of a computation in progress, or else that of `work`.

        The work is cancelled with its last caller, unless it is running for a caller with a key:
        then it continues, and its result is cached. A caller with a key does not share work that
        was started for callers without one, because they have less time. Raises the errors of
        `work`.
        """
        if (result := self._results.get(key)) is not None:
            return result
        flight = self._flights.get((key, True)) or self._flights.get((key, keyed))
        if flight is None:
            flight = self._flights[key, keyed] = _Flight(work)
            flight.task.add_done_callback(lambda task: self._end((key, keyed), task))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._leave(key, flight)

    def _leave(self, key: bytes, flight: _Flight) -> None:
        """Cancel a computation that nobody waits for, unless a caller with a key may return."""
        if flight.is_running and self._flights.get((key, True)) is flight:
            return
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
