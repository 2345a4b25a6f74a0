"""Routes with a body: the caller and the size are checked before the first byte is read."""

import traceback
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar

from anyio import to_thread
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.responses import Response

from ldprecover_server.http.bodies import Body, BodyLimit
from ldprecover_server.http.decoding import parse_json
from ldprecover_server.http.dependencies import get_caller

LARGE = 1 << 16
"""Bytes above which a body is parsed and validated in a thread: it takes a millisecond or more."""

_UNCOUNTED_BYTES = 1 << 10
"""Smaller bodies of anonymous callers need no reservation."""

MaxBytes = Callable[[Request], Awaitable[int]]
E_ = TypeVar("E_", bound=Callable[..., Any])


def body_limit(max_bytes: MaxBytes) -> Callable[[E_], E_]:
    """Return a decorator that gives an endpoint its limit.

    `max_bytes` authorises the caller and returns the largest body; it runs before the body is read.
    """

    def mark(endpoint: E_) -> E_:
        setattr(endpoint, _ATTRIBUTE, max_bytes)
        return endpoint

    return mark


_ATTRIBUTE = "max_body_bytes"


class BodyRoute(APIRoute):
    """A route whose endpoint may have a `body_limit`.

    FastAPI reads a body before it runs the dependencies, so this class reads it first. While the
    request is handled, `request.state.reservation` holds the memory of an anonymous caller's body.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route, which reads the body within its limit."""
        handle = super().get_route_handler()
        max_bytes: MaxBytes | None = getattr(self.endpoint, _ATTRIBUTE, None)
        if max_bytes is None:
            return handle

        async def handle_body(request: Request) -> Response:
            limit = await max_bytes(request)
            with ExitStack() as reservation:
                request.state.reservation = reservation
                return await handle(await self._read(request, limit, reservation))

        return handle_body

    async def _read(self, request: Request, limit: int, reservation: ExitStack) -> Request:
        caller = await get_caller(request)
        limits, is_anonymous = caller.services.limits, not caller.is_known
        body = Body(limits.bodies, request.scope, request.receive)
        try:
            data = await body.read(
                BodyLimit(min(limit, limits.max_body_bytes), limit, is_anonymous)
            )
            if not data:
                return _ParsedRequest(request)
            if is_anonymous and len(data) > _UNCOUNTED_BYTES:
                reservation.enter_context(limits.decoded.hold(len(data)))
            if len(data) <= LARGE:
                return _ParsedRequest(request, parse_json(data))
            value = await to_thread.run_sync(self._validated, data, limiter=limits.bodies.threads)
            return _ParsedRequest(request, value)
        except BaseException as error:
            # The error keeps its frames until it is answered, and that of a thread for longer.
            data = b""
            traceback.clear_frames(error.__traceback__)
            raise
        finally:
            body.release()

    def _validated(self, data: bytes | bytearray) -> Any:
        """Return the model of a large body, which FastAPI then takes as it is."""
        assert self.body_field is not None
        value = parse_json(data)
        model, errors = self.body_field.validate(value, loc=("body",))
        if errors:
            raise RequestValidationError(errors, body=value)
        return model


_NO_BODY = object()


class _ParsedRequest(Request):
    """A request whose body was read and parsed; its bytes are not kept."""

    def __init__(self, request: Request, value: Any = _NO_BODY) -> None:
        super().__init__(request.scope, request.receive)
        self._value = value

    async def body(self) -> bytes:
        """Return whether there is a body: FastAPI looks at nothing else of it."""
        return b"" if self._value is _NO_BODY else b"parsed"

    async def json(self) -> Any:
        """Return the value of the body."""
        return self._value
