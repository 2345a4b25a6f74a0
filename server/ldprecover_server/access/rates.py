"""Rate limits in each process: reports by access key, and wrong bytes by submission key."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from ldprecover_server.errors import RateLimitedError, WrongTriesError

Place = tuple[int, bytes]
"""A round's sequence number and the hash of a submission key in it."""

_FREE_ATTEMPTS = 5
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 86_400.0  # seconds


class ReportRates:
    """Token buckets by key: each holds `burst` reports and gains `rate` a second.

    A submission takes one token a report, or is rejected and takes none. One larger than the burst
    needs a full bucket, and the next waits until the debt is paid, so that no key exceeds `rate`
    over time. For use in one event loop.

    A bucket is stored as the time when it will be full again: one float per key, no refill task.
    """

    def __init__(
        self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = 1 / rate
        self._burst = burst
        self._clock = clock
        self._full_at: dict[bytes, float] = {}

    def take(self, key: bytes, reports: int) -> None:
        """Take tokens for reports from a key's bucket. Raises RateLimitedError."""
        now = self._clock()
        full_at = max(self._full_at.get(key, now), now)
        wait = full_at - now - max(self._burst - reports, 0) * self._seconds
        if wait > 0:
            rate = 1 / self._seconds
            raise RateLimitedError(
                f"this key may send {rate:g} reports a second to this process, with bursts of "
                f"{self._burst}; nothing of this submission was stored: send it again in "
                f"{wait:.3g} seconds",
                wait,
            )
        self._full_at[key] = full_at + reports * self._seconds


class WrongTries:
    """Back-off for submission keys that are sent with other bytes than those stored.

    A closed round still distinguishes a retry from other bytes, so the holder of a key or ticket
    could find its report by trying. After five wrong attempts each further one blocks the key, for
    one second and then twice as long each time, up to a day. The last `max_keys` keys are
    remembered. For use in one event loop.
    """

    def __init__(
        self, max_keys: int = 100_000, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_keys = max_keys
        self._clock = clock
        # Number of wrong attempts, and the end of the back-off.
        self._tries: OrderedDict[Place, tuple[int, float]] = OrderedDict()
        # Submissions under way, each with the queue of those after it.
        self._under_way: dict[Place, deque[asyncio.Future[None]] | None] = {}

    async def begin(self, place: Place) -> None:
        """Wait until no other submission under this key is under way.

        Otherwise parallel attempts would bypass the back-off. Raises WrongTriesError during it.
        """
        if place not in self._under_way:
            self._under_way[place] = None
        else:
            waiting = self._under_way[place]
            if waiting is None:
                waiting = self._under_way[place] = deque()
            turn = asyncio.get_running_loop().create_future()
            waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # its turn came while it was cancelled
                    self.end(place)
                raise
        if self._tries and (wait := self._tries.get(place, (0, 0.0))[1] - self._clock()) > 0:
            self.end(place)
            raise WrongTriesError(
                "this key or ticket was sent with other bytes; send it again in "
                f"{wait:.3g} seconds",
                wait,
            )

    def end(self, place: Place) -> None:
        """Let the next submission under this key begin."""
        waiting = self._under_way[place]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._under_way[place]

    def count(self, place: Place) -> None:
        """Count a wrong attempt."""
        tries = self._tries.pop(place, (0, 0.0))[0] + 1
        wait = (
            min(_FIRST_WAIT * 2.0 ** min(tries - _FREE_ATTEMPTS - 1, 20), _LONGEST_WAIT)
            if tries > _FREE_ATTEMPTS
            else 0
        )
        self._tries[place] = tries, self._clock() + wait
        if len(self._tries) > self._max_keys:
            self._tries.popitem(last=False)
