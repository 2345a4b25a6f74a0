"""Reads request bodies within a limit that caller and route set before the first byte, and JSON."""

import asyncio
import traceback
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

from anyio import to_thread
from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.types import Message, Receive, Scope

from ldprecover.protocols import PROTOCOLS
from ldprecover.protocols.wire import MEDIA_TYPE
from ldprecover_interface.invalid_fields import invalid_fields
from ldprecover_server.errors import (
    BodyTimeoutError,
    BodyTooLargeError,
    BusyError,
    InvalidRequestError,
    MalformedBodyError,
    ServiceError,
    UnsupportedMediaTypeError,
    UnsupportedTransferEncodingError,
)
from ldprecover_server.http.dependencies import Caller
from ldprecover_server.limits import BodyMemory

THREAD_BYTES = 1 << 17
"""Bodies above this size are decoded in a thread: decoding takes more than a millisecond."""

JSON = "application/json"
_MEDIA_TYPES = {media_type.encode(): media_type for media_type in (JSON, MEDIA_TYPE)}

_PIECE_BYTES = 1 << 16
"""Bytes decompressed in one step."""
_THREAD_GZIP_BYTES = _PIECE_BYTES // 4
"""Compressed bodies above this size are decompressed in a thread."""

_LENGTH_DIGITS = 18
"""Digits of a Content-Length; a longer number exceeds every limit, and `int` rejects 4,300."""

LARGE = 1 << 16
"""Bytes above which a body is parsed and validated in a thread: it takes a millisecond or more."""

_UNCOUNTED_BYTES = 1 << 10
"""Smaller bodies of anonymous callers need no reservation."""

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class BodyLimit:
    """The limit on a request body: bytes `sent`, and bytes once `decoded` (decompressed)."""

    sent: int
    decoded: int
    anonymous: bool
    """Whether the caller has no valid key."""
    why: str = ""
    """The end of the error message for a larger body: what would allow it."""


_NO_BODY = BodyLimit(0, 0, anonymous=True)


class Body:
    """The body of one request."""

    def __init__(self, memory: BodyMemory, scope: Scope, receive: Receive) -> None:
        self._memory = memory
        self.headers: Mapping[bytes, bytes] = dict(scope["headers"])
        self._scope = scope
        self._receive = receive
        self.media_type = media_type(self.headers)
        """The Content-Type without its parameters."""
        self.limit = _NO_BODY
        self._reserved = 0
        """Bytes of memory reserved for the body."""
        self._task: asyncio.Task[object] | None = None
        self._expired = False

    async def read(
        self, limit: BodyLimit, media_types: tuple[str, ...] = (JSON,)
    ) -> bytes | bytearray:
        """Return the whole body, decompressed. `release` its memory afterwards.

        Raises BodyTooLargeError, UnsupportedMediaTypeError, UnsupportedTransferEncodingError,
        MalformedBodyError, BodyTimeoutError or BusyError.
        """
        self.limit = limit
        is_gzip = self._check_headers(media_types)
        memory = self._memory
        timeouts = memory.anonymous_timeouts if limit.anonymous else memory.timeouts
        number = timeouts.add(self._expire)
        self._task = asyncio.current_task(timeouts.loop)
        try:
            body = await self._receive_all()
        except asyncio.CancelledError:
            # This is what asyncio.timeout does; it would start a timer for each body. If someone
            # else has cancelled the task too, `uncancel` is not 0 and the cancellation stands.
            if self._expired and self._task is not None and self._task.uncancel() == 0:
                raise BodyTimeoutError(
                    f"the body did not arrive within {timeouts.seconds:g} seconds"
                ) from None
            raise
        finally:
            self._task = None
            timeouts.remove(number)
        if not is_gzip or not body:
            return body
        if len(body) > _THREAD_GZIP_BYTES:
            return await to_thread.run_sync(self._gunzip, body, limiter=self._memory.threads)
        return self._gunzip(body)

    def release(self) -> None:
        """Release the memory of the body."""
        n, self._reserved = self._reserved, 0
        self._memory.budget.release(n)

    def _expire(self) -> None:
        """Stop `read`, which raises BodyTimeoutError."""
        if self._task is not None and not self._expired:
            self._expired = True
            self._task.cancel()

    def _check_headers(self, media_types: tuple[str, ...]) -> bool:
        """Return whether the body is compressed with gzip."""
        headers = self.headers
        length = headers.get(b"content-length")
        if length is not None and length.isdigit():
            length = length.lstrip(b"0")
            if len(length) > _LENGTH_DIGITS or int(length or b"0") > self.limit.sent:
                raise self._too_large("as sent", self.limit.sent)
        if b"transfer-encoding" in headers:
            _check_transfer_encoding(self._scope)
        is_gzip = False
        if (content_encoding := headers.get(b"content-encoding")) is not None:
            encoding = content_encoding.decode("latin-1").strip().lower()
            is_gzip = encoding == "gzip"
            if not is_gzip and encoding != "identity":
                raise UnsupportedMediaTypeError(
                    f"Content-Encoding {encoding[:80]!r} is not supported; send gzip or none"
                )
        if has_body(self.headers) and self.media_type not in media_types:
            name = self.media_type
            subject = f"Content-Type {name[:80]!r}" if name else "A body without Content-Type"
            raise UnsupportedMediaTypeError(
                f"{subject} is not supported; send {' or '.join(media_types)}"
            )
        return is_gzip

    async def _receive_all(self) -> bytes | bytearray:
        body: bytes | bytearray = b""
        message: Message = {}
        piece = b""
        more = True
        try:
            while more:
                message = await self._receive()
                if message["type"] != "http.request":
                    raise BodyTimeoutError("the client disconnected before the end of the body")
                piece, more = message.get("body", b""), message.get("more_body", False)
                if len(body) + len(piece) > self.limit.sent:
                    raise self._too_large("as sent", self.limit.sent)
                self._reserve(len(piece))
                if not body:
                    body = piece if not more else bytearray(piece)
                else:
                    body += piece
        except BaseException:
            # The error keeps this frame until it is answered and the client has read the answer.
            body, message, piece = b"", {}, b""
            raise
        return body

    def _gunzip(self, body: bytes | bytearray) -> bytearray:
        decoder = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # 16: with the header of gzip
        decoded = bytearray()
        try:
            for start in range(0, len(body), _PIECE_BYTES):
                rest: bytes | bytearray = body[start : start + _PIECE_BYTES]
                while rest:
                    self._append(decoded, decoder.decompress(rest, _PIECE_BYTES))
                    rest = decoder.unconsumed_tail
                if decoder.eof:
                    break
            while not decoder.eof and (piece := decoder.decompress(b"", _PIECE_BYTES)):
                self._append(decoded, piece)
        except zlib.error as error:
            raise MalformedBodyError(f"the body is not valid gzip: {error}") from error
        except ServiceError:
            # An error raised in a thread forms a cycle with its frames and would keep the bytes
            # until the next garbage collection.
            decoded.clear()
            raise
        if not decoder.eof or decoder.unused_data or start + _PIECE_BYTES < len(body):
            raise MalformedBodyError(
                "Content-Encoding is gzip, and the body is not exactly one gzip member"
            )
        return decoded

    def _append(self, decoded: bytearray, piece: bytes) -> None:
        if len(decoded) + len(piece) > self.limit.decoded:
            raise self._too_large("decompressed", self.limit.decoded)
        self._reserve(len(piece))
        decoded += piece

    def _too_large(self, form: str, limit: int) -> BodyTooLargeError:
        return BodyTooLargeError(f"the body {form} may be at most {limit} bytes{self.limit.why}")

    def _reserve(self, n: int) -> None:
        if not self._memory.budget.reserve(n):
            raise BusyError("the memory for request bodies is in use; retry later")
        self._reserved += n


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request with these headers announces a body of at least one byte."""
    length = headers.get(b"content-length")
    return (length is not None and length.strip(b"0") != b"") or b"transfer-encoding" in headers


def media_type(headers: Mapping[bytes, bytes]) -> str:
    """Return the Content-Type without its parameters."""
    value = headers.get(b"content-type", b"")
    return _MEDIA_TYPES.get(value) or value.partition(b";")[0].strip().lower().decode("latin-1")


def _check_transfer_encoding(scope: Scope) -> None:
    codings = [
        value.strip().lower() for name, value in scope["headers"] if name == b"transfer-encoding"
    ]
    # uvicorn decodes chunks and passes other codings on as they are, such as gzip.
    if codings != [b"chunked"]:
        sent = b", ".join(codings).decode("latin-1")
        raise UnsupportedTransferEncodingError(
            f"Transfer-Encoding {sent[:80]!r} is not supported; send chunked or none"
        )


def body_schema(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """Return the `openapi_extra` of a route whose endpoint reads this body."""
    schema: dict[str, Any] = {"$ref": f"#/components/schemas/{model.__name__}"}
    if not required:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return {"requestBody": {"required": required, "content": {JSON: {"schema": schema}}}}


@asynccontextmanager
async def json_body(
    request: Request, caller: Caller, model: type[M], max_bytes: int, default: M | None = None
) -> AsyncIterator[M]:
    """Yield the body, of at most `max_bytes`; the `default` stands for no body and for null.

    Inside the block the memory of an anonymous caller's body is reserved. Raises BusyError,
    InvalidRequestError, and what `Body.read` raises.
    """
    body = Body(caller.services.limits.bodies, request.scope, request.receive)
    with ExitStack() as reservation:
        try:
            message = await _read(body, caller, model, max_bytes, default, reservation)
        except BaseException as error:
            # The error keeps its frames until it is answered, and that of a thread for longer.
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            body.release()
        yield message


async def _read(
    body: Body,
    caller: Caller,
    model: type[M],
    max_bytes: int,
    default: M | None,
    reservation: ExitStack,
) -> M:
    limits, is_anonymous = caller.services.limits, not caller.is_known
    limit = min(max_bytes, limits.max_body_bytes)
    data = await body.read(BodyLimit(limit, max_bytes, is_anonymous))
    if is_anonymous and len(data) > _UNCOUNTED_BYTES:
        reservation.enter_context(limits.decoded.hold(len(data)))
    parse = partial(parse_json, model, data, default)
    if len(data) > LARGE:
        return await to_thread.run_sync(parse, limiter=limits.bodies.threads)
    return parse()


def parse_json(model: type[M], data: bytes | bytearray, default: M | None = None) -> M:
    """Return the message of a JSON body.

    Raises InvalidRequestError with the invalid fields, and for what RFC 8259 does not allow, which
    includes NaN, a byte order mark and half a surrogate pair. Of a repeated field the last counts.
    """
    value: Any = None
    errors: list[Any] = [{"type": "missing", "loc": (), "input": None}]
    if data:
        try:
            value = from_json(data, allow_inf_nan=False)
        except ValueError as error:
            raise InvalidRequestError(f"the body is not JSON: {error}") from None
    if value is None and default is not None:
        return default
    if data:
        try:
            return model.model_validate(value)
        except ValidationError as error:
            errors = error.errors(include_url=False)
    raise InvalidRequestError(invalid_fields(errors, value, _schema(model, tuple(PROTOCOLS))))


@lru_cache
def _schema(model: type[BaseModel], protocols: tuple[str, ...]) -> dict[str, Any]:
    """Return the JSON schema of a body. That of a round depends on `protocols`."""
    return model.model_json_schema()
