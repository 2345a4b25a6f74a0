"""A budget of memory that many requests share."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ldprecover_server.errors import BusyError


class MemoryBudget:
    """At most `limit` bytes reserved at a time. For use from any thread."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reserved = 0
        self._lock = threading.Lock()

    def reserve(self, n: int) -> bool:
        """Reserve `n` bytes; return False if there is no room."""
        with self._lock:
            if self.reserved + n > self.limit:
                return False
            self.reserved += n
            return True

    def release(self, n: int) -> None:
        """Release reserved bytes."""
        with self._lock:
            self.reserved -= n

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
