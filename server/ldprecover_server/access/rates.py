"""How many reports a second a key may bring: a token bucket for each, in each process."""

import time
from collections.abc import Callable

from ldprecover_server.errors import RateLimitedError

__all__ = ["ReportLimits"]


class ReportLimits:
    """Token buckets by key: each holds `burst` reports, and `rate` more come in each second.

    A submission takes as many tokens as it has reports, or is refused and takes none. One that is larger
    than the burst is taken when the bucket is full, and the next waits until it is paid for: over
    time no key brings more than `rate`. For use in one event loop.

    Of a bucket only the moment is kept at which it will be full again, so it costs one number a key
    that was ever used, and nothing has to be refilled.
    """

    def __init__(self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
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
                f"this key may bring {rate:g} reports a second to this process, and {self._burst} at once; nothing "
                f"of this submission was stored: send it again in {wait:.3g} seconds",
                wait,
            )
        self._full_at[key] = full_at + reports * self._seconds
