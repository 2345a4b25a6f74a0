"""Passing a request through to the server that the drill stands before, and its answer back."""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine
from http import HTTPStatus
from typing import Any

import httpx
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ldprecover_experiments.drill.guard import HEADER
from ldprecover_experiments.drill.responses import HEADERS, problem

MAX_BODY_BYTES, MAX_ANSWER_BYTES = 64 << 20, 256 << 20
"""Of a body that is passed through; the server's own limits are stricter."""

_MAX_PAGE_BYTES = 1 << 20
_SECONDS = httpx.Timeout(30.0, read=1230.0)  # as long as a server may take for an analysis

_HOP_BY_HOP = {
    *(
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
    ),
    *(b"expect", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
}
"""Headers of one connection (RFC 9110, 7.6.1), and Expect, which is answered here."""

_KEPT_BACK = {b"cookie", b"host", b"origin", b"referer", HEADER.lower().encode()}
"""Headers that are the drill's alone: the browser's other secrets, and what the guard has judged.
"""

_SAID_HERE = {b"date", b"server"}
"""Headers of an answer that whoever sends it last writes."""

_OF_THE_PAGE = {b"accept-encoding", b"if-modified-since", b"if-none-match", b"range"}
"""Headers under which an answer would not be the whole page as it is."""


class _GoneError(Exception):
    """The caller did not wait."""


class _TooLargeError(Exception):
    """A body has more bytes than are passed through."""


class Passing:
    """Sends requests on to a server. In its page, `/`, stands what `head` adds to the HTML's
    head.
    """

    def __init__(self, url: str, head: str) -> None:
        self._base = httpx.URL(url)
        self._head = head.encode()
        self._http = httpx.AsyncClient(follow_redirects=False, trust_env=False)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["path"] == "/" and scope["method"] in ("GET", "HEAD")
        if _declared(scope) > MAX_BODY_BYTES:  # before a byte of it is read
            await _too_large()(scope, receive, send)
            return
        body = _Body(receive)
        try:
            request = httpx.Request(  # made here, it has no headers of the client's own
                "GET" if is_page else scope["method"],
                self._url(scope),
                headers=_headers(scope["headers"], _OF_THE_PAGE if is_page else set()),
                content=body.pieces() if body.is_there(scope) else None,
                extensions={"timeout": _SECONDS.as_dict()},
            )
        except httpx.InvalidURL:
            await problem(HTTPStatus.BAD_REQUEST, "The path cannot be read.")(scope, receive, send)
            return
        try:
            answer = await body.unless_gone(self._http.send(request, stream=True))
        except _GoneError:
            return
        except _TooLargeError:
            await _too_large()(scope, receive, send)
            return
        except httpx.HTTPError as error:
            await _no_answer(error)(scope, receive, send)
            return
        try:
            if is_page and answer.headers.get("content-type", "").startswith("text/html"):
                await self._send_page(answer, scope["method"], send)
            else:
                await _send_on(answer, send)
        except httpx.HTTPError as error:  # of the page, of which nothing is sent yet
            await _no_answer(error)(scope, receive, send)
        finally:
            await answer.aclose()

    def _url(self, scope: Scope) -> httpx.URL:
        path = (
            self._base.raw_path.rstrip(b"/")
            + scope.get("raw_path", scope["path"].encode()).split(b"?")[0]
        )
        query = scope["query_string"]
        wanted = path + (b"?" + query if query else b"")
        url = self._base.copy_with(raw_path=wanted)
        if url.raw_path != wanted:  # dots in it, which lead elsewhere
            raise httpx.InvalidURL("the path is not in its plain form")
        return url

    async def _send_page(self, answer: httpx.Response, method: str, send: Send) -> None:
        html = bytearray()
        async for piece in answer.aiter_raw():
            html += piece
            if len(html) > _MAX_PAGE_BYTES:
                break
        body = re.sub(
            rb"<head[^>]*>", lambda found: found.group() + self._head, bytes(html), count=1
        )
        own = {name.lower().encode(): value.encode() for name, value in HEADERS.items()}
        dropped = {b"etag", b"last-modified", b"content-length", *_SAID_HERE, *own}
        headers = [
            *_headers(answer.headers.raw, dropped),
            *own.items(),
            (b"content-length", b"%d" % len(body)),
        ]
        await send(
            {"type": "http.response.start", "status": answer.status_code, "headers": headers}
        )
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})


def _declared(scope: Scope) -> int:
    """Return the bytes that the head says the body has; 0 where it says none."""
    lengths = [value for name, value in scope["headers"] if name.lower() == b"content-length"]
    return max((int(value) for value in lengths if value.isdigit()), default=0)


def _too_large() -> Response:
    too_large = f"The drill passes no body of more than {MAX_BODY_BYTES:,} bytes through."
    return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, too_large)


def _no_answer(error: httpx.HTTPError) -> Response:
    return problem(
        HTTPStatus.BAD_GATEWAY, f"The server does not answer the drill: {type(error).__name__}."
    )


async def _send_on(answer: httpx.Response, send: Send) -> None:
    headers = _headers(answer.headers.raw, _SAID_HERE)
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    sent = 0
    # A body that breaks off, or is too long, breaks off here as well: the caller sees that it is
    # not whole.
    try:
        async for piece in answer.aiter_raw():
            sent += len(piece)
            if sent > MAX_ANSWER_BYTES:
                raise RuntimeError(
                    "the server's answer is larger than what the drill passes through"
                )
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except httpx.HTTPError:  # such as of a server that was ended
        return
    await send({"type": "http.response.body", "body": b""})


def _headers(raw: list[tuple[bytes, bytes]], dropped: set[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the headers that are not of one connection, those that Connection names among
    these.
    """
    named = {
        one.strip().lower()
        for name, value in raw
        if name.lower() == b"connection"
        for one in value.split(b",")
    }
    without = _HOP_BY_HOP | _KEPT_BACK | named | dropped
    return [(name, value) for name, value in raw if name.lower() not in without]


class _Body:
    """A request's body as it comes, and the end of the caller's patience after it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read = asyncio.Event()

    def is_there(self, scope: Scope) -> bool:
        """Return whether the head says that there is a body; if not, none is waited for."""
        names = {name.lower(): value for name, value in scope["headers"]}
        there = b"transfer-encoding" in names or names.get(b"content-length", b"0") != b"0"
        if not there:
            self._read.set()
        return there

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body. Raises _GoneError for a caller who has gone, and _TooLargeError."""
        size, more = 0, True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise _GoneError
            piece, more = message.get("body", b""), message.get("more_body", False)
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise _TooLargeError
            if piece:
                yield piece
        self._read.set()

    async def unless_gone(self, sending: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
        """Return what comes of a call, and break it off when the caller goes. Raises _GoneError
        then.
        """
        call, watch = asyncio.create_task(sending), asyncio.create_task(self._gone())
        try:
            await asyncio.wait({call, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise _GoneError
            return call.result()
        finally:
            for task in (call, watch):
                task.cancel()

    async def _gone(self) -> None:
        """Return once the caller has gone; until the body is read, that is seen where it is
        read.
        """
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
