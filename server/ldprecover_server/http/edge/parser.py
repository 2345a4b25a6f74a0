"""httptools' parser with limits on its input and on the requests that it passes on."""

from http import HTTPStatus
from typing import Any, Protocol

import httptools

from ldprecover_server.http.edge.limits import (
    BODY_PIECE_BYTES,
    HEAD_BYTES,
    MAX_HEADERS,
    MAX_PIPELINED,
    WIRE_BYTES_PER_BODY_BYTE,
)


class RejectedError(httptools.HttpParserError):
    """A request rejected by the parser: status 400 if it is not HTTP, 431 if it is too large."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        self.status = status
        super().__init__(detail)


class Handler(Protocol):
    """The receiver of httptools' callbacks."""

    url: bytes
    headers: list[tuple[bytes, bytes]]

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a response."""

    def on_message_begin(self) -> None: ...
    def on_url(self, url: bytes) -> None: ...
    def on_header(self, name: bytes, value: bytes) -> None: ...
    def on_headers_complete(self) -> None: ...
    def on_body(self, body: bytes) -> None: ...
    def on_message_complete(self) -> None: ...


class LimitedParser:
    """A parser of requests with httptools' interface, which takes the place of uvicorn's parser.

    - A head has at most HEAD_BYTES and MAX_HEADERS headers. Data is parsed in pieces, so a long
      head is rejected while it arrives.
    - Trailers are dropped. Chunk sizes, chunk extensions and trailers together take at most
      HEAD_BYTES and 8 bytes per body byte, because httptools would collect an endless trailer.
    - An offer to change the protocol (`Upgrade: h2c`, which some clients make with every first
      request) is ignored. httptools gives everything behind such a head to the other protocol, so
      the head is parsed again without the offer, and only then passed on. CONNECT cannot be
      ignored: it ends the connection.
    - At most MAX_PIPELINED requests wait for a response; then `overrun` is set.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.on_url = handler.on_url
        self._parser = self._new_parser()
        self.in_head = True
        """Whether the next bytes belong to a head: at the start, and until the head is complete."""
        self.overrun = False
        """Whether all further input is dropped."""
        self._head_bytes = 0
        self._wire_bytes = self._body_bytes = 0  # since the last head
        self._upgrade_offered = False

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self.get_method = parser.get_method
        self.get_http_version = parser.get_http_version
        return parser

    def feed_data(self, data: bytes) -> None:
        """Parse data. Raises httptools.HttpParserError."""
        if len(data) <= HEAD_BYTES:
            self._feed(data)
            return
        view = memoryview(data)
        # If the head ends in this data, its body may be parsed in larger pieces from the start.
        if self.in_head and data.find(b"\r\n\r\n", 0, HEAD_BYTES) >= 0:
            self._feed(view[:BODY_PIECE_BYTES])
            view = view[BODY_PIECE_BYTES:]
        while view:
            size = HEAD_BYTES if self.in_head else BODY_PIECE_BYTES
            self._feed(view[:size])
            view = view[size:]

    def _feed(self, piece: bytes | memoryview) -> None:
        was_in_head = self.in_head
        while piece and not self.overrun:
            try:
                self._parser.feed_data(piece)
                break
            except httptools.HttpParserUpgrade as upgrade:
                piece = piece[upgrade.args[0] :]
                self._parse_without_upgrade()
            except httptools.HttpParserCallbackError as error:
                if isinstance(error.__context__, RejectedError):
                    raise error.__context__ from None
                raise
        if not was_in_head and not self.in_head:
            self._wire_bytes += len(piece)
            if self._wire_bytes > HEAD_BYTES + WIRE_BYTES_PER_BODY_BYTE * self._body_bytes:
                raise _too_large(f"chunk sizes and trailers may be at most {HEAD_BYTES} bytes")
        # A head may begin anywhere in a piece, so it is counted from the next piece on.
        self._head_bytes = self._head_bytes + len(piece) if was_in_head and self.in_head else 0
        if self._head_bytes > HEAD_BYTES:
            raise _too_large(f"request line and headers may be at most {HEAD_BYTES} bytes")

    def _parse_without_upgrade(self) -> None:
        method = self._parser.get_method()
        if method == b"CONNECT":
            self.overrun = True  # the following bytes are not HTTP
            return
        if not self._upgrade_offered:
            raise RejectedError(HTTPStatus.BAD_REQUEST, "the request changes the protocol")
        version = self._parser.get_http_version().encode()
        lines = [method + b" " + self._handler.url + b" HTTP/" + version]
        lines += [
            name + b": " + value for name, value in self._handler.headers if name != b"upgrade"
        ]
        self._parser = self._new_parser()
        self._upgrade_offered = False
        self._parser.feed_data(b"\r\n".join([*lines, b"", b""]))

    def on_message_begin(self) -> None:
        self.in_head = True
        self._handler.on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_head:  # a trailer
            return
        if len(self._handler.headers) == MAX_HEADERS:
            raise _too_large(f"a request may have at most {MAX_HEADERS} headers")
        self._handler.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._parser.should_upgrade() and self._parser.get_method() != b"CONNECT":
            self._upgrade_offered = True
            return
        self.in_head = False
        self._wire_bytes = self._body_bytes = 0
        if self._handler.waiting >= MAX_PIPELINED:
            self.overrun = True
            return
        self._handler.on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if not self.overrun:
            self._handler.on_body(body)

    def on_message_complete(self) -> None:
        if not self.overrun and not self._upgrade_offered:
            self._handler.on_message_complete()

    def should_keep_alive(self) -> bool:
        """Return whether another request may follow."""
        return bool(self._parser.should_keep_alive()) and self._parser.get_method() != b"CONNECT"

    def should_upgrade(self) -> bool:
        """Return False: the protocol never changes."""
        return False


def _too_large(detail: str) -> RejectedError:
    return RejectedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
