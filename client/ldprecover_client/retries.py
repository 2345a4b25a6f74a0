"""Retries: whether a request is sent again after its outcome, and after how many seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from ldprecover_client._httpx import httpx
from ldprecover_client.calls import Call, HttpResponse, problem_in
from ldprecover_client.errors import ArgumentError, UnansweredError

_MAX_DOUBLINGS = 62  # base * 2.0**62 is past any `longest`, and is still a finite float
_UNPROCESSED = (408, 429)
"""The server did nothing: the request came too slowly, or too many came."""
_AFTER_WORK = (500, 504)
"""The work may have been done in full, and then failed or timed out."""
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)

Outcome = HttpResponse | httpx.TransportError
"""The result of sending a request once."""


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


INTERACTIVE = Retries(attempts=4, base=0.2, longest=5.0, total=15.0)
"""Retries for a person who waits: they give up after 15 seconds."""


@dataclass(kw_only=True)
class Backoff:
    """Counts the failures of one request against a policy. Does no I/O."""

    policy: Retries
    start: float
    """The time of the first send."""
    clock: Callable[[], float]
    draw: Callable[[], float]
    """Returns a random number in [0, 1)."""
    failures: int = 0
    in_doubt: bool = False
    """Whether the server may have processed a send that failed."""

    def after_failure(self, retry_after: float | None = None) -> float | None:
        """Return the seconds to wait before the next send, or None to give up."""
        delay = self.policy.delay(self.failures, retry_after, self.draw())
        self.failures += 1
        if self.failures >= self.policy.attempts:
            return None
        if self.clock() - self.start + delay > self.policy.total:
            return None
        if self.policy.on_wait is not None:
            self.policy.on_wait(delay)
        return delay

    def pause(self, url: str, call: Call[Any], outcome: Outcome) -> float | None:
        """Return the seconds until the next send, or None if this response is final.

        Raises UnansweredError to give up.
        """
        if isinstance(outcome, httpx.TransportError):
            never_sent = isinstance(outcome, _NEVER_SENT)
            self.in_doubt |= not never_sent
            # An analysis that timed out once would time out again.
            is_futile = call.is_analysis and isinstance(outcome, httpx.ReadTimeout)
            may_repeat = never_sent or (call.repeatable and not is_futile)
            if may_repeat and (delay := self.after_failure()) is not None:
                return delay
            raise UnansweredError(
                f"{url} does not answer ({call}): {str(outcome) or type(outcome).__name__}",
                in_doubt=self.in_doubt,
            ) from outcome
        status = outcome.status
        if not is_transient(status) or not (call.repeatable or status in _UNPROCESSED):
            return None
        problem = problem_in(outcome)
        # An analysis that failed or timed out would do so again. A response without a problem is
        # from a proxy, which knows nothing of the analysis.
        is_futile = call.is_analysis and status in _AFTER_WORK
        if is_futile and problem is not None:
            return None
        # An operator has to restart the server, which takes longer than all retries.
        is_futile |= problem is not None and problem.slug == "plugin-not-loaded"
        self.in_doubt |= status not in _UNPROCESSED
        headers = outcome.headers
        retry_after = retry_after_seconds(headers.get("retry-after"), headers.get("date"))
        delay = self.after_failure(retry_after)
        if delay is None or is_futile:
            times = "once" if self.failures == 1 else f"{self.failures} times"
            wait = f"; it asks to come back in {retry_after:.0f} s" if retry_after else ""
            raise UnansweredError(
                f"{url} answered {status} to {call}, {times} "
                f"({problem or 'no reason given'}){wait}",
                status,
                retry_after,
                in_doubt=self.in_doubt,
            )
        return delay


def is_transient(status: int) -> bool:
    """Return whether a later try may succeed: 408, 429, or 5xx except 501 and 505.

    507, a full disk, is transient: the operator frees space, and no other server has the report.
    """
    return status in _UNPROCESSED or (500 <= status < 600 and status not in (501, 505))


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
