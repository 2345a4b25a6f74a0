"""Admission to the workers: a bounded queue, in turn by round and caller, keys first."""

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from ldprecover_server.errors import AnalysesBusyError

NO_ROOM = "too many newer analyses of this kind are queued"
_MAX_REMEMBERED = 1000
_QUIET_SECONDS = 2.0


@dataclass(eq=False)
class _Waiter:
    keyed: bool
    group: Hashable
    is_admitted: "asyncio.Future[bool]" = field(default_factory=asyncio.Future)
    """False for a waiter that made room for another."""


class AdmissionQueue:
    """A fixed number of places, and a queue of at most `waiting` callers; for one event loop.

    Callers without a key take all places but one, if there is more than one, and half the queue. So
    they delay a caller with a key by one of their analyses at most.

    The group that was served longest ago, or never, is next. Of its callers with a key the first is
    next, of those without one the last. If their half of the queue is full, the oldest of the
    largest group makes room. Otherwise one anonymous caller could queue for all places, and nothing
    distinguishes that caller from the others.

    The server's own work takes a place that no caller could take, and releases it when a caller
    `needs_place`. It takes the last free place only `quiet_seconds` after the last caller who could
    take it again, because a release costs a process.
    """

    def __init__(self, places: int, waiting: int, quiet_seconds: float = _QUIET_SECONDS) -> None:
        self._places = places
        # By whether the caller has a key.
        self._max_running = {True: places, False: max(1, places - 1)}
        self._max_waiting = {True: waiting, False: max(1, waiting // 2)}
        self._running = {True: 0, False: 0}
        self._running_own = 0
        self._quiet_seconds = quiet_seconds
        self._released_at = -math.inf
        """When a caller released a place that another such caller could take."""
        self._changed = asyncio.Event()
        """Set when a place was released, or a caller left the queue."""
        self._queues: dict[bool, list[_Waiter]] = {True: [], False: []}
        self._served: dict[Hashable, int] = {}
        """The number of the turn in which a group was served last."""

    @property
    def running(self) -> int:
        """The number of places taken."""
        return sum(self._running.values()) + self._running_own

    @property
    def waiting(self) -> int:
        """The number of callers in the queue."""
        return sum(map(len, self._queues.values()))

    @property
    def needs_place(self) -> bool:
        """Whether a caller waits for nothing but a free place."""
        return any(
            queue and self._running[kind] < self._max_running[kind]
            for kind, queue in self._queues.items()
        )

    async def acquire_own(self) -> None:
        """Take a place for the server's own work, when no caller could take it."""
        loop = asyncio.get_running_loop()
        while True:
            seconds: float | None = None
            if not self.needs_place and self.running < self._places:
                is_last = self.running + 1 == self._places
                seconds = self._released_at + self._quiet_seconds - loop.time()
                if seconds <= 0 or not is_last:
                    break
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
        self._running_own += 1

    def release_own(self) -> None:
        """Release the place of the server's own work, and admit the next caller."""
        self._running_own -= 1
        self._admit()

    async def acquire(self, *, keyed: bool, seconds: float, group: Hashable = None) -> None:
        """Take a place. Raises AnalysesBusyError if the queue is full, or after `seconds`."""
        queue = self._queues[keyed]
        if not queue and self._is_free(keyed) and (keyed or not self._queues[True]):
            self._take(keyed, group)
            return
        if not keyed and len(queue) >= self._max_waiting[False]:
            sizes = Counter(waiter.group for waiter in queue)
            oldest = max(queue, key=lambda waiter: sizes[waiter.group])  # the first of them
            queue.remove(oldest)
            oldest.is_admitted.set_result(False)
        if len(queue) >= self._max_waiting[keyed] or self.waiting >= self._max_waiting[True]:
            raise AnalysesBusyError(f"{self.waiting} analyses are queued, which is the limit")
        waiter = _Waiter(keyed, group)
        queue.append(waiter)
        try:
            await asyncio.wait([waiter.is_admitted], timeout=seconds)
            if not waiter.is_admitted.done():
                raise AnalysesBusyError(f"no worker was free in {seconds:g} seconds")
        except BaseException:
            if waiter in queue:
                queue.remove(waiter)
                self._changed.set()
            elif waiter.is_admitted.result():  # the place and the cancellation arrived together
                self.release(keyed=keyed)
            raise
        if not waiter.is_admitted.result():
            raise AnalysesBusyError(NO_ROOM)

    def release(self, *, keyed: bool) -> None:
        """Release the place of such a caller, and admit the next one."""
        self._running[keyed] -= 1
        self._admit()
        if self._running[keyed] < self._max_running[keyed]:
            self._released_at = asyncio.get_running_loop().time()

    def _admit(self) -> None:
        for kind, queue in self._queues.items():
            while queue and self._is_free(kind):
                order = queue if kind else queue[::-1]
                waiter = min(order, key=lambda waiter: self._served.get(waiter.group, 0))
                queue.remove(waiter)
                self._take(kind, waiter.group)
                waiter.is_admitted.set_result(True)
        self._changed.set()

    def _is_free(self, keyed: bool) -> bool:
        return self.running < self._places and self._running[keyed] < self._max_running[keyed]

    def _take(self, keyed: bool, group: Hashable) -> None:
        self._running[keyed] += 1
        if len(self._served) >= _MAX_REMEMBERED:
            self._served.clear()
        turn = max(self._served.values(), default=0) + 1
        self._served[group] = turn
