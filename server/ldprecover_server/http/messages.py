"""The messages of endpoints: JSON bodies within limits, JSON responses, and disconnects."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import ExitStack, asynccontextmanager
from functools import lru_cache, partial
from typing import Any, TypeVar

from anyio import to_thread
from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive

from ldprecover.protocols import PROTOCOLS
from ldprecover_interface.base import Message
from ldprecover_interface.invalid_fields import invalid_fields
from ldprecover_server.errors import InvalidRequestError
from ldprecover_server.http.bodies import JSON, Body, BodyLimit
from ldprecover_server.http.dependencies import Caller

LARGE = 1 << 16
"""Bytes above which a body is parsed and validated in a thread: it takes a millisecond or more."""

_UNCOUNTED_BYTES = 1 << 10
"""Smaller bodies of anonymous callers need no reservation."""

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


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


async def cancel_on_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`; cancel it if the client disconnects first.

    The request body must have been read, because this function receives the following messages.
    Raises ClientDisconnect, and any error of `work`.
    """

    async def wait_for_disconnect() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working = asyncio.ensure_future(work)
    disconnected = asyncio.ensure_future(wait_for_disconnect())
    try:
        await asyncio.wait([working, disconnected], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, disconnected):
            task.cancel()
        await asyncio.gather(working, disconnected, return_exceptions=True)


def json_response(
    message: Message,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    labels: bytes | None = None,
) -> Response:
    """Return a message as JSON; floats are written so that they read back exactly.

    For large messages: FastAPI would validate a returned model and copy it before writing. `labels`
    are JSON as stored, and replace the empty `items` of the message: as texts they would take ten
    times the memory.
    """
    body = message.to_json()
    if labels is not None:
        view, start = memoryview(body), body.index(b'"items":[]')  # slices of a view are no copies
        body = b"".join([view[: start + 8], labels, view[start + 10 :]])
    return Response(body, status, dict(headers or {}), "application/json")
