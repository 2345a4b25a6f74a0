"""Request bodies within bounds: sizes checked as bytes arrive, gzip undone as it streams."""

import asyncio
import threading
import zlib
from collections.abc import Mapping

from anyio import to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover.wire import MEDIA_TYPE
from ldprecover_server.deadlines import Deadlines
from ldprecover_server.errors import (
    BodyTimeoutError,
    BodyTooLargeError,
    QueueFullError,
    ServiceError,
    UnsupportedMediaTypeError,
    UnsupportedTransferEncodingError,
)
from ldprecover_server.http.problems import refuse

__all__ = ["BIG", "BodyGuard", "media_type"]

BIG = 1 << 18
"""Bodies above this many bytes are decoded in a thread, so that the event loop goes on serving."""

_DECODED = 32
"""What JSON can grow to when it is decoded whole, in multiples of its text: `[[],[],...]` does to 28."""

_JSON = "application/json"
_PIECE = 1 << 16


class BodyGuard:
    """ASGI middleware: refuses a body that is too large or in an unknown form; undoes gzip.

    Bodies are counted while they are read and decompressed in pieces, and all bodies held at one
    time, from their first byte to the end of their answer, stay within `max_held_bytes`; past it
    the answer is 503. So memory is bounded whatever is sent, by however many. Bodies of calls that
    are no submissions the framework decodes as they come: they count as what they may grow to, and
    gzip may not make them larger than a body may be as sent. A body that does not arrive within
    `body_seconds` is refused, and what it held is free again.
    """

    def __init__(
        self, app: ASGIApp, max_body_bytes: int, max_decoded_bytes: int, max_held_bytes: int, body_seconds: float = 30.0
    ) -> None:
        self.app = app
        self.max_body_bytes = max_body_bytes
        self.max_decoded_bytes = max_decoded_bytes
        self.max_held_bytes = max_held_bytes
        self.deadlines = Deadlines(body_seconds)
        self.held = 0
        self.lock = threading.Lock()  # gzip is undone in threads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        hold = _Hold(self)
        try:
            try:
                headers = dict(scope["headers"])
                if scope["path"].endswith("/reports"):
                    body = await self._read(scope, headers, receive, hold, self.max_decoded_bytes)
                else:
                    limit = min(self.max_body_bytes, self.max_decoded_bytes)
                    body = await self._read(scope, headers, receive, hold, limit)
                    hold.take(min(_DECODED * len(body or b""), self.max_held_bytes - hold.bytes))
            except ServiceError as error:
                response = refuse(error)
                # What is left of the body is not read, so the connection cannot serve another request.
                response.headers["Connection"] = "close"
                await response(scope, receive, send)
                return
            if body is not None:  # else the client went away
                await self.app(scope, _replay(body, receive), send)
        finally:
            hold.release()

    async def _read(
        self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, hold: "_Hold", max_decoded: int
    ) -> bytes | bytearray | None:
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.max_body_bytes:
            raise _too_large(self.max_body_bytes, "as sent")
        if b"transfer-encoding" in headers:
            _check_transfer(scope)
        encoding = headers.get(b"content-encoding", b"identity").decode("latin-1").strip().lower()
        if encoding not in ("identity", "gzip"):
            raise UnsupportedMediaTypeError(f"Content-Encoding {encoding!r} is not read here; send gzip or none")
        body = await self._receive_in_time(receive, hold)
        if not body:
            return body
        sent = media_type(headers)
        if sent not in (_JSON, MEDIA_TYPE):
            named = f"Content-Type {sent!r}" if sent else "A body without Content-Type"
            raise UnsupportedMediaTypeError(f"{named} is not read here; send {_JSON} or {MEDIA_TYPE}")
        if encoding != "gzip":
            if len(body) > max_decoded:
                raise _too_large(max_decoded, "of this call")
            return body
        if len(body) > _PIECE:
            return await to_thread.run_sync(self._gunzip, body, hold, max_decoded)
        return self._gunzip(body, hold, max_decoded)

    async def _receive_in_time(self, receive: Receive, hold: "_Hold") -> bytes | bytearray | None:
        task = asyncio.current_task(self.deadlines.loop)
        assert task is not None
        late = False

        def expire() -> None:
            nonlocal late
            late = True
            task.cancel()

        number = self.deadlines.add(expire)
        try:
            return await self._receive(receive, hold)
        except asyncio.CancelledError:
            if late and task.uncancel() == 0:
                # What a stalled upload holds of the allowance it holds no longer.
                late_by = f"the body did not arrive within {self.deadlines.seconds:g} seconds"
                raise BodyTimeoutError(late_by) from None
            raise
        finally:
            self.deadlines.remove(number)

    async def _receive(self, receive: Receive, hold: "_Hold") -> bytes | bytearray | None:
        body: bytes | bytearray = b""
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return None
            piece, more = message.get("body", b""), message.get("more_body", False)
            hold.take(len(piece))
            if not body:
                body = piece if not more else bytearray(piece)
            else:
                body += piece
            if len(body) > self.max_body_bytes:
                raise _too_large(self.max_body_bytes, "as sent")
        return body

    def _gunzip(self, body: bytes | bytearray, hold: "_Hold", max_decoded: int) -> bytearray:
        decoder = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        decoded = bytearray()
        try:
            for start in range(0, len(body), _PIECE):
                rest: bytes | bytearray = body[start : start + _PIECE]
                while rest:
                    _grow(decoded, decoder.decompress(rest, _PIECE), hold, max_decoded)
                    rest = decoder.unconsumed_tail
            while piece := decoder.decompress(b"", _PIECE):
                _grow(decoded, piece, hold, max_decoded)
        except zlib.error as error:
            raise UnsupportedMediaTypeError(f"the body is not gzip as Content-Encoding says: {error}") from error
        except ServiceError:
            decoded.clear()  # a refusal raised in a thread stays in a cycle with its frames until a collection
            raise
        if not decoder.eof or decoder.unused_data:
            raise UnsupportedMediaTypeError("the body is not one whole gzip member as Content-Encoding says")
        return decoded


def _replay(body: bytes | bytearray, receive: Receive) -> Receive:
    """Return a receive that gives the whole body in one message, then what the connection says."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class _Hold:
    """The bytes one request holds of the guard's allowance."""

    def __init__(self, guard: BodyGuard) -> None:
        self.guard = guard
        self.bytes = 0

    def take(self, n: int) -> None:
        with self.guard.lock:
            if self.guard.held + n > self.guard.max_held_bytes:
                raise QueueFullError("the server holds as many bytes of submissions as it may")
            self.guard.held += n
            self.bytes += n

    def release(self) -> None:
        with self.guard.lock:
            self.guard.held -= self.bytes
            self.bytes = 0


def _grow(decoded: bytearray, piece: bytes, hold: _Hold, limit: int) -> None:
    if len(decoded) + len(piece) > limit:
        raise _too_large(limit, "decompressed")
    hold.take(len(piece))
    decoded += piece


def _check_transfer(scope: Scope) -> None:
    codings = [value.strip().lower() for name, value in scope["headers"] if name == b"transfer-encoding"]
    if codings != [b"chunked"]:  # the parser takes chunks apart, and passes on what else was done to the body
        given = b", ".join(codings).decode("latin-1")
        raise UnsupportedTransferEncodingError(
            f"Transfer-Encoding {given!r} is not understood here; send chunked or none"
        )


def media_type(headers: Mapping[bytes, bytes]) -> str:
    """Return the Content-Type without its parameters."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")


def _too_large(limit: int, what: str) -> BodyTooLargeError:
    return BodyTooLargeError(f"the body {what} may be at most {limit} bytes")
