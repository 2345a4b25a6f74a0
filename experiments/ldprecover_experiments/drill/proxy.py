"""A reverse proxy to the server behind a drill, which adds the drill to the server's page."""

import asyncio
import re
from collections.abc import AsyncIterator
from http import HTTPStatus

import httpx
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ldprecover_experiments.drill.guard import HEADER
from ldprecover_experiments.drill.responses import HEADERS, problem

MAX_BODY_BYTES = 64 << 20
"""Limit of a request body; the server's own limits are stricter."""
MAX_ANSWER_BYTES = 256 << 20

_MAX_PAGE_BYTES = 1 << 20
_TIMEOUT = httpx.Timeout(30.0, read=1230.0)
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

_CONDITIONAL = {"accept-encoding", "if-modified-since", "if-none-match", "range"}
"""Request headers with which the answer would not be the whole plain page."""

_CHANGED = {"etag", "last-modified", "content-length", *map(str.lower, HEADERS)}
"""Answer headers that are wrong for the changed page."""

_WRITTEN_HERE = {"date", "server"}


class _TooLargeError(Exception):
    """The request body exceeds MAX_BODY_BYTES."""


class Proxy:
    """Sends requests to the server at `url`, and inserts `head` into the HTML head of `/`."""

    def __init__(self, url: str, head: str) -> None:
        self._base = httpx.URL(url)
        self._head = head.encode()
        self._client = httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=_TIMEOUT)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        incoming = Request(scope, receive)
        is_page = incoming.url.path == "/" and incoming.method in ("GET", "HEAD")
        length = incoming.headers.get("content-length", "0")
        has_body = "transfer-encoding" in incoming.headers or length != "0"
        read = asyncio.Event()
        try:
            if length.isdigit() and int(length) > MAX_BODY_BYTES:
                raise _TooLargeError
            request = httpx.Request(  # without the client's default headers
                "GET" if is_page else incoming.method,
                self._url(scope),
                headers=_forwarded(incoming.headers, _OWN | (_CONDITIONAL if is_page else set())),
                content=_body(incoming, read) if has_body else None,
                extensions={"timeout": _TIMEOUT.as_dict()},
            )
            if not has_body:
                read.set()
            answer = await self._answer(request, receive, read)
        except ClientDisconnect:
            return
        except httpx.InvalidURL:
            await problem(HTTPStatus.BAD_REQUEST, "The path cannot be read.")(scope, receive, send)
            return
        except _TooLargeError:
            reason = f"The drill passes no body of more than {MAX_BODY_BYTES:,} bytes through."
            too_large = problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)
            await too_large(scope, receive, send)
            return
        except httpx.HTTPError as error:
            await _bad_gateway(error)(scope, receive, send)
            return
        try:
            if is_page and answer.headers.get("content-type", "").startswith("text/html"):
                page = await self._page(answer)
                await page(scope, receive, send)
            else:
                await _pass_on(answer, send)
        finally:
            await answer.aclose()

    async def _answer(
        self, request: httpx.Request, receive: Receive, read: asyncio.Event
    ) -> httpx.Response:
        """Return the server's answer. Raises ClientDisconnect if the caller leaves before it."""

        async def disconnected() -> None:
            await read.wait()  # until then the body's reader receives the messages
            while (await receive())["type"] != "http.disconnect":
                pass

        call = asyncio.create_task(self._client.send(request, stream=True))
        watch = asyncio.create_task(disconnected())
        try:
            await asyncio.wait({call, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise ClientDisconnect
            return call.result()
        finally:
            call.cancel()
            watch.cancel()

    def _url(self, scope: Scope) -> httpx.URL:
        path = scope.get("raw_path", scope["path"].encode()).split(b"?")[0]
        query = scope["query_string"]
        raw_path = self._base.raw_path.rstrip(b"/") + path + (b"?" + query if query else b"")
        url = self._base.copy_with(raw_path=raw_path)
        if url.raw_path != raw_path:  # httpx resolved dots, which could leave the base path
            raise httpx.InvalidURL("the path is not in its plain form")
        return url

    async def _page(self, answer: httpx.Response) -> Response:
        html = bytearray()
        try:
            async for piece in answer.aiter_raw():
                html += piece
                if len(html) > _MAX_PAGE_BYTES:
                    break
        except httpx.HTTPError as error:
            return _bad_gateway(error)
        body = re.sub(rb"<head[^>]*>", lambda tag: tag[0] + self._head, bytes(html), count=1)
        page = Response(body, answer.status_code, HEADERS)
        page.raw_headers += _forwarded(answer.headers, _CHANGED | _WRITTEN_HERE)
        return page


async def _body(request: Request, read: asyncio.Event) -> AsyncIterator[bytes]:
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > MAX_BODY_BYTES:
            raise _TooLargeError
        if piece:
            yield piece
    read.set()


async def _pass_on(answer: httpx.Response, send: Send) -> None:
    headers = _forwarded(answer.headers, _WRITTEN_HERE)
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    size = 0
    try:
        async for piece in answer.aiter_raw():
            size += len(piece)
            if size > MAX_ANSWER_BYTES:
                raise RuntimeError(f"the server's answer exceeds {MAX_ANSWER_BYTES:,} bytes")
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except httpx.HTTPError:  # without a last message the caller sees that the body is incomplete
        return
    await send({"type": "http.response.body", "body": b""})


def _bad_gateway(error: httpx.HTTPError) -> Response:
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
