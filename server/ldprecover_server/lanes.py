"""Threads for calls that block: each kind of call has its own, and a bounded number of waiters."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from ldprecover_server.errors import BusyError

__all__ = ["Lane"]

T = TypeVar("T")


class Lane:
    """At most `threads` calls of one kind at a time, and at most `waiting` that wait for their turn.

    So one kind of call cannot keep another kind waiting. When a caller is cancelled, its call is
    not made if it waits still; one that has begun keeps its place until it ends, so that callers
    who come and go cannot have more under way. For use in one event loop.
    """

    def __init__(self, threads: int, waiting: int = sys.maxsize) -> None:
        self._limiter = CapacityLimiter(threads)
        self._most = threads + waiting
        self._calls: set[asyncio.Future[Any]] = set()

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in a thread and return what it returns.

        Raises BusyError where too many wait, and what the function raises.
        """
        if len(self._calls) >= self._most:
            raise BusyError(f"{len(self._calls)} calls of this kind are here already")
        begun = False

        def call() -> T:
            nonlocal begun
            begun = True
            return function(*arguments)

        made = asyncio.ensure_future(to_thread.run_sync(call, limiter=self._limiter))
        self._calls.add(made)
        made.add_done_callback(self._ended)
        try:
            return await asyncio.shield(made)
        except asyncio.CancelledError:
            if not begun:
                made.cancel()
            raise

    def _ended(self, made: asyncio.Future[Any]) -> None:
        self._calls.discard(made)
        if not made.cancelled():
            made.exception()  # whoever asked may have gone

    async def drain(self, seconds: float) -> None:
        """Wait until no call is under way, at most so long."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=seconds)
