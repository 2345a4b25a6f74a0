"""Bounded thread pools (bulkheads), and blocking calls whose result many callers share."""

import asyncio
import math
import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from anyio import CapacityLimiter, to_thread

from ldprecover_server.errors import BusyError

T = TypeVar("T")


class ThreadPool:
    """At most `threads` calls run at a time, and at most `waiting` wait, each up to `seconds`.

    So one kind of call cannot delay another kind, and while the database hangs, callers get an
    error after `seconds`. A cancelled caller leaves the queue. A call that runs keeps its thread
    until it returns, even if its caller is cancelled: Python cannot stop a thread, and clients that
    disconnect and retry could otherwise run any number of calls. For use in one event loop.
    """

    def __init__(
        self, threads: int, waiting: int = sys.maxsize, seconds: float | None = None
    ) -> None:
        self._seconds = seconds
        self._limit = threads + waiting
        self._free = asyncio.Semaphore(threads)
        self._waiting = 0
        self._running: set[asyncio.Future[Any]] = set()

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in a thread and return its result.

        Raises BusyError if the queue is full or no thread is free in time, and any error of the
        function; SystemExit and KeyboardInterrupt, which would end the server, as RuntimeError.
        """
        calls = self._waiting + len(self._running)
        if calls >= self._limit:
            raise BusyError(f"{calls} calls of this kind run or wait, which is the limit")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise BusyError(f"no thread was free in {self._seconds:g} seconds") from None
        finally:
            self._waiting -= 1
        # The semaphore bounds the threads. anyio's limiter alone would not: it counts a call as
        # ended when its caller is cancelled.
        call = asyncio.ensure_future(
            to_thread.run_sync(function, *arguments, limiter=CapacityLimiter(1))
        )
        self._running.add(call)
        call.add_done_callback(self._end)
        return await asyncio.shield(call)

    def _end(self, call: asyncio.Future[Any]) -> None:
        self._running.discard(call)
        self._free.release()
        if not call.cancelled():
            call.exception()  # the caller may be gone; asyncio would log it as never retrieved

    async def drain(self, seconds: float) -> None:
        """Wait until no call runs, at most `seconds`."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)


class SharedCall(Generic[T]):
    """A blocking call whose result is shared by all who ask meanwhile, or `seconds` after its end.

    So any number of callers take one thread. For use in one event loop.
    """

    def __init__(self, function: Callable[[], T], seconds: float) -> None:
        self.seconds = seconds
        self._function = function
        self._pool = ThreadPool(1)
        self._call: asyncio.Future[T] | None = None
        self._ended_at = 0.0

    async def result(self) -> T:
        """Return the result. Raises what the function raises."""
        loop = asyncio.get_running_loop()
        if self._call is None or (
            self._call.done() and loop.time() >= self._ended_at + self.seconds
        ):
            self._ended_at = math.inf  # callbacks run a turn after the end
            self._call = asyncio.ensure_future(self._pool.run(self._function))
            self._call.add_done_callback(self._end)
        return await asyncio.shield(self._call)

    def _end(self, call: asyncio.Future[T]) -> None:
        self._ended_at = call.get_loop().time()
        if not call.cancelled():
            call.exception()  # the callers may be gone; asyncio would log it as never retrieved

    async def drain(self, seconds: float) -> None:
        """Wait until the call does not run, at most `seconds`."""
        await self._pool.drain(seconds)
