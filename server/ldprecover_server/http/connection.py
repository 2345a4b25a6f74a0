"""HTTP connections that send each answer in one system call."""

import asyncio
import http
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ldprecover_server.http import problems

__all__ = ["HEAD_BYTES", "HEAD_SECONDS", "Connection"]

HEAD_BYTES = 1 << 16
HEAD_SECONDS = 10.0


class Connection(HttpToolsProtocol):
    """uvicorn's HTTP protocol over a transport that joins what one turn of the event loop writes.

    uvicorn writes the head of an answer and its body apart. Sending is the dearest step of a small
    answer, and each send wakes the receiver; together they go in one.

    A request's line and headers must arrive within HEAD_SECONDS and HEAD_BYTES, else the connection is
    closed: uvicorn itself ends only connections that are idle after a request, and gathers headers without
    end. Trailers are dropped.

    A request that offers to change to another protocol (Upgrade: h2c, as some clients do with every first
    request) is answered in this one. The parser takes what follows its head for the other protocol already, so
    it is given the request again, without the offer.
    """

    _in_head = True
    """Whether the next request is due: its line and headers, after the connection or in part."""
    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        joined = _JoinedWrites(cast(asyncio.Transport, transport), self.loop)
        super().connection_made(cast(asyncio.Transport, joined))
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserError:
                self.logger.warning("Invalid HTTP request received.")
                self.send_400_response("Invalid HTTP request received.")
                return
            except httptools.HttpParserUpgrade as offer:
                if not self._should_upgrade():
                    return
                data = self._without_offer() + data[offer.args[0] :]
        if not self._in_head or self.transport.is_closing():
            return
        # Heads come whole but for slow clients, so a timer is started for those alone.
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._refuse(problems.HEAD_TOO_LARGE, f"request line and headers may be at most {HEAD_BYTES} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self._stop_head_timer()
        super().on_headers_complete()

    def _should_upgrade(self) -> bool:
        # Then uvicorn leaves the request to who handles the upgrade. CONNECT has nothing that could be left out.
        return bool(self.parser.get_method() != b"CONNECT")

    def _without_offer(self) -> bytes:
        """Return the head of the request again, for a fresh parser, without what changes the protocol."""
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        lines = [method + b" " + self.url + b" HTTP/" + version]
        for name, value in self.headers:
            tokens = value.split(b",") if name == b"connection" else [value]
            lines.append(name + b": " + b",".join(token for token in tokens if token.strip().lower() != b"upgrade"))
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        return b"\r\n".join([*lines, b"", b""])

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with a problem too; no application sees it."""
        self._refuse(problems.NOT_HTTP, msg)

    def _refuse(self, problem: problems.Problem, detail: str) -> None:
        response = problems.answer(problem, detail, {"Connection": "close"})
        line = f"HTTP/1.1 {problem.status} {http.HTTPStatus(problem.status).phrase}\r\n".encode()
        head = b"".join(name + b": " + value + b"\r\n" for name, value in response.raw_headers)
        self.transport.write(line + head + b"\r\n" + bytes(response.body))
        self.transport.close()


class _JoinedWrites:
    """A transport that keeps writes until the end of the loop's turn, and passes all else on."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pieces:
            data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            if not self._transport.is_closing():  # else nobody reads any more, and writing would fail
                self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
