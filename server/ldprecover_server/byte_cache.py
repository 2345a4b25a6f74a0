"""A cache that is bounded by the bytes of its values."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class ByteCache(Generic[K]):
    """The values used last, of at most `max_bytes` together. For use from any thread."""

    def __init__(self, max_bytes: int) -> None:
        self._free = max_bytes
        self._values: OrderedDict[K, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> bytes | None:
        """Return a value and mark it as used; None if it is not cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def add(self, key: K, value: bytes) -> None:
        """Add or replace a value; evict those unused for longest above the limit."""
        with self._lock:
            self._free += len(self._values.pop(key, b"")) - len(value)
            self._values[key] = value
            while self._free < 0:
                self._free += len(self._values.popitem(last=False)[1])
