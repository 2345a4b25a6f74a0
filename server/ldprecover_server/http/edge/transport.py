"""A transport that limits reads, coalesces writes, and closes without losing the last response."""

import asyncio
from typing import Any

from ldprecover_server.http.edge.limits import COALESCED_BYTES


class EdgeTransport(asyncio.BufferedProtocol):
    """A layer between a socket's transport and an `EdgeProtocol`.

    It reads into a buffer that all connections of an event loop share, and passes on a copy. For
    any other protocol one read takes up to 256 KiB, and thousands of requests may wait with
    what was read. A small buffer of the kernel would also limit the bytes of a round trip.

    uvicorn writes the head and the body of a response separately, and a send call is the largest
    cost of a small response.

    The kernel resets a connection that is closed while its client still sends, and the client loses
    the response. So `close` sends the end of the stream (EOF) after the response and lets the
    protocol drop further input for a few seconds (lingering close).
    """

    def __init__(self, transport: asyncio.Transport, peer: Any) -> None:
        """Make a transport on which `peer`, an EdgeProtocol, reads and writes."""
        self._transport = transport
        self._peer = peer
        self._pieces: list[bytes] = []
        self._lingers = False
        self.connection_lost = peer.connection_lost  # type: ignore[method-assign]
        self.eof_received = peer.eof_received  # type: ignore[method-assign]
        self.pause_writing = peer.pause_writing  # type: ignore[method-assign]
        self.resume_writing = peer.resume_writing  # type: ignore[method-assign]
        transport.set_protocol(self)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._peer.edge.buffer  # type: ignore[no-any-return]

    def buffer_updated(self, nbytes: int) -> None:
        self._peer.data_received(bytes(self._peer.edge.buffer[:nbytes]))

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._peer.loop.call_soon(self._flush)
        self._pieces.append(data)
        if len(data) > COALESCED_BYTES:
            self._flush()

    def close(self) -> None:
        if self._lingers:
            return
        self._flush()
        if not self._peer.is_client_sending or self._transport.is_closing():
            self._transport.close()
            return
        self._lingers = True
        self._transport.write_eof()
        self._peer.linger()

    def is_closing(self) -> bool:
        return self._lingers or self._transport.is_closing()

    def _flush(self) -> None:
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            if not self.is_closing():  # a write to a closed transport would raise
                self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
