"""Retry policy: exponential back-off with full jitter that honours Retry-After."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from ldprecover_client.errors import ArgumentError

_PERMANENT = {501, 505}
_AFTER_WORK = {500, 504}
_MAX_DOUBLINGS = 62  # base * 2.0**62 is past any `longest`, and is still a finite float


def is_transient(status: int) -> bool:
    """Return whether a later try may succeed: 408, 429, or 5xx except 501 and 505.

    507, a full disk, is transient: the operator frees space, and no other server has the report.
    """
    return is_unprocessed(status) or (500 <= status < 600 and status not in _PERMANENT)


def is_unprocessed(status: int) -> bool:
    """Return whether the server did nothing: 408, sent too slowly, or 429, too many requests."""
    return status in (408, 429)


def may_follow_work(status: int) -> bool:
    """Return whether the call's work may have been done in full: 500, failed, or 504, timed out."""
    return status in _AFTER_WORK


def retry_after_seconds(value: str | None, date: str | None = None) -> float | None:
    """Return the seconds of a Retry-After header, None if it is absent or malformed.

    An HTTP date counts from the response's own `Date`, so the user's clock may be wrong.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdecimal():
        return float(text) if len(text) <= 9 else math.inf
    try:
        until = parsedate_to_datetime(text).timestamp()
        now = parsedate_to_datetime(date).timestamp() if date else time.time()
    except (ValueError, OverflowError):
        return None
    return max(0.0, until - now)


@dataclass(frozen=True)
class Retries:
    """Retry policy: at most `attempts` sends in `total` seconds, waits of up to `longest` seconds.

    The wait before the i-th retry is Retry-After, up to `longest`, plus a uniform draw from 0 to
    min(longest, base * 2^i) ("full jitter"). The defaults outlast a server's restart and end within
    two minutes and one request. `on_wait` is called with the seconds before each wait, in the
    thread that waits. Raises ArgumentError.

        Client("http://localhost:8000", retries=Retries(attempts=3, total=10))
    """

    attempts: int = 8
    base: float = 0.5
    longest: float = 30.0
    total: float = 120.0
    on_wait: Callable[[float], object] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ArgumentError("attempts must be at least 1")
        for name in ("base", "longest", "total"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ArgumentError(f"{name} must be a number of seconds, 0 or more")

    def delay(self, retry: int, retry_after: float | None, uniform: float) -> float:
        """Return the seconds before retry 0, 1, ...; `uniform` is a random number in [0, 1)."""
        jitter = uniform * min(self.longest, self.base * 2.0 ** min(retry, _MAX_DOUBLINGS))
        return min(retry_after or 0.0, self.longest) + jitter


class Backoff:
    """Counts the failures of one request against a policy. Does no I/O."""

    def __init__(
        self,
        policy: Retries,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._draw = draw
        self._start = clock()
        self.failures = 0
        self.in_doubt = False
        """Whether the server may have processed a send that failed."""

    def after_failure(self, retry_after: float | None = None) -> float | None:
        """Return the seconds to wait before the next send, or None to give up."""
        delay = self._policy.delay(self.failures, retry_after, self._draw())
        self.failures += 1
        if self.failures >= self._policy.attempts:
            return None
        if self._clock() - self._start + delay > self._policy.total:
            return None
        if self._policy.on_wait is not None:
            self._policy.on_wait(delay)
        return delay
