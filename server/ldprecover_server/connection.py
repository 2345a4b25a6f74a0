"""HTTP connections that send each answer in one system call."""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ldprecover_server import problems

__all__ = ["Connection"]


class Connection(HttpToolsProtocol):
    """uvicorn's HTTP protocol over a transport that joins what one turn of the event loop writes.

    uvicorn writes the head of an answer and its body apart. Sending is the dearest step of a small
    answer, and each send wakes the receiver; together they go in one.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        joined = _JoinedWrites(cast(asyncio.Transport, transport), self.loop)
        super().connection_made(cast(asyncio.Transport, joined))

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with a problem too; no application sees it."""
        response = problems.answer(problems.NOT_HTTP, msg, {"Connection": "close"})
        head = b"".join(name + b": " + value + b"\r\n" for name, value in response.raw_headers)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + bytes(response.body))
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
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
