"""HTTP connections: uvicorn's, with bounds on what a client may send at once, leave unread, and
take its time for.
"""

import asyncio
import http
import sys
from typing import Any, cast

import httptools
from starlette.types import Scope
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ldprecover_server.errors import NotHttpError, ServiceError
from ldprecover_server.http.edge.connection_limit import ConnectionLimit
from ldprecover_server.http.edge.parser import Parser, RejectedError
from ldprecover_server.http.problems import refuse

ABORT = "ldprecover.abort"
"""The extension of an ASGI scope that cuts its connection off."""

CONNECTION_LIMIT = "crowd"
"""Where the lifespan's state has the crowd that connections join."""

HEAD_SECONDS = 10.0
"""Time in which a request's line and headers must arrive, and the first request on a connection."""

UNREAD_BYTES = 1 << 15
"""What a client leaves unread before its connection writes no more."""

UNREAD_SECONDS = 10.0
"""Time after which a client that reads nothing is cut off."""

_HALF_CLOSED_SECONDS = 5.0
_JOINED_BYTES = 1 << 12
_LINGER_SECONDS, _LINGER_BYTES = 5.0, 32 << 20
_PROGRESS_BYTES = 1 << 14


class EdgeProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, of which four things are changed.

    - Its parser is ours, which bounds what is taken at once (`parsing`).
    - Its transport joins what one turn of the event loop writes. uvicorn writes the head of an
      answer and its body apart, and sending is the dearest step of a small answer.
    - It belongs to a crowd, which bounds how many connections there are.
    - What is not HTTP is answered with a problem.

    The methods that override uvicorn's own each say why. They rest on its insides, so its version
    is bounded above.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Set the parser to ours, in place of httptools' own, and find the crowd."""
        super().__init__(config, server_state, app_state, _loop)
        self._parsing = Parser(self)
        self.parser = cast(httptools.HttpRequestParser, self._parsing)
        self._crowd: ConnectionLimit = (
            app_state[CONNECTION_LIMIT]
            if CONNECTION_LIMIT in app_state
            else ConnectionLimit(sys.maxsize)
        )
        self._head_since: float | None = None
        self._arrived = 0  # bytes of a body since the last progress
        self._unread = 0
        self._unread_since = 0.0
        self._ends_at: float | None = None
        self._dropped = 0
        self._sends_no_more = False

    # asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Write through a transport that joins writes, bounds what waits to be read, and ends in
        order.
        """
        given = cast(asyncio.Transport, transport)
        given.set_write_buffer_limits(high=UNREAD_BYTES)
        super().connection_made(cast(asyncio.Transport, _Transport(given, self)))
        self._head_since = self.loop.time()
        self._crowd.join(self, self.loop)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the crowd."""
        self._crowd.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Drop what is not parsed any more, up to a bound, and take the time of a head that
        is due.
        """
        if self._parsing.overrun:
            self._dropped += len(data)
            if self._dropped > _LINGER_BYTES:
                self.transport.abort()
            return
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        super().data_received(data)
        if self._parsing.overrun:
            self.shutdown()  # after the answers that are under way
        elif self._parsing.in_head and self._head_since is None:
            self._head_since = self.loop.time()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep a connection whose client has closed its own end for the answers under way, for some
        seconds.

        It cannot be told from a client that has gone, for whom nobody should work long.
        """
        self._sends_no_more = True
        if self.waits_for_client or self._ends_at is not None:
            return False
        self._ends_at = self.loop.time() + _HALF_CLOSED_SECONDS
        self.shutdown()
        return True

    # The parser's callbacks

    @property
    def waiting(self) -> int:
        """How many requests wait for their answer."""
        return len(self.pipeline) + (self.cycle is not None and not self.cycle.response_complete)

    def on_headers_complete(self) -> None:
        """Note that a head has come in time, and give the application a way to cut the connection
        off (`answers`).
        """
        self._head_since = None
        self._crowd.progressed(self)
        cast(Scope, self.scope)["extensions"] = {ABORT: self.cut_off}
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note that a body progresses, each time by enough to count."""
        super().on_body(body)
        self._arrived += len(body)
        if self._arrived >= _PROGRESS_BYTES:
            self._arrived = 0
            self._crowd.progressed(self)

    # What the crowd asks

    @property
    def waits_for_client(self) -> bool:
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    def cut_off(self) -> None:
        self.transport.abort()

    def check(self, now: float) -> None:
        if self._head_since is not None and now - self._head_since > HEAD_SECONDS:
            self.transport.close()
        elif self._ends_at is not None and now > self._ends_at:
            self.transport.abort()
        unread = self.transport.get_write_buffer_size()
        if unread != self._unread or not unread:
            self._unread, self._unread_since = unread, now
        elif now - self._unread_since > UNREAD_SECONDS:
            self.transport.abort()

    # Refusals before any application sees the request

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a problem; called by uvicorn while it handles the parser's
        error.
        """
        self._parsing.overrun = True
        if self.waiting > 1 or (
            self.waiting and (self.cycle.response_started or not self.cycle.more_body)
        ):
            self.shutdown()  # the requests before it have their answers, and the connection ends
            return
        error = sys.exception()
        self._refuse(
            error.refusal
            if isinstance(error, RejectedError)
            else NotHttpError("Invalid HTTP request received.")
        )

    def _refuse(self, refusal: ServiceError) -> None:
        response = refuse(refusal, {"Connection": "close"})
        line = f"HTTP/1.1 {refusal.status} {http.HTTPStatus(refusal.status).phrase}\r\n".encode()
        head = b"".join(name + b": " + value + b"\r\n" for name, value in response.raw_headers)
        self.transport.write(line + head + b"\r\n" + bytes(response.body))
        self.transport.close()

    # The end of the connection

    def is_sent_more(self) -> bool:
        """Tell whether the client sends what nobody reads: the rest of a body, or requests behind
        too many.
        """
        if self._sends_no_more:
            return False
        return self._parsing.overrun or (self.cycle is not None and self.cycle.more_body)

    def linger(self) -> None:
        """Drop what still comes, until the client ends the connection too, or for some seconds."""
        self._parsing.overrun = True
        self._head_since = None
        self._ends_at = self.loop.time() + _LINGER_SECONDS
        self.flow.resume_reading()


class _Transport:
    """A transport that keeps writes until the end of the loop's turn, and ends in order.

    A connection that is closed while its client still sends is reset, and the client loses the
    answer with it. So the answer is followed by the end of what is written, and what still comes is
    dropped for a few seconds.
    """

    def __init__(self, transport: asyncio.Transport, connection: EdgeProtocol) -> None:
        self._transport = transport
        self._connection = connection
        self._pieces: list[bytes] = []
        self._ended = False

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._connection.loop.call_soon(self._flush)
        self._pieces.append(data)
        if (
            len(data) > _JOINED_BYTES
        ):  # else a turn could write any number of pieces before the connection says stop
            self._flush()

    def close(self) -> None:
        if self._ended:
            return
        self._flush()
        if not self._connection.is_sent_more() or self._transport.is_closing():
            self._transport.close()
            return
        self._ended = True
        self._transport.write_eof()
        self._connection.linger()

    def is_closing(self) -> bool:
        return self._ended or self._transport.is_closing()

    def _flush(self) -> None:
        if self._pieces:
            data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            if not self.is_closing():  # else nobody reads any more, and writing would fail
                self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
