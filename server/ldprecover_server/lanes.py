"""Threads for calls that wait for the database: each kind of call has its own, and a bounded number of waiters."""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from ldprecover_server.errors import BusyError

__all__ = ["Lane"]

T = TypeVar("T")


class Lane:
    """At most `threads` calls of one kind at a time, and at most `waiting` that wait for their turn.

    So one kind of call cannot keep another kind waiting. A call that finds the lane full is refused. For use in one
    event loop.
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self._limiter = CapacityLimiter(threads)
        self._most = threads + waiting
        self._here = 0

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in a thread and return what it returns. Raises BusyError, and what the function raises."""
        return await self._run(function, arguments, leaves=False)

    async def run_or_leave(self, function: Callable[..., T], *arguments: object) -> T:
        """As `run`; but a caller that is cancelled does not wait for the function to end."""
        return await self._run(function, arguments, leaves=True)

    async def _run(self, function: Callable[..., T], arguments: tuple[object, ...], *, leaves: bool) -> T:
        if self._here >= self._most:
            raise BusyError(f"{self._here} calls of this kind wait already")
        self._here += 1
        try:
            return await to_thread.run_sync(function, *arguments, limiter=self._limiter, abandon_on_cancel=leaves)
        finally:
            self._here -= 1
