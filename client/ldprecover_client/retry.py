"""When to send again, and when to give up: exponential back-off with full jitter, Retry-After
honoured.
"""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from ldprecover_client.errors import ArgumentError

_PERMANENT = {501, 505}
_AFTER_WORK = {500, 504}


def is_passing(status: int) -> bool:
    """Return whether an answer says "not now": 408, 429 or 5xx, but what a server can never do
    (501, 505).

    507, a full disk, is among them: space comes back, and the report is in nobody else's hands.
    """
    return never_taken(status) or (500 <= status < 600 and status not in _PERMANENT)


def never_taken(status: int) -> bool:
    """Return whether a passing answer says that nothing was done: 408, too slowly sent, or 429, too
    many.
    """
    return status in (408, 429)


def may_have_cost_all(status: int) -> bool:
    """Return whether an answer may come after all the work on a call: 500, it failed, or 504, its
    time was up.
    """
    return status in _AFTER_WORK


def retry_after_seconds(value: str | None, date: str | None = None) -> float | None:
    """Return the seconds a Retry-After header asks to wait, None where it is absent or says
    nothing.

    An HTTP date counts from the answer's own `Date`, so that the user's clock need not be right.
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
    """How persistent to be: at most `attempts` sends, `longest` seconds between two, `total`
    seconds in all.

    Before the i-th retry the wait is uniform from 0 to min(longest, base * 2^i) ("full jitter"),
    after what the server asked for in Retry-After, which counts up to `longest`. The defaults ride
    out a server's restart and end within two minutes and one request. `on_wait` is called with the
    seconds before each wait, in the thread that waits. Raises ArgumentError.
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

    def delay(self, retry: int, asked: float | None, draw: float) -> float:
        """Return the wait before retry 0, 1, ...; `draw` is uniform in [0, 1), `asked` the
        Retry-After.
        """
        return min(asked or 0.0, self.longest) + draw * min(
            self.longest, self.base * 2.0 ** min(retry, 62)
        )


class Backoff:
    """The retries of one request: counts its failures against the policy. Knows no I/O."""

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
        """Whether a send may have been taken although nothing said so."""

    def after_failure(self, asked: float | None = None) -> float | None:
        """Return the seconds to wait before the next send, or None to give up."""
        delay = self._policy.delay(self.failures, asked, self._draw())
        self.failures += 1
        if self.failures >= self._policy.attempts:
            return None
        if self._clock() - self._start + delay > self._policy.total:
            return None
        if self._policy.on_wait is not None:
            self._policy.on_wait(delay)
        return delay
