"""httptools' parser within bounds: what it is fed, and what it passes on."""

from typing import Any, Protocol

import httptools

from ldprecover_server.errors import HeadTooLargeError, NotHttpError, ServiceError

HEAD_BYTES = 1 << 14
"""A request's line and headers may be this long. What is 80 KiB longer is always refused."""

_BODY_BYTES = 1 << 16  # of a body that are parsed at one time; the next head may begin in them

_SPENT = 9  # bytes that come for each byte of a body at the most: of one in a chunk of its own, six

MAX_HEADERS = 100
MAX_WAITING = 8
"""Requests that one connection may send before the first of them is answered; what is sent behind
them is dropped.
"""


class RejectedError(httptools.HttpParserError):
    """What was sent is refused before any application sees it; `refusal` says how."""

    def __init__(self, refusal: ServiceError) -> None:
        self.refusal = refusal
        super().__init__(str(refusal))


class Handler(Protocol):
    """What the parser tells: httptools' callbacks; how many requests wait for their answer, and the
    head so far.
    """

    url: bytes
    headers: list[tuple[bytes, bytes]]

    @property
    def waiting(self) -> int: ...
    def on_message_begin(self) -> None: ...
    def on_url(self, url: bytes) -> None: ...
    def on_header(self, name: bytes, value: bytes) -> None: ...
    def on_headers_complete(self) -> None: ...
    def on_body(self, body: bytes) -> None: ...
    def on_message_complete(self) -> None: ...


class Parser:
    """A parser of requests with httptools' interface, for uvicorn's HttpToolsProtocol to use as its
    own.

    - A head may have HEAD_BYTES and MAX_HEADERS headers. Data is parsed in pieces, so that a long
      one is refused while it arrives. Trailers are dropped. What a chunked body takes beside its
      own bytes, sizes and extensions of chunks and trailers, may be HEAD_BYTES and eight times as
      long as they: httptools gathers an endless trailer.
    - An offer to change to another protocol (Upgrade: h2c, as some clients make with every first
      request) is passed over: httptools takes what follows such a head for the other protocol's, so
      the request is parsed again without the offer, and only then passed on. CONNECT, which cannot
      be passed over, ends the connection.
    - Of requests that come before earlier ones are answered MAX_WAITING are taken, and `overrun`
      says that more came.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.on_url = handler.on_url
        self._parser = self._fresh()
        self.in_head = True
        """Whether the next request is due: its line and headers, after the connection or in part.
        """
        self.overrun = False
        """Whether what follows is not parsed any more."""
        self._head_bytes = 0
        self._sent = self._body_bytes = 0  # since the head: of all that came, and of the body
        self._offered = False

    def _fresh(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self.get_method = parser.get_method
        self.get_http_version = parser.get_http_version
        return parser

    def feed_data(self, data: bytes) -> None:
        """Parse some bytes. Raises httptools.HttpParserError."""
        if len(data) <= HEAD_BYTES:
            self._feed(data)
            return
        view = memoryview(data)
        if (
            self.in_head and data.find(b"\r\n\r\n", 0, HEAD_BYTES) >= 0
        ):  # the head ends here, if none came before
            self._feed(view[:_BODY_BYTES])
            view = view[_BODY_BYTES:]
        while view:
            size = HEAD_BYTES if self.in_head else _BODY_BYTES
            self._feed(view[:size])
            view = view[size:]

    def _feed(self, piece: bytes | memoryview) -> None:
        was_in_head = self.in_head
        while piece and not self.overrun:
            try:
                self._parser.feed_data(piece)
                break
            except httptools.HttpParserUpgrade as offer:
                piece = piece[offer.args[0] :]
                self._pass_over_offer()
            except httptools.HttpParserCallbackError as error:
                if isinstance(error.__context__, RejectedError):
                    raise error.__context__ from None
                raise
        if not was_in_head and not self.in_head:
            self._sent += len(piece)
            if self._sent > HEAD_BYTES + _SPENT * self._body_bytes:
                raise RejectedError(
                    HeadTooLargeError(
                        f"beside its bytes a body may take at most {HEAD_BYTES} others"
                    )
                )
        # What of a piece belongs to a head that began in it is not known: it counts from the next
        # piece on.
        self._head_bytes = self._head_bytes + len(piece) if was_in_head and self.in_head else 0
        if self._head_bytes > HEAD_BYTES:
            raise RejectedError(
                HeadTooLargeError(f"request line and headers may be at most {HEAD_BYTES} bytes")
            )

    def _pass_over_offer(self) -> None:
        method = self._parser.get_method()
        if method == b"CONNECT":
            self.overrun = True  # what follows is not HTTP
            return
        if not self._offered:
            raise RejectedError(NotHttpError("the request changes the protocol"))
        lines = [
            method + b" " + self._handler.url + b" HTTP/" + self._parser.get_http_version().encode()
        ]
        lines += [
            name + b": " + value for name, value in self._handler.headers if name != b"upgrade"
        ]
        self._parser = self._fresh()
        self._offered = False
        self._parser.feed_data(b"\r\n".join([*lines, b"", b""]))

    def on_message_begin(self) -> None:
        self.in_head = True
        self._handler.on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.in_head:
            return
        if len(self._handler.headers) == MAX_HEADERS:
            raise RejectedError(
                HeadTooLargeError(f"a request may have at most {MAX_HEADERS} headers")
            )
        self._handler.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._parser.should_upgrade() and self._parser.get_method() != b"CONNECT":
            self._offered = True
            return
        self.in_head = False
        self._sent = self._body_bytes = 0
        if self._handler.waiting >= MAX_WAITING:
            self.overrun = True
            return
        self._handler.on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if not self.overrun:
            self._handler.on_body(body)

    def on_message_complete(self) -> None:
        if not self.overrun and not self._offered:
            self._handler.on_message_complete()

    def should_keep_alive(self) -> bool:
        """Tell whether another request may follow."""
        return bool(self._parser.should_keep_alive()) and self._parser.get_method() != b"CONNECT"

    def should_upgrade(self) -> bool:
        """Tell that the protocol is never changed."""
        return False
