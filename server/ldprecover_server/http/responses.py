"""Responses: JSON, compressed, to conditional requests, and to callers that disconnect."""

import asyncio
import gzip
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive

from ldprecover_interface.base import Message

_GZIP_BYTES = 1 << 16
"""Bytes above which a body is compressed. 100,000 items take 5 MB, compressed 2 MB."""
_GZIP_LEVEL = 1

T = TypeVar("T")


def accepts_gzip(request: Request) -> bool:
    """Return whether the header Accept-Encoding prefers gzip to the body as it is."""
    weights: dict[str, float] = {}
    for coding in ",".join(request.headers.getlist("accept-encoding")).lower().split(","):
        name, _, parameters = coding.partition(";")
        weight = parameters.strip().removeprefix("q=") or "1"
        try:
            weights[name.strip()] = float(weight)
        except ValueError:
            weights[name.strip()] = 0.0
    weight_of_gzip = weights.get("gzip", weights.get("*", 0.0))
    return weight_of_gzip > 0 and weight_of_gzip >= weights.get("identity", 0.0)


def compress(response: Response, accepted: bool) -> Response:
    """Return the response, compressed with gzip if that is `accepted` and its body is large.

    It takes 30 ms a megabyte, so it runs in a thread.
    """
    response.headers.add_vary_header("Accept-Encoding")
    if accepted and len(response.body) > _GZIP_BYTES:
        response.body = gzip.compress(response.body, _GZIP_LEVEL, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))
        if (etag := response.headers.get("ETag", "")).startswith('"'):
            response.headers["ETag"] = f"W/{etag}"  # a strong one would name the other bytes too
    return response


def not_modified(request: Request, headers: Mapping[str, str]) -> Response | None:
    """Return a 304 with these headers if If-None-Match has their ETag, strong or weak, or `*`."""
    tags = request.headers.get("if-none-match", "").split(",")
    current = (headers["ETag"].removeprefix("W/"), "*")
    if {tag.strip().removeprefix("W/") for tag in tags}.isdisjoint(current):
        return None
    return Response(status_code=304, headers=headers)


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
