"""A budget of memory that many requests share."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from ldprecover_server.errors import BusyError

_NO_SHARES: Mapping[str, int] = MappingProxyType({})


class MemoryBudget:
    """At most `limit` bytes reserved at a time, of which each class of requests has a share.

    A reservation names the bytes that count against each share:

        budget = MemoryBudget(1000, anonymous=0.75)
        budget.reserve(800, {"anonymous": 800})  # False: the share is 750 bytes
        budget.reserve(800)  # True

    For use from any thread.
    """

    def __init__(self, limit: int, **shares: float) -> None:
        self.limit = limit
        self.reserved = 0
        self._limits = {share: int(limit * part) for share, part in shares.items()}
        self._reserved = dict.fromkeys(shares, 0)
        self._lock = threading.Lock()

    def reserve(self, n: int, shares: Mapping[str, int] = _NO_SHARES) -> bool:
        """Reserve `n` bytes, and count bytes against shares; return False if there is no room."""
        with self._lock:
            if self.reserved + n > self.limit:
                return False
            for share, count in shares.items():
                if self._reserved[share] + count > self._limits[share]:
                    return False
            for share, count in shares.items():
                self._reserved[share] += count
            self.reserved += n
            return True

    def release(self, n: int, shares: Mapping[str, int] = _NO_SHARES) -> None:
        """Release reserved bytes."""
        with self._lock:
            self.reserved -= n
            for share, count in shares.items():
                self._reserved[share] -= count

    @contextmanager
    def hold(self, n: int) -> Iterator[None]:
        """Reserve `n` bytes inside the `with` block. Raises BusyError if there is no room."""
        if not self.reserve(n):
            raise BusyError(
                f"requests in progress use the {self.limit} bytes of memory for them; retry later, "
                "or send a smaller request"
            )
        try:
            yield
        finally:
            self.release(n)
