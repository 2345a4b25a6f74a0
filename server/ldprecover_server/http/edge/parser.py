"""httptools' parser with limits on its input, one request at a time."""

from http import HTTPStatus
from typing import Any, Protocol

import httptools

from ldprecover_server.http.edge.limits import (
    HEAD_BYTES,
    MAX_COMMAS,
    MAX_HEADERS,
    MAX_QUERY_FIELDS,
    TARGET_BYTES,
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
    def is_answering(self) -> bool:
        """Whether a request waits for the end of its response."""

    def on_message_begin(self) -> None: ...
    def on_url(self, url: bytes) -> None: ...
    def on_header(self, name: bytes, value: bytes) -> None: ...
    def on_headers_complete(self) -> None: ...
    def on_body(self, body: bytes) -> None: ...
    def on_message_complete(self) -> None: ...


class LimitedParser:
    """A parser of requests with httptools' interface, which takes the place of uvicorn's parser.

    - A head has at most HEAD_BYTES, and its target TARGET_BYTES and MAX_QUERY_FIELDS. With the
      trailers it has at most MAX_HEADERS headers, of at most MAX_COMMAS each.
    - Cookies are dropped: frameworks parse them, and some versions of Python in quadratic time.
    - Trailers are dropped. Chunk sizes, chunk extensions and trailers together take at most
      HEAD_BYTES and 8 bytes per body byte, because httptools would collect an endless trailer.
    - An offer to change the protocol (`Upgrade: h2c`, which some clients make with every first
      request) is ignored. httptools gives everything behind such a head to the other protocol, so
      the head is parsed again without the offer, and only then passed on. CONNECT cannot be
      ignored: its head is passed on, and the input ends there.
    - A request that begins before the response to the last one has ended (pipelining) is an error.
    - Body bytes are passed on once per piece of input, not once per chunk: a chunk may have 1 byte.

    After an error the parser takes no more input.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._body: list[bytes] = []
        self.on_body = self._body.append
        self._parser = self._new_parser()
        self.in_head = True
        """Whether the next bytes belong to a head: from the end of a request on."""
        self._head_bytes = self._headers = 0
        self._wire_bytes = self._body_bytes = 0  # since the last head
        self._upgrade_offered = False

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        self.get_method = parser.get_method
        self.get_http_version = parser.get_http_version
        self.should_keep_alive = parser.should_keep_alive
        return parser

    def feed_data(self, data: bytes) -> None:
        """Parse data. Raises httptools.HttpParserError."""
        if self.in_head:
            room = HEAD_BYTES - self._head_bytes
            head, data = data[:room], data[room:]
            self._head_bytes += len(head)
            self._feed(head)
            if not data:
                return
            if self.in_head:
                raise _too_large(f"request line and headers may be at most {HEAD_BYTES} bytes")
        self._wire_bytes += len(data)
        self._feed(data)
        if self._wire_bytes > HEAD_BYTES + WIRE_BYTES_PER_BODY_BYTE * self._body_bytes:
            raise _too_large(f"chunk sizes and trailers may be at most {HEAD_BYTES} bytes")

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
            self._body_bytes += len(body)
            self._handler.on_body(body)

    def on_message_begin(self) -> None:
        if self._handler.is_answering:
            raise RejectedError(HTTPStatus.BAD_REQUEST, "a request came before the last response")
        self._headers = 0
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
        self._head_bytes = self._wire_bytes = self._body_bytes = 0
        self._handler.on_headers_complete()

    def on_message_complete(self) -> None:
        if not self._upgrade_offered:
            self._pass_body_on()
            self.in_head = True
            self._handler.on_message_complete()

    def should_upgrade(self) -> bool:
        """Return False: the protocol never changes."""
        return False


def _too_large(detail: str) -> RejectedError:
    return RejectedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
