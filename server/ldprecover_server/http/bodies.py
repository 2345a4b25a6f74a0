"""Request bodies within bounds: who sends it and to what decides how much is read, before any of it
is.
"""

import asyncio
import math
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from anyio import CapacityLimiter, to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover.protocols.wire import MEDIA_TYPE
from ldprecover_server.errors import (
    BodyTimeoutError,
    BodyTooLargeError,
    MalformedBodyError,
    QueueFullError,
    ServiceError,
    UnsupportedMediaTypeError,
    UnsupportedTransferEncodingError,
)
from ldprecover_server.timeouts import Timeouts

BIG = 1 << 17
"""Bodies above this many bytes are decoded in a thread: they take more than a millisecond."""

JSON = "application/json"
_TYPES = {kind.encode(): kind for kind in (JSON, MEDIA_TYPE)}
_PIECE = 1 << 16
_DIGITS = 18  # of a length; more are larger than any limit


@dataclass(frozen=True)
class BodyLimit:
    """How large a body may be, as sent and once decompressed, and of whom: `anonymous` callers have
    a share.
    """

    sent: int
    decoded: int
    anonymous: bool
    why: str = ""
    """Behind the refusal of a larger one: what would allow it."""


class Bodies:
    """What all bodies together hold of memory, from their first byte until they are decoded: at
    most `max_held` bytes.

    Bodies of more than 64 KiB hold three quarters of it at the most, and bodies without a key seven
    eighths, so that small submissions and callers with a key find room. A body that needs room that
    is not there takes it from the one of the anonymous that has been on its way for longest, and at
    least `patience` seconds: that one is answered
    408. So nobody keeps others out by sending slowly. A body that does not arrive within `seconds`,
    or of an anonymous caller within `anonymous_seconds`, is answered 408 too.
    """

    def __init__(
        self,
        max_held: int,
        seconds: float = 30.0,
        anonymous_seconds: float = 10.0,
        patience: float = 1.0,
    ) -> None:
        self.max_held = max_held
        self.held = 0
        self._held_large = 0
        self._held_anonymous = 0
        self._patience = patience
        self._keyed, self._anonymous = Timeouts(seconds), Timeouts(anonymous_seconds)
        self._lock = threading.Lock()  # gzip is undone in threads
        self.threads = CapacityLimiter(1)  # decoded JSON is many times its text

    def deadlines(self, limit: BodyLimit) -> Timeouts:
        """Return what ends bodies of this kind that are late."""
        return self._anonymous if limit.anonymous else self._keyed

    def take(self, body: "Body", n: int) -> None:
        """Count `n` more bytes as held by a body. Raises QueueFullError where there is no room."""
        before = body.bytes
        large = _large(before + n) - _large(before)
        anonymous = n if body.limit.anonymous else 0
        with self._lock:
            if (
                self.held + n > self.max_held
                or (large and self._held_large + large > self.max_held * 3 // 4)
                or (anonymous and self._held_anonymous + anonymous > self.max_held * 7 // 8)
            ):
                raise QueueFullError("the server holds as many bytes of submissions as it may")
            self._count(body, n, large, anonymous)

    def take_from_others(self, body: "Body", n: int) -> None:
        """As `take`, but where there is no room the slowest bodies of the anonymous end, one after
        the other.

        For use in the event loop.
        """
        while True:
            try:
                self.take(body, n)
                return
            except QueueFullError:
                began, expire = self._anonymous.oldest() or (math.inf, None)
                if (
                    expire is None
                    or expire == body.expire
                    or began > self._anonymous.loop.time() - self._patience
                ):
                    raise
                expire()

    def release(self, body: "Body") -> None:
        """Count nothing more as held by a body."""
        n = body.bytes
        if n:
            with self._lock:
                self._count(body, -n, -_large(n), -n if body.limit.anonymous else 0)

    def _count(self, body: "Body", n: int, large: int, anonymous: int) -> None:
        body.bytes += n
        self.held += n
        self._held_large += large
        self._held_anonymous += anonymous


_NONE = BodyLimit(0, 0, anonymous=True)


class Body:
    """The body of one request."""

    def __init__(self, bodies: Bodies, scope: Scope, receive: Receive) -> None:
        self._bodies = bodies
        self.headers: Mapping[bytes, bytes] = dict(scope["headers"])
        self._scope = scope
        self._receive = receive
        self.media_type = media_type(self.headers)
        """The Content-Type without its parameters."""
        self.limit = _NONE
        self.bytes = 0
        """How many are held."""
        self.complete = not has_body(self.headers)
        """Whether nothing of it is left to be received."""
        self._task: asyncio.Task[object] | None = None
        self._late = False

    async def read(self, limit: BodyLimit, types: tuple[str, ...] = (JSON,)) -> bytes | bytearray:
        """Return the whole body, decompressed; it is held until `release`.

        Raises BodyTooLargeError, UnsupportedMediaTypeError, UnsupportedTransferEncodingError,
        MalformedBodyError, BodyTimeoutError or QueueFullError.
        """
        self.limit = limit
        is_zipped = self._check_headers(types)
        deadlines = self._bodies.deadlines(limit)
        number = deadlines.add(self.expire)
        self._task = asyncio.current_task(deadlines.loop)
        try:
            body = await self._receive_all()
        except asyncio.CancelledError:
            if self._late and self._task is not None and self._task.uncancel() == 0:
                late = (
                    f"the body was not there after {deadlines.seconds:g} seconds, or held room "
                    "that others needed"
                )
                raise BodyTimeoutError(late) from None
            raise
        finally:
            self._task = None
            deadlines.remove(number)
        if not is_zipped or not body:
            return body
        if len(body) > _PIECE // 4:
            return await to_thread.run_sync(self._gunzip, body, limiter=self._bodies.threads)
        return self._gunzip(body)

    def release(self) -> None:
        """Give back what the body holds."""
        self._bodies.release(self)

    def expire(self) -> None:
        """End the reading of the body: it raises BodyTimeoutError."""
        self.release()
        if self._task is not None and not self._late:
            self._late = True
            self._task.cancel()

    def _check_headers(self, types: tuple[str, ...]) -> bool:
        """Tell whether the body is in gzip."""
        headers = self.headers
        length = headers.get(b"content-length")
        if length is not None and length.isdigit():
            length = length.lstrip(b"0")
            if len(length) > _DIGITS or int(length or b"0") > self.limit.sent:
                raise self._too_large("as sent", self.limit.sent)
        if b"transfer-encoding" in headers:
            _check_transfer(self._scope)
        is_zipped = False
        if (given := headers.get(b"content-encoding")) is not None:
            encoding = given.decode("latin-1").strip().lower()
            is_zipped = encoding == "gzip"
            if not is_zipped and encoding != "identity":
                raise UnsupportedMediaTypeError(
                    f"Content-Encoding {encoding[:80]!r} is not read here; send gzip or none"
                )
        if not self.complete and self.media_type not in types:
            sent = self.media_type
            named = f"Content-Type {sent[:80]!r}" if sent else "A body without Content-Type"
            raise UnsupportedMediaTypeError(f"{named} is not read here; send {' or '.join(types)}")
        return is_zipped

    async def _receive_all(self) -> bytes | bytearray:
        body: bytes | bytearray = b""
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                self.complete = True
                raise BodyTimeoutError("the client went away before the end of the body")
            piece, more = message.get("body", b""), message.get("more_body", False)
            self.complete = not more
            if len(body) + len(piece) > self.limit.sent:
                raise self._too_large("as sent", self.limit.sent)
            self._bodies.take_from_others(self, len(piece))
            if not body:
                body = piece if not more else bytearray(piece)
            else:
                body += piece
        return body

    def _gunzip(self, body: bytes | bytearray) -> bytearray:
        decoder = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        decoded = bytearray()
        try:
            for start in range(0, len(body), _PIECE):
                rest: bytes | bytearray = body[start : start + _PIECE]
                while rest:
                    self._grow(decoded, decoder.decompress(rest, _PIECE))
                    rest = decoder.unconsumed_tail
                if decoder.eof:
                    break
            while not decoder.eof and (piece := decoder.decompress(b"", _PIECE)):
                self._grow(decoded, piece)
        except zlib.error as error:
            raise MalformedBodyError(
                f"the body is not gzip as Content-Encoding says: {error}"
            ) from error
        except ServiceError:
            # a refusal raised in a thread stays in a cycle with its frames until a collection
            decoded.clear()
            raise
        if not decoder.eof or decoder.unused_data or start + _PIECE < len(body):
            raise MalformedBodyError(
                "the body is not one whole gzip member as Content-Encoding says"
            )
        return decoded

    def _grow(self, decoded: bytearray, piece: bytes) -> None:
        if len(decoded) + len(piece) > self.limit.decoded:
            raise self._too_large("decompressed", self.limit.decoded)
        self._bodies.take(self, len(piece))
        decoded += piece

    def _too_large(self, what: str, limit: int) -> BodyTooLargeError:
        return BodyTooLargeError(f"the body {what} may be at most {limit} bytes{self.limit.why}")


class CloseUnreadBodies:
    """ASGI middleware: an answer that leaves something of a body unread says that the connection
    closes.

    What is left would be taken for the next request. That ends also what is sent with a request
    that has no use for a body. The connection sees to it that the answer is not lost
    (`connection`).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(dict(scope["headers"])):
            await self._app(scope, receive, send)
            return
        complete = False

        async def receive_noted() -> Message:
            nonlocal complete
            message = await receive()
            complete = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def send_noted(message: Message) -> None:
            if not complete and message["type"] == "http.response.start":
                kept = [
                    (name, value)
                    for name, value in message["headers"]
                    if name.lower() != b"connection"
                ]
                message = {**message, "headers": [*kept, (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive_noted, send_noted)


def _large(n: int) -> int:
    """Return how many of a body's bytes count as those of a large one."""
    return n if n > _PIECE else 0


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a request with these headers has a body of at least one byte, as far as they
    say.
    """
    length = headers.get(b"content-length")
    return (length is not None and length.strip(b"0") != b"") or b"transfer-encoding" in headers


def media_type(headers: Mapping[bytes, bytes]) -> str:
    """Return the Content-Type without its parameters."""
    given = headers.get(b"content-type", b"")
    return _TYPES.get(given) or given.partition(b";")[0].strip().lower().decode("latin-1")


def _check_transfer(scope: Scope) -> None:
    codings = [
        value.strip().lower() for name, value in scope["headers"] if name == b"transfer-encoding"
    ]
    if codings != [
        b"chunked"
    ]:  # the parser takes chunks apart, and passes on what else was done to the body
        given = b", ".join(codings).decode("latin-1")
        raise UnsupportedTransferEncodingError(
            f"Transfer-Encoding {given[:80]!r} is not understood here; send chunked or none"
        )
