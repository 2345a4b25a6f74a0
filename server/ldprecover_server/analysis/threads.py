"""Short calls that block, in a few threads, of which a caller who goes frees none too early."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

__all__ = ["Threads"]

T = TypeVar("T")


class Threads:
    """At most `count` calls at once; for one event loop.

    When a caller is cancelled, its call is not made if it waits still; one that has begun keeps its place until it
    ends, so that callers who come and go cannot have more than `count` under way.
    """

    def __init__(self, count: int) -> None:
        self._limiter = CapacityLimiter(count)
        self._calls: set[asyncio.Future[Any]] = set()

    async def run(self, call: Callable[[], T]) -> T:
        """Return what `call` returns; raise what it raises."""
        begun = False

        def make() -> T:
            nonlocal begun
            begun = True
            return call()

        made = asyncio.ensure_future(to_thread.run_sync(make, limiter=self._limiter))
        self._calls.add(made)
        made.add_done_callback(self._calls.discard)
        try:
            return await asyncio.shield(made)
        except asyncio.CancelledError:
            if not begun:
                made.cancel()
            raise

    async def drain(self, seconds: float) -> None:
        """Wait until no call is under way, at most so long."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=seconds)
