"""A reverse proxy to the server of another process or machine."""

from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from http import HTTPStatus

import httpx
from anyio import create_task_group
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ldprecover_client.bulk import MAX_BODY_BYTES
from ldprecover_experiments.drill.guard import HEADER
from ldprecover_experiments.drill.responses import problem

TIMEOUT = httpx.Timeout(30.0, read=1230.0)
"""Seconds; a server may take 1,200 s for an analysis."""

_HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "expect",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
"""Headers of one connection (RFC 9110, 7.6.1), and Expect, which this server answers."""

_OWN = {"cookie", "host", "origin", "referer", HEADER.lower()}
"""Request headers for the drill alone: its token, and what the guard has checked."""

_WRITTEN_HERE = {"date", "server"}


class _BodyTooLargeError(Exception):
    """The body of a request exceeds MAX_BODY_BYTES."""


class Proxy:
    """An ASGI application that sends requests to the base URL of `client`.

    Bodies are streamed both ways, those of requests up to the limit of a server. A call is
    cancelled when its caller disconnects.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        incoming = Request(scope, receive)
        async with create_task_group() as tasks:

            async def cancel_on_disconnect() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            async def body() -> AsyncIterator[bytes]:
                size = 0
                async for piece in incoming.stream():
                    size += len(piece)
                    if size > MAX_BODY_BYTES:
                        raise _BodyTooLargeError
                    yield piece
                tasks.start_soon(cancel_on_disconnect)

            headers = incoming.headers
            if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
                content = body()
            else:
                content = None
                tasks.start_soon(cancel_on_disconnect)
            try:
                request = httpx.Request(  # without the client's default headers
                    incoming.method,
                    self._url(scope),
                    headers=_forwarded(headers, _OWN),
                    content=content,
                    extensions={"timeout": TIMEOUT.as_dict()},
                )
                answer = await self._client.send(request, stream=True)
            except ClientDisconnect:
                pass
            except _BodyTooLargeError:
                reason = f"The drill passes on no body of more than {MAX_BODY_BYTES:,} bytes."
                too_large = problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)
                await too_large(scope, receive, send)
            except httpx.InvalidURL:
                invalid = problem(HTTPStatus.BAD_REQUEST, "The path cannot be read.")
                await invalid(scope, receive, send)
            except httpx.HTTPError as error:
                await bad_gateway(error)(scope, receive, send)
            else:
                await _pass_on(answer, send)
            tasks.cancel_scope.cancel()

    def _url(self, scope: Scope) -> httpx.URL:
        path = scope.get("raw_path", scope["path"].encode()).split(b"?")[0]
        query = scope["query_string"]
        base = self._client.base_url
        raw_path = base.raw_path.rstrip(b"/") + path + (b"?" + query if query else b"")
        url = base.copy_with(raw_path=raw_path)
        if url.raw_path != raw_path:  # httpx resolved dots, which could leave the base path
            raise httpx.InvalidURL("the path is not in its plain form")
        return url


async def _pass_on(answer: httpx.Response, send: Send) -> None:
    headers = _forwarded(answer.headers, _WRITTEN_HERE)
    async with aclosing(answer):
        await send(
            {"type": "http.response.start", "status": answer.status_code, "headers": headers}
        )
        # Without a last message the caller sees that the body is incomplete.
        with suppress(httpx.HTTPError):
            async for piece in answer.aiter_raw():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


def bad_gateway(error: httpx.HTTPError) -> Response:
    """Return the problem of a server that does not answer."""
    reason = f"The server does not answer the drill: {type(error).__name__}."
    return problem(HTTPStatus.BAD_GATEWAY, reason)


def _forwarded(headers: Headers | httpx.Headers, dropped: set[str]) -> list[tuple[bytes, bytes]]:
    """Return the raw headers without those of one connection and the dropped ones."""
    named = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    without = _HOP_BY_HOP | named | dropped
    return [
        (name, value)
        for name, value in headers.raw
        if name.decode("latin-1").lower() not in without
    ]
