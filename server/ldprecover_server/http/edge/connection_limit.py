"""All connections of a process: how many there may be, and which one makes room."""

import asyncio
from collections import OrderedDict
from itertools import islice
from typing import Protocol

from ldprecover_server.metrics import Metrics

_SWEEP = 1.0
_LOOKED_AT = 256
"""Connections that are looked at for one that waits for its client; behind so many that wait for us
the first goes.
"""


class Member(Protocol):
    """A connection as the crowd sees it."""

    @property
    def waits_for_client(self) -> bool:
        """Whether nothing is owed to the client before it sends or reads more."""

    def cut_off(self) -> None:
        """End the connection at once; what was not read is lost."""

    def check(self, now: float) -> None:
        """End the connection if something is overdue. Called about once a second."""


class ConnectionLimit:
    """At most `most` connections. One more takes the place of the one that has progressed least.

    That is the one whose last progress, a whole head, a piece or the end of a body, is longest ago,
    among those that wait for their client. A bare limit would itself be a denial: whoever fills it
    would keep all others out.
    """

    def __init__(self, most: int, metrics: Metrics | None = None) -> None:
        self._most = most
        self._metrics = metrics or Metrics()
        self._members: OrderedDict[Member, None] = (
            OrderedDict()
        )  # whose progress is longest ago first
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._members)

    def join(self, member: Member, loop: asyncio.AbstractEventLoop) -> None:
        """Take a new connection in."""
        while len(self._members) >= self._most:
            slowest = next(
                (each for each in islice(self._members, _LOOKED_AT) if each.waits_for_client),
                next(iter(self._members)),
            )
            self.leave(slowest)
            self._metrics.connections_evicted.inc()
            slowest.cut_off()
        self._members[member] = None
        self._metrics.connections.inc()
        if self._loop is not loop:
            self._loop = loop
            loop.call_later(_SWEEP, self._sweep)

    def progressed(self, member: Member) -> None:
        """Note that a connection has made progress."""
        if member in self._members:
            self._members.move_to_end(member)

    def leave(self, member: Member) -> None:
        """Forget a connection that has ended."""
        if member in self._members:
            del self._members[member]
            self._metrics.connections.dec()

    def _sweep(self) -> None:
        assert self._loop is not None
        if not self._members:
            self._loop = None  # the next one starts it again
            return
        self._loop.call_later(_SWEEP, self._sweep)
        now = self._loop.time()
        for member in list(self._members):
            member.check(now)
