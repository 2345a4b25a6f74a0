"""uvicorn's HTTP protocol with limits on what a client sends, leaves unread, and delays."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from math import inf
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ldprecover_server.http.edge import limits
from ldprecover_server.http.edge.connection_limit import ConnectionLimit
from ldprecover_server.http.edge.parser import LimitedParser, RejectedError
from ldprecover_server.http.edge.transport import EdgeTransport

ABORT = "ldprecover.abort"
"""The extension of an ASGI scope that holds a function which closes the connection immediately."""

ON_LOSS = "ldprecover.on_loss"
"""The extension of an ASGI scope that holds a list of functions, which are called when the
connection is lost."""

EDGE = "edge"
"""The key of the `Edge` in the state of the ASGI lifespan."""


@dataclass(frozen=True)
class Edge:
    """What an application gives its connections.

    That is their limit, the response to a rejection, a function that is called when the server
    begins to stop, possibly once per connection, and the buffer into which all of them read.
    """

    connections: ConnectionLimit = field(default_factory=ConnectionLimit)
    respond: Callable[[RejectedError], Response] = lambda rejected: Response(
        str(rejected), rejected.status
    )
    on_stop: Callable[[], object] = lambda: None
    buffer: bytearray = field(default_factory=lambda: bytearray(limits.READ_BYTES))


class EdgeProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with four changes.

    - Its parser is a `LimitedParser`.
    - Its transport is an `EdgeTransport`, which reads small pieces, coalesces writes and lingers at
      the end.
    - It belongs to a `ConnectionLimit`.
    - The application chooses the response to a request that is not HTTP.

    The limit and the response are an `Edge` in the state of the lifespan. Each method that
    overrides one of uvicorn states why. They depend on uvicorn's internals, so uvicorn's version
    has an upper bound.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Replace httptools' parser by the limited one, and find the application's `Edge`."""
        super().__init__(*args, **kwargs)
        self.parser = LimitedParser(self)  # type: ignore[assignment]
        self.edge: Edge = self.app_state.get(EDGE) or Edge()
        self._connections = self.edge.connections
        self._head_since = self._ends_at = inf
        self._body_bytes = 0  # since the last progress
        self._unread_bytes = self._dropped_bytes = 0
        self._unread_since = 0.0
        self._drops_input = self._is_half_closed = False
        self._early = b""

    # asyncio's callbacks

    def connection_made(self, transport: Any) -> None:
        """Read and write through an `EdgeTransport`, with a limit on unread bytes.

        A client that has reset the connection before it was accepted has no address. What it sent
        could still be read, and its request would start.
        """
        transport.set_write_buffer_limits(high=limits.UNREAD_BYTES)
        super().connection_made(EdgeTransport(transport, self))  # type: ignore[arg-type]
        if self.client is None:
            transport.abort()
            return
        self._head_since = self.loop.time()
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the connection limit, and end a request that waits to start."""
        self._connections.remove(self)
        super().connection_lost(exc)
        if self.cycle is not None:
            self.cycle.body = bytearray()
            for notify in self.cycle.scope["extensions"][ON_LOSS]:
                notify()  # type: ignore[operator]

    def data_received(self, data: bytes) -> None:
        """Drop up to LINGER_BYTES after an error, and start the timeout of a head.

        A request that comes before the last response waits for it, up to HEAD_BYTES of it; a longer
        one is rejected. Pausing at each head would cost a fifth of the short requests a second.
        A body that is not whole waits in the kernel until the application takes its first piece.
        """
        if self._drops_input:
            self._dropped_bytes += len(data)
            if self._dropped_bytes > limits.LINGER_BYTES:
                self.transport.abort()
            return
        if self.is_answering and not self.cycle.more_body:
            self.flow.pause_reading()
            self._early += data
            if len(self._early) <= limits.HEAD_BYTES:
                return
            data, self._early = self._early, b""  # the parser rejects it
        super().data_received(data)
        if self.is_answering and self.cycle.more_body and self.cycle.body:
            self.flow.pause_reading()
        if self.parser.in_head and not self.is_answering and self._head_since == inf:  # type: ignore[attr-defined]
            self._head_since = self.loop.time()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep a half-closed connection for HALF_CLOSED_SECONDS if it has responses in progress.

        The server cannot tell a half-closed connection from a client that is gone, so a long wait
        could be wasted work.
        """
        self._is_half_closed = True
        if self.waits_for_client or self._ends_at < inf:
            return False
        self._ends_at = self.loop.time() + limits.HALF_CLOSED_SECONDS
        super().shutdown()
        return True

    # Called by the server

    def shutdown(self) -> None:
        """Tell the application, whose responses the server waits for."""
        self.edge.on_stop()
        super().shutdown()

    # The parser's callbacks

    @property
    def is_answering(self) -> bool:
        """Whether a request waits for the end of its response."""
        return self.cycle is not None and not self.cycle.response_complete

    def on_headers_complete(self) -> None:
        """Stop the timeout of the head. The scope gets the extensions ABORT and ON_LOSS."""
        self._head_since = inf
        self._connections.progressed(self)
        self.scope["extensions"] = {ABORT: self.cut_off, ON_LOSS: []}  # type: ignore[dict-item]
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Drop the unread body, and take the request that came early."""
        self.cycle.body = bytearray()
        super().on_response_complete()
        early, self._early = self._early, b""
        if early and not self.transport.is_closing():
            self.data_received(early)

    def on_body(self, body: bytes) -> None:
        """Record progress every PROGRESS_BYTES."""
        super().on_body(body)
        self._body_bytes += len(body)
        if self._body_bytes >= limits.PROGRESS_BYTES:
            self._body_bytes = 0
            self._connections.progressed(self)

    # Called by the connection limit

    @property
    def waits_for_client(self) -> bool:
        return not self.is_answering or self.cycle.more_body or self.flow.write_paused

    def cut_off(self) -> None:
        self.transport.abort()

    def check(self, now: float) -> None:
        if now - self._head_since > limits.HEAD_SECONDS:
            self.transport.close()
        elif now > self._ends_at:
            self.transport.abort()
        unread_bytes = self.transport.get_write_buffer_size()
        if unread_bytes != self._unread_bytes or not unread_bytes:
            self._unread_bytes, self._unread_since = unread_bytes, now
        elif now - self._unread_since > limits.UNREAD_SECONDS:
            self.transport.abort()

    # Rejections before any application sees the request

    def send_400_response(self, msg: str) -> None:
        """Send the application's response; uvicorn calls this while it handles a parser error.

        If an earlier request is being answered, its response is the last one.
        """
        self._drops_input = True
        if self.is_answering and (self.cycle.response_started or not self.cycle.more_body):
            super().shutdown()
            return
        error = sys.exception()
        if not isinstance(error, RejectedError):
            error = RejectedError(HTTPStatus.BAD_REQUEST, "Invalid HTTP request received.")
        response = self.edge.respond(error)
        lines = [b"HTTP/1.1 %d %s" % (error.status, error.status.phrase.encode())]
        lines += [name + b": " + value for name, value in response.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"connection: close", b"", response.body]))
        self.transport.close()

    # Called by the transport

    @property
    def is_client_sending(self) -> bool:
        """Whether the client sends the rest of a body, or input that is dropped."""
        if self._is_half_closed:
            return False
        return self._drops_input or (self.cycle is not None and self.cycle.more_body)

    def linger(self) -> None:
        """Drop input until the client closes the connection, at most LINGER_SECONDS."""
        self._drops_input = True
        self._head_since = inf
        self._ends_at = self.loop.time() + limits.LINGER_SECONDS
        self.flow.resume_reading()
