"""The limit on open connections of a process, which evicts the slowest one."""

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Protocol

from ldprecover_server.http.edge import limits


class LimitedConnection(Protocol):
    """A connection that can be evicted."""

    loop: asyncio.AbstractEventLoop

    @property
    def waits_for_client(self) -> bool:
        """Whether the server owes the client nothing until the client sends or reads more."""

    def cut_off(self) -> None:
        """Close the connection immediately; unread bytes are lost."""

    def check(self, now: float) -> None:
        """Close the connection if a timeout has passed. Called every CHECK_SECONDS."""


class ConnectionLimit:
    """At most `limit` open connections: a new one evicts the one whose last progress is oldest.

    Progress is a whole head, PROGRESS_BYTES of a body, or the end of a body. Connections that wait
    for their client are evicted first. A limit that turned new connections away would itself be a
    denial of service: an attacker who fills it would keep all others out.

    `on_count` is called with the number of open connections, `on_evict` for each eviction. For use
    in one event loop.
    """

    def __init__(
        self,
        limit: int = sys.maxsize,
        on_count: Callable[[int], object] = lambda count: None,
        on_evict: Callable[[], object] = lambda: None,
    ) -> None:
        self._limit = limit
        self._on_count = on_count
        self._on_evict = on_evict
        self._connections: OrderedDict[LimitedConnection, None] = OrderedDict()
        """In the order of their last progress, the oldest first."""
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, connection: LimitedConnection) -> None:
        """Add a new connection; evict another one if there are too many."""
        while len(self._connections) >= self._limit:
            oldest = islice(self._connections, limits.EVICTION_SCAN)
            slowest = next(
                (each for each in oldest if each.waits_for_client), next(iter(self._connections))
            )
            self.remove(slowest)
            self._on_evict()
            slowest.cut_off()
        if self._loop is not connection.loop:
            self._loop = connection.loop
            self._check_all(connection.loop)
        self._connections[connection] = None
        self._on_count(len(self._connections))

    def progressed(self, connection: LimitedConnection) -> None:
        """Record progress of a connection."""
        if connection in self._connections:
            self._connections.move_to_end(connection)

    def remove(self, connection: LimitedConnection) -> None:
        """Remove a connection that has ended."""
        self._connections.pop(connection, None)
        self._on_count(len(self._connections))

    def _check_all(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(limits.CHECK_SECONDS, self._check_all, loop)
        now = loop.time()
        for connection in list(self._connections):
            connection.check(now)
