"""Many things that each must end within the same time, under one timer."""

import asyncio
from collections.abc import Callable

_SWEEP = 1.0


class Timeouts:
    """Calls back for what has not ended within `seconds`, up to one second late; for use in one
    event loop.

    A timer for each request would cost more than reading it.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._every = min(seconds, _SWEEP)
        self._due: dict[int, tuple[float, Callable[[], None]]] = {}  # in order of their time
        self._number = 0
        self._sweeping = False
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop, remembered: asking which one runs costs a system call."""
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
            self._sweeping = False
        return self._loop

    def add(self, expire: Callable[[], None]) -> int:
        """Call `expire` unless `remove` is called in time with the number returned."""
        loop = self.loop
        self._number += 1
        self._due[self._number] = (loop.time() + self.seconds, expire)
        if not self._sweeping:
            self._sweeping = True
            loop.call_later(self._every, self._sweep)
        return self._number

    def oldest(self) -> tuple[float, Callable[[], None]] | None:
        """Return when the one was added that is there for longest, and what ends it; None for
        none.
        """
        for due, expire in self._due.values():
            return due - self.seconds, expire
        return None

    def remove(self, number: int) -> None:
        """Forget what has ended."""
        self._due.pop(number, None)

    def _sweep(self) -> None:
        now = self.loop.time()
        while self._due:
            number, (due, expire) = next(iter(self._due.items()))
            if due > now:
                break
            del self._due[number]
            expire()
        self._sweeping = bool(self._due)
        if self._sweeping:
            self.loop.call_later(self._every, self._sweep)
