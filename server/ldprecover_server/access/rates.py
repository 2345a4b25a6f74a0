"""How fast a key may bring reports, and how often a submission key may come with other bytes; in
each process.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from ldprecover_server.errors import RateLimitedError, WrongTriesError

Place = tuple[int, bytes]
"""A round's place in the order of opening, and a submission key in it, hashed."""

_FREE_TRIES = 5
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 86_400.0  # seconds


class ReportRates:
    """Token buckets by key: each holds `burst` reports, and `rate` more come in each second.

    A submission takes as many tokens as it has reports, or is refused and takes none. One that is
    larger than the burst is taken when the bucket is full, and the next waits until it is paid for:
    over time no key brings more than `rate`. For use in one event loop.

    Of a bucket only the moment is kept at which it will be full again, so it costs one number a key
    that was ever used, and nothing has to be refilled.
    """

    def __init__(
        self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = 1 / rate
        self._burst = burst
        self._clock = clock
        self._full_at: dict[bytes, float] = {}

    def take(self, key: bytes, reports: int) -> None:
        """Take tokens for this many reports from a key's bucket. Raises RateLimitedError."""
        now = self._clock()
        full_at = max(self._full_at.get(key, now), now)
        wait = full_at - now - max(self._burst - reports, 0) * self._seconds
        if wait > 0:
            rate = 1 / self._seconds
            raise RateLimitedError(
                f"this key may bring {rate:g} reports a second to this process, and {self._burst} "
                "at once; nothing "
                f"of this submission was stored: send it again in {wait:.3g} seconds",
                wait,
            )
        self._full_at[key] = full_at + reports * self._seconds


class WrongTries:
    """How often stored submissions' keys have come with other bytes.

    A closed round still tells a submission's retry from other bytes under its key, so whoever knows
    the key, or the ticket, could find a report by trying. After five wrong tries each costs a wait,
    of one second and then of twice the last one, up to a day, in which the key is not taken with
    any bytes. At most `most` keys are remembered, the last ones. For use in one event loop.
    """

    def __init__(self, most: int = 100_000, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._tries: OrderedDict[Place, tuple[int, float]] = (
            OrderedDict()
        )  # how many, and when it may come
        self._under_way: dict[
            Place, deque[asyncio.Future[None]] | None
        ] = {}  # with those that wait for their turn

    async def begin(self, place: Place) -> None:
        """Wait until no other submission under this key is on its way; many tries at once would be
        as good as in turn.

        Raises WrongTriesError where the key has to wait for longer.
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
                if not turn.cancelled():  # the turn came as the caller went
                    self.end(place)
                raise
        if self._tries and (wait := self._tries.get(place, (0, 0.0))[1] - self._clock()) > 0:
            self.end(place)
            raise WrongTriesError(
                f"this key or ticket came with other bytes before; it may come again in {wait:.3g} "
                "seconds",
                wait,
            )

    def end(self, place: Place) -> None:
        """Note that a submission has had its answer: the one that came next has its turn, and wakes
        no other.
        """
        waiting = self._under_way[place]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._under_way[place]

    def count(self, place: Place) -> None:
        """Count a wrong try."""
        tries = self._tries.pop(place, (0, 0.0))[0] + 1
        wait = (
            min(_FIRST_WAIT * 2.0 ** min(tries - _FREE_TRIES - 1, 20), _LONGEST_WAIT)
            if tries > _FREE_TRIES
            else 0
        )
        self._tries[place] = tries, self._clock() + wait
        if len(self._tries) > self._most:
            self._tries.popitem(last=False)
