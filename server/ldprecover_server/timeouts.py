"""Timeouts of many operations under one timer."""

import asyncio
from collections.abc import Callable

_SWEEP_SECONDS = 1.0
"""The longest delay of a timeout."""


class Timeouts:
    """Calls back for each operation that does not end within `seconds`, at most one second late.

    A timer of the event loop for each request would cost more than reading the request. For use in
    one event loop.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._interval = min(seconds, _SWEEP_SECONDS)
        self._pending: dict[int, tuple[float, Callable[[], None]]] = {}  # by due time
        self._number = 0
        self._is_sweeping = False
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop, cached: `get_running_loop` costs a system call (getpid)."""
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
            self._is_sweeping = False
        return self._loop

    def add(self, on_timeout: Callable[[], None]) -> int:
        """Call `on_timeout` after `seconds`, unless `remove` is called with the returned number."""
        loop = self.loop
        self._number += 1
        self._pending[self._number] = (loop.time() + self.seconds, on_timeout)
        if not self._is_sweeping:
            self._is_sweeping = True
            loop.call_later(self._interval, self._sweep)
        return self._number

    def remove(self, number: int) -> None:
        """Remove an operation that has ended."""
        self._pending.pop(number, None)

    def _sweep(self) -> None:
        now = self.loop.time()
        while self._pending:
            number, (due, on_timeout) = next(iter(self._pending.items()))
            if due > now:
                break
            del self._pending[number]
            on_timeout()
        self._is_sweeping = bool(self._pending)
        if self._is_sweeping:
            self.loop.call_later(self._interval, self._sweep)
