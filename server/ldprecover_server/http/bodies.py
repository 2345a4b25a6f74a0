"""Request bodies within bounds: who sends it and to what decides how much is read, before any of it is."""

import asyncio
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from anyio import CapacityLimiter, to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover_server.deadlines import Deadlines
from ldprecover_server.errors import (
    BodyTimeoutError,
    BodyTooLargeError,
    MalformedBodyError,
    QueueFullError,
    ServiceError,
    UnsupportedMediaTypeError,
    UnsupportedTransferEncodingError,
)

__all__ = ["BIG", "JSON", "Bodies", "Body", "CloseUnread", "Limit", "has_body", "media_type"]

BIG = 1 << 17
"""Bodies above this many bytes are decoded in a thread: they take more than a millisecond."""

JSON = "application/json"
_PIECE = 1 << 16


@dataclass(frozen=True)
class Limit:
    """How large a body may be, as sent and once decompressed, and of whom: `anonymous` callers have a share."""

    sent: int
    decoded: int
    anonymous: bool
    why: str = ""
    """Behind the refusal of a larger one: what would allow it."""


class Bodies:
    """What all bodies together hold of memory, from their first byte until they are decoded: at most `max_held` bytes.

    Bodies of more than 64 KiB hold three quarters of it at the most, and bodies without a key seven eighths, so that
    small submissions and callers with a key find room. A body that needs room that is not there takes it from
    the one of the anonymous that has been on its way for longest, and at least `patience` seconds: that one is answered
    408. So nobody keeps others out by sending slowly. A body that does not arrive within `seconds`, or of an
    anonymous caller within `anonymous_seconds`, is answered 408 too.
    """

    def __init__(
        self, max_held: int, seconds: float = 30.0, anonymous_seconds: float = 10.0, patience: float = 1.0
    ) -> None:
        self.max_held = max_held
        self.held = 0
        self._held_large = 0
        self._held_anonymous = 0
        self._patience = patience
        self._keyed, self._anonymous = Deadlines(seconds), Deadlines(anonymous_seconds)
        self._arriving: dict[Body, float] = {}  # of the anonymous, in the order in which they began
        self._lock = threading.Lock()  # gzip is undone in threads
        self.threads = CapacityLimiter(1)  # decoded JSON is many times its text

    def take(self, body: "Body", n: int) -> None:
        """Count `n` more bytes as held by a body. Raises QueueFullError where there is no room."""
        with self._lock:
            if not self._has_room(body, n):
                raise QueueFullError("the server holds as many bytes of submissions as it may")
            self._count(body, n)

    def _has_room(self, body: "Body", n: int) -> bool:
        if self.held + n > self.max_held:
            return False
        if self._held_large + _large(body.bytes + n) - _large(body.bytes) > self.max_held * 3 // 4:
            return False
        return not (body.limit.anonymous and self._held_anonymous + n > self.max_held * 7 // 8)

    def make_room(self, body: "Body", n: int) -> None:
        """End the slowest bodies of the anonymous until `n` bytes have room, or none is left. In the event loop."""
        before = self._anonymous.loop.time() - self._patience
        while not self._has_room(body, n):
            slowest = next(iter(self._arriving), None)
            if slowest is None or slowest is body or self._arriving[slowest] > before:
                return
            slowest.expire("the server needs the room of bodies that arrive slowly")

    def _count(self, body: "Body", n: int) -> None:
        self._held_large += _large(body.bytes + n) - _large(body.bytes)
        body.bytes += n
        self.held += n
        self._held_anonymous += n if body.limit.anonymous else 0

    def release(self, body: "Body") -> None:
        """Count nothing more as held by a body."""
        if body.bytes:
            with self._lock:
                self._count(body, -body.bytes)

    def began(self, body: "Body") -> tuple[Deadlines, int]:
        """Note that a body begins to arrive; return what will end it."""
        deadlines = self._anonymous if body.limit.anonymous else self._keyed
        if body.limit.anonymous:
            self._arriving[body] = deadlines.loop.time()
        late = f"the body did not arrive within {deadlines.seconds:g} seconds"
        return deadlines, deadlines.add(lambda: body.expire(late))

    def ended(self, body: "Body") -> None:
        """Note that a body has arrived, or never will."""
        self._arriving.pop(body, None)


class Body:
    """The body of one request."""

    def __init__(self, bodies: Bodies, scope: Scope, receive: Receive) -> None:
        self._bodies = bodies
        self.headers: Mapping[bytes, bytes] = dict(scope["headers"])
        self._scope = scope
        self._receive = receive
        self.limit = Limit(0, 0, anonymous=True)
        self.bytes = 0
        """How many are held."""
        self.complete = not has_body(self.headers)
        """Whether nothing of it is left to be received."""
        self._task: asyncio.Task[object] | None = None
        self._late: str | None = None

    @property
    def media_type(self) -> str:
        """The Content-Type without its parameters."""
        return media_type(self.headers)

    async def read(self, limit: Limit, types: tuple[str, ...] = (JSON,)) -> bytes | bytearray:
        """Return the whole body, decompressed; it is held until `release`.

        Raises BodyTooLargeError, UnsupportedMediaTypeError, UnsupportedTransferEncodingError, MalformedBodyError,
        BodyTimeoutError or QueueFullError.
        """
        self.limit = limit
        encoding = self._check_headers(types)
        body = await self._receive_in_time()
        if not body or encoding != "gzip":
            return body
        if len(body) > _PIECE // 4:
            return await to_thread.run_sync(self._gunzip, body, limiter=self._bodies.threads)
        return self._gunzip(body)

    def release(self) -> None:
        """Give back what the body holds."""
        self._bodies.release(self)

    def expire(self, why: str) -> None:
        """End the reading of the body: it raises BodyTimeoutError."""
        self._bodies.ended(self)
        self.release()
        if self._task is not None and self._late is None:
            self._late = why
            self._task.cancel()

    def _check_headers(self, types: tuple[str, ...]) -> str:
        headers = self.headers
        length = headers.get(b"content-length", b"0").lstrip(b"0") or b"0"
        if length.isdigit() and (len(length) > 18 or int(length) > self.limit.sent):
            raise self._too_large("as sent", self.limit.sent)
        if b"transfer-encoding" in headers:
            _check_transfer(self._scope)
        encoding = headers.get(b"content-encoding", b"identity").decode("latin-1").strip().lower()
        if encoding not in ("identity", "gzip"):
            raise UnsupportedMediaTypeError(f"Content-Encoding {encoding[:80]!r} is not read here; send gzip or none")
        if not self.complete and (sent := self.media_type) not in types:
            named = f"Content-Type {sent[:80]!r}" if sent else "A body without Content-Type"
            raise UnsupportedMediaTypeError(f"{named} is not read here; send {' or '.join(types)}")
        return encoding

    async def _receive_in_time(self) -> bytes | bytearray:
        deadlines, number = self._bodies.began(self)
        self._task = asyncio.current_task(deadlines.loop)
        try:
            return await self._receive_all()
        except asyncio.CancelledError:
            if self._late is not None and self._task is not None and self._task.uncancel() == 0:
                raise BodyTimeoutError(self._late) from None
            raise
        finally:
            self._task = None
            deadlines.remove(number)
            self._bodies.ended(self)

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
            self._bodies.make_room(self, len(piece))
            self._bodies.take(self, len(piece))
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
            raise MalformedBodyError(f"the body is not gzip as Content-Encoding says: {error}") from error
        except ServiceError:
            decoded.clear()  # a refusal raised in a thread stays in a cycle with its frames until a collection
            raise
        if not decoder.eof or decoder.unused_data or start + _PIECE < len(body):
            raise MalformedBodyError("the body is not one whole gzip member as Content-Encoding says")
        return decoded

    def _grow(self, decoded: bytearray, piece: bytes) -> None:
        if len(decoded) + len(piece) > self.limit.decoded:
            raise self._too_large("decompressed", self.limit.decoded)
        self._bodies.take(self, len(piece))
        decoded += piece

    def _too_large(self, what: str, limit: int) -> BodyTooLargeError:
        return BodyTooLargeError(f"the body {what} may be at most {limit} bytes{self.limit.why}")


class CloseUnread:
    """ASGI middleware: an answer that leaves something of a body unread says that the connection closes.

    What is left would be taken for the next request. That ends also what is sent with a request that has no use
    for a body. The connection sees to it that the answer is not lost (`connection`).
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
                kept = [(name, value) for name, value in message["headers"] if name.lower() != b"connection"]
                message = {**message, "headers": [*kept, (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive_noted, send_noted)


def _large(n: int) -> int:
    """Return how many of a body's bytes count as those of a large one."""
    return n if n > _PIECE else 0


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a request with these headers has a body of at least one byte, as far as they say."""
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0").lstrip(b"0") != b""


def media_type(headers: Mapping[bytes, bytes]) -> str:
    """Return the Content-Type without its parameters."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")


def _check_transfer(scope: Scope) -> None:
    codings = [value.strip().lower() for name, value in scope["headers"] if name == b"transfer-encoding"]
    if codings != [b"chunked"]:  # the parser takes chunks apart, and passes on what else was done to the body
        given = b", ".join(codings).decode("latin-1")
        raise UnsupportedTransferEncodingError(
            f"Transfer-Encoding {given[:80]!r} is not understood here; send chunked or none"
        )
