"""Threads for calls that block: each kind of call has its own, and a bounded number of waiters."""

import asyncio
import math
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from ldprecover_server.errors import BusyError
from ldprecover_server.timeouts import Timeouts

T = TypeVar("T")


class ThreadPool:
    """At most `threads` calls of one kind at a time; at most `waiting` wait for their turn, each
    `seconds` at most.

    So one kind of call cannot keep another kind waiting, and while the database hangs the last of
    many does not wait for as many tries. When a caller is cancelled, its call is
    not made if it waits still; one that has begun keeps its place until it ends, so that callers
    who come and go cannot have more under way. For use in one event loop.
    """

    def __init__(self, threads: int, waiting: int = sys.maxsize, seconds: float = math.inf) -> None:
        self._deadlines = Timeouts(seconds)
        self._limiter = CapacityLimiter(threads)
        self._most = threads + waiting
        self._calls: set[asyncio.Future[Any]] = set()

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in a thread and return what it returns.

        Raises BusyError where too many wait, or its turn does not come in time, and what the
        function raises.
        """
        if len(self._calls) >= self._most:
            raise BusyError(f"{len(self._calls)} calls of this kind are here already")
        begun = late = False

        def call() -> T:
            nonlocal begun
            begun = True
            return function(*arguments)

        made = asyncio.ensure_future(to_thread.run_sync(call, limiter=self._limiter))
        self._calls.add(made)
        made.add_done_callback(self._ended)

        def expire() -> None:
            nonlocal late
            if not begun:
                late = True
                made.cancel()

        deadline = self._deadlines.add(expire)
        try:
            return await asyncio.shield(made)
        except asyncio.CancelledError:
            if not begun:
                made.cancel()
            caller = asyncio.current_task()
            if late and caller is not None and not caller.cancelling():
                raise BusyError(
                    f"its turn has not come in {self._deadlines.seconds:g} seconds"
                ) from None
            raise
        finally:
            self._deadlines.remove(deadline)

    def _ended(self, made: asyncio.Future[Any]) -> None:
        self._calls.discard(made)
        if not made.cancelled():
            made.exception()  # whoever asked may have gone

    async def drain(self, seconds: float) -> None:
        """Wait until no call is under way, at most so long."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=seconds)
