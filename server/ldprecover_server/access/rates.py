"""The limit on the reports of an access key per second, in each process."""

import time
from collections.abc import Callable

from ldprecover_server.errors import RateLimitedError


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
