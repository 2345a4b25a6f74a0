"""Admission to the workers: a bounded queue with priority for callers with a key."""

import asyncio
from collections import deque

from ldprecover_server.errors import AnalysesBusyError


class AdmissionQueue:
    """A fixed number of places, and a queue of at most `waiting` callers; for one event loop.

    Callers without a key take all places but one, if there is more than one, and half the queue. So
    they delay a caller with a key by one of their analyses at most.
    """

    def __init__(self, places: int, waiting: int) -> None:
        self._places = places
        # By whether the caller has a key.
        self._max_running = {True: places, False: max(1, places - 1)}
        self._max_waiting = {True: waiting, False: max(1, waiting // 2)}
        self._running = {True: 0, False: 0}
        self._queues: dict[bool, deque[asyncio.Future[None]]] = {True: deque(), False: deque()}

    @property
    def running(self) -> int:
        """The number of places taken."""
        return sum(self._running.values())

    @property
    def waiting(self) -> int:
        """The number of callers in the queue."""
        return sum(map(len, self._queues.values()))

    async def acquire(self, *, keyed: bool, seconds: float) -> None:
        """Take a place. Raises AnalysesBusyError if the queue is full, or after `seconds`."""
        queue = self._queues[keyed]
        if not queue and self._is_free(keyed) and (keyed or not self._queues[True]):
            self._running[keyed] += 1
            return
        if len(queue) >= self._max_waiting[keyed] or self.waiting >= self._max_waiting[True]:
            raise AnalysesBusyError(f"{self.waiting} analyses are queued, which is the limit")
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(admitted)
        try:
            await asyncio.wait([admitted], timeout=seconds)
            if not admitted.done():
                raise AnalysesBusyError(f"no worker was free in {seconds:g} seconds")
        except BaseException:
            if admitted.done():  # the place and the cancellation arrived together
                self.release(keyed=keyed)
            else:
                queue.remove(admitted)
            raise

    def release(self, *, keyed: bool) -> None:
        """Release the place of such a caller, and admit the next one."""
        self._running[keyed] -= 1
        for kind in (True, False):
            while self._queues[kind] and self._is_free(kind):
                self._running[kind] += 1
                self._queues[kind].popleft().set_result(None)

    def _is_free(self, keyed: bool) -> bool:
        return self.running < self._places and self._running[keyed] < self._max_running[keyed]
