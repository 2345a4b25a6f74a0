"""Who is next: a fixed number of places, and callers with a key before those without."""

import asyncio
from collections import deque

from ldprecover_server.errors import AnalysesBusyError


class AdmissionQueue:
    """`places` that are taken and given back, and a queue of at most `waiting` callers; for one
    event loop.

    Callers without a key have all places but one, where there is more than one, and half the queue,
    so that they keep no key holder waiting for longer than one of their own turns.
    """

    def __init__(self, places: int, waiting: int) -> None:
        self._places = places
        self._most_running = {True: places, False: max(1, places - 1)}
        self._most_waiting = {True: waiting, False: max(1, waiting // 2)}
        self._running = {True: 0, False: 0}
        self._waiting: dict[bool, deque[asyncio.Future[None]]] = {True: deque(), False: deque()}

    @property
    def running(self) -> int:
        """Places that are taken."""
        return sum(self._running.values())

    @property
    def waiting(self) -> int:
        """Callers in the queue."""
        return sum(map(len, self._waiting.values()))

    async def take(self, *, keyed: bool, seconds: float) -> None:
        """Take a place, waiting for it in order. Raises AnalysesBusyError with a full queue, or
        after `seconds`.
        """
        mine = self._waiting[keyed]
        if not mine and self._is_free(keyed) and not (self._waiting[True] and not keyed):
            self._running[keyed] += 1
            return
        if len(mine) >= self._most_waiting[keyed] or self.waiting >= self._most_waiting[True]:
            raise AnalysesBusyError(
                f"{self.waiting} analyses wait for their turn, which is all that may"
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        mine.append(turn)
        try:
            await asyncio.wait([turn], timeout=seconds)
            if not turn.done():
                raise AnalysesBusyError(f"other analyses have taken all of {seconds:g} seconds")
        except BaseException:
            if turn.done():  # the turn came as the caller went
                self.give_back(keyed=keyed)
            else:
                mine.remove(turn)
            raise

    def give_back(self, *, keyed: bool) -> None:
        """Give the place of such a caller back: the next one has it."""
        self._running[keyed] -= 1
        for kind in (True, False):
            while self._waiting[kind] and self._is_free(kind):
                self._running[kind] += 1
                self._waiting[kind].popleft().set_result(None)

    def _is_free(self, keyed: bool) -> bool:
        return self.running < self._places and self._running[keyed] < self._most_running[keyed]
