"""Limits on the reports of an access key, and on the refusals of an address, in each process."""

import time
from collections.abc import Callable
from ipaddress import ip_address

from ldprecover_server.errors import RateLimitedError
from ldprecover_server.limits import Cache

_BUCKETS = 100_000
"""Keys or addresses whose buckets are stored: those used last."""


class TokenBuckets:
    """Token buckets by key: each holds `burst` tokens and gains `rate` a second.

    For use in one event loop. A bucket is stored as the time when it will be full again: one float
    per key, no refill task.
    """

    def __init__(
        self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = 1 / rate
        self._burst = burst
        self._clock = clock
        self._full_at: Cache[bytes, float] = Cache(_BUCKETS, lambda full_at: 1)

    def wait(self, key: bytes, tokens: int) -> float:
        """Take tokens from a key's bucket and return 0, or the seconds until it has them.

        More than the burst need a full bucket, and the next wait until the debt is paid, so that no
        key exceeds `rate` over time.
        """
        now = self._clock()
        full_at = max(self._full_at.get(key) or now, now)
        wait = full_at - now - max(self._burst - tokens, 0) * self._seconds
        if wait > 0:
            return wait
        self._full_at.add(key, full_at + tokens * self._seconds)
        return 0.0


class ReportRates(TokenBuckets):
    """The reports of each key: a submission takes one token a report, or is rejected."""

    def take(self, key: bytes, reports: int) -> None:
        """Take tokens for reports from a key's bucket. Raises RateLimitedError."""
        if (wait := self.wait(key, reports)) > 0:
            rate = 1 / self._seconds
            raise RateLimitedError(
                f"this key may send {rate:g} reports a second to this process, with bursts of "
                f"{self._burst}; nothing of this submission was stored: send it again in "
                f"{wait:.3g} seconds",
                wait,
            )


class RefusalRates(TokenBuckets):
    """The wrong keys and tickets of each IPv4 address or IPv6 /64."""

    def take(self, address: str) -> None:
        """Count a refusal. Raises RateLimitedError, which is to be answered in its place."""
        try:
            network = ip_address(address).packed[:8]
        except ValueError:  # of a caller past the proxy
            network = b""
        if (wait := self.wait(network, 1)) > 0:
            raise RateLimitedError("this address sends too many wrong keys and tickets", wait)
