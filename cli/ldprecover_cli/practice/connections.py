"""Connections that a network may open without a proxy in front: bounded in time and number."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

PER_ADDRESS = 256
"""Connections of one address; phones behind one router share it, and a browser opens up to six."""


class Connection(H11Protocol):
    """uvicorn's connection, which is closed if a request does not arrive whole in time.

    Both the head and the body must arrive within the server's `timeout_keep_alive`, which uvicorn
    applies to idle connections alone. A connection above PER_ADDRESS is closed immediately.
    """

    _deadline: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline, or close the connection if its address has too many."""
        super().connection_made(transport)
        self._address = self.client and self.client[0]
        connections = [each for each in self.connections if isinstance(each, Connection)]
        if sum(each._address == self._address for each in connections) > PER_ADDRESS:
            transport.abort()
        else:
            self._start_deadline()

    def data_received(self, data: bytes) -> None:
        """End the deadline of a whole request; start that of one whose first bytes arrive."""
        super().data_received(data)
        if not (self.cycle is None or self.cycle.more_body or self.cycle.response_complete):
            self._deadline.cancel()
        elif self._deadline.cancelled():
            self._start_deadline()

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)
