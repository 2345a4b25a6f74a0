"""httptools' parser with limits on its input, one request at a time."""

from http import HTTPStatus
from typing import Any

import httptools

from ldprecover_server.http.edge.limits import (
    CHUNK_BYTES,
    HEAD_BYTES,
    MAX_COMMAS,
    MAX_HEADERS,
    MAX_QUERY_FIELDS,
    MAX_SMALL_CHUNKS,
    TARGET_BYTES,
)


class RejectedError(httptools.HttpParserError):
    """A request rejected by the parser: status 400 if it is not HTTP, 431 if it is too large."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        self.status = status
        super().__init__(detail)


class LimitedParser:
    """A parser of requests with httptools' interface, which takes the place of uvicorn's parser.

    - A head has at most HEAD_BYTES, and its target TARGET_BYTES and MAX_QUERY_FIELDS. With the
      trailers it has at most MAX_HEADERS headers, of at most MAX_COMMAS each.
    - Cookies are dropped: frameworks parse them, and some versions of Python in quadratic time.
    - Trailers are dropped. Chunk sizes, chunk extensions and trailers together take at most
      HEAD_BYTES and a byte per body byte, because httptools would collect an endless trailer.
    - A body has at most MAX_SMALL_CHUNKS, and one more per CHUNK_BYTES: each takes a microsecond,
      and thousands of connections may send them together.
    - An offer to change the protocol (`Upgrade: h2c`, which some clients make with every first
      request) is ignored. httptools gives everything behind such a head to the other protocol, so
      the head is parsed again without the offer, and only then passed on. CONNECT cannot be
      ignored: its head is passed on, and the input ends there.
    - A request that begins before the response to the last one has ended (pipelining) is an error.
    - Body bytes are passed on once per piece of input, not once per chunk.

    After an error the parser takes no more input.
    """

    def __init__(self, handler: Any) -> None:
        """Make a parser whose `handler` is an EdgeProtocol."""
        self._handler = handler
        self._body: list[bytes] = []
        self.on_body = self._body.append
        self._parser = self._new_parser()
        self.in_head = True
        """Whether the next bytes belong to a head: from the end of a request on."""
        self._headers = 0
        self._chunks = 0.0
        """Chunks beyond one per CHUNK_BYTES."""
        self._room = HEAD_BYTES
        """Bytes that may come before the next byte of a body, or the end of a head."""
        self._upgrade_offered = False

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        self.get_method = parser.get_method
        self.get_http_version = parser.get_http_version
        self.should_keep_alive = parser.should_keep_alive
        return parser

    def feed_data(self, data: bytes) -> None:
        """Parse data. Raises httptools.HttpParserError."""
        while data:
            if not self._room:
                part = "request line and headers" if self.in_head else "chunk sizes and trailers"
                raise _too_large(f"{part} may be at most {HEAD_BYTES} bytes")
            piece, data = data[: self._room], data[self._room :]
            self._room -= len(piece)
            self._feed(piece)

    def _feed(self, piece: bytes) -> None:
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._parse_without_upgrade()
            self._feed(piece[upgrade.args[0] :])
        except httptools.HttpParserCallbackError as error:
            if isinstance(error.__context__, RejectedError):
                raise error.__context__ from None
            raise
        self._pass_body_on()

    def _parse_without_upgrade(self) -> None:
        if not self._upgrade_offered:  # CONNECT
            raise RejectedError(HTTPStatus.BAD_REQUEST, "the request changes the protocol")
        method, version = self.get_method(), self.get_http_version().encode()
        lines = [method + b" " + self._handler.url + b" HTTP/" + version]
        lines += [
            name + b": " + value for name, value in self._handler.headers if name != b"upgrade"
        ]
        self._parser = self._new_parser()
        self._upgrade_offered = False
        self._parser.feed_data(b"\r\n".join([*lines, b"", b""]))

    def _pass_body_on(self) -> None:
        if self._body:
            body = b"".join(self._body)
            self._body.clear()
            self._room += 2 * len(body)
            self._chunks -= len(body) / CHUNK_BYTES
            self._handler.on_body(body)

    def on_message_begin(self) -> None:
        if self._handler.is_answering:
            raise RejectedError(HTTPStatus.BAD_REQUEST, "a request came before the last response")
        self._headers, self._chunks = 0, 0.0
        self._handler.on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._handler.on_url(url)
        url = self._handler.url
        if len(url) > TARGET_BYTES:
            raise _too_large(f"the path with its query may be at most {TARGET_BYTES} bytes")
        if url.count(b"&") >= MAX_QUERY_FIELDS:
            raise _too_large(f"a query may have at most {MAX_QUERY_FIELDS} fields")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers += 1
        if self._headers > MAX_HEADERS:
            raise _too_large(f"a request may have at most {MAX_HEADERS} headers")
        if value.count(b",") > MAX_COMMAS:
            raise _too_large(f"a header may have at most {MAX_COMMAS} commas")
        if self.in_head and name.lower() != b"cookie":
            self._handler.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._parser.should_upgrade() and self.get_method() != b"CONNECT":
            self._upgrade_offered = True
            return
        self.in_head = False
        self._room = HEAD_BYTES
        self._handler.on_headers_complete()

    def on_chunk_header(self) -> None:
        self._chunks += 1
        if self._chunks > MAX_SMALL_CHUNKS:
            raise _too_large(f"a body may have at most {MAX_SMALL_CHUNKS} small chunks")

    def on_message_complete(self) -> None:
        if not self._upgrade_offered:
            self._pass_body_on()
            self.in_head = True
            self._room = HEAD_BYTES
            self._handler.on_message_complete()

    def should_upgrade(self) -> bool:
        """Return False: the protocol never changes."""
        return False


def _too_large(detail: str) -> RejectedError:
    return RejectedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
