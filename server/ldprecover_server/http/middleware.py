"""The ASGI middleware, from the outermost: what each request and response passes."""

import asyncio
import functools
import random
import re
from collections import deque
from collections.abc import Collection
from ipaddress import ip_address
from time import perf_counter

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover_interface import paths
from ldprecover_server import logs
from ldprecover_server.errors import (
    BusyError,
    HostError,
    InvalidParameterError,
    NotFoundError,
    ServiceError,
    StoreUnavailableError,
)
from ldprecover_server.http.bodies import has_body
from ldprecover_server.http.problems import GONE, SECURITY_HEADERS, ProblemResponse
from ldprecover_server.http.responses import cancel_on_disconnect
from ldprecover_server.limits import MemoryBudget
from ldprecover_server.metrics import Metrics

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}")
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_PREFIX = re.compile(rb"((?:/[\w.~-]+)+)/?")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]*)?", re.IGNORECASE)
_ONCE: dict[bytes, type[ServiceError]] = {
    b"authorization": InvalidParameterError,
    b"content-encoding": InvalidParameterError,
    b"content-type": InvalidParameterError,
    b"host": HostError,
    b"idempotency-key": InvalidParameterError,
}
"""The headers that have one value, and the error for more."""
_PIECE_BYTES = 1 << 15
"""Bytes of a body that are sent in one step. Smaller responses do not count."""


class Application(FastAPI):
    """FastAPI behind the middleware of the service.

    A submission never reaches the framework, whose own middleware would take a twentieth of its
    time.
    """

    entry: ASGIApp
    """The outermost middleware; `framework` is what the innermost one calls."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # as Starlette does
        await self.entry(scope, receive, send)

    async def framework(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request by the routes."""
        await super().__call__(scope, receive, send)


class Instrumentation:
    """ASGI middleware for request ids and metrics.

    The id is the client's X-Request-ID if it has 8 to 64 letters, digits, dots, underscores and
    hyphens, else random; it is in the response and in the log.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        # Cached: looking up labels takes longer than counting.
        self._metrics_of = functools.cache(metrics.of_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        id = _client_id(scope) or b"%016x" % random.getrandbits(64)  # not a secret
        logs.request_id.set(id.decode())
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", id)]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:
            # uvicorn cancels requests after its grace period. Without this it would send a bare
            # 500, or log each unread response with a traceback: thousands of them delay the exit.
            if status:
                return
            await ProblemResponse(
                StoreUnavailableError("the server stops before the response is ready")
            )(scope, receive, send_with_id)
        finally:
            self._count(scope, status or 500, perf_counter() - began)  # 500: there is no response

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        total, times = self._metrics_of(method, _route(scope), status)
        total.inc()
        times.observe(seconds)


def _route(scope: Scope) -> str:
    """Return the path template of the route that took the request, or "none"."""
    path: str | None = getattr(scope.get("route"), "path", None)
    if path is None:
        return "none"
    # A route of a router that is included under a prefix knows only its own part of the path.
    is_relative = "round" in scope.get("path_params", ()) and "{round}" not in path
    return (paths.ROUND if is_relative else "") + path


def _client_id(scope: Scope) -> bytes | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return value if _REQUEST_ID.fullmatch(value) else None
    return None


class HeadChecks:
    """ASGI middleware that rejects an ambiguous head, and a header Host that names none of `names`.

    The path that a proxy has removed, in X-Forwarded-Prefix, becomes `root_path`. It only changes
    addresses in responses: the route follows from the path that the proxy has passed.

    A path has printable characters only: the pattern of a route also matches before a line break at
    the end, which the rule of a proxy may not. HTTP/1.0 alone allows a request without Host. A body
    behind Upgrade never arrives: the parser of uvicorn takes it for the other protocol, and what
    follows for the next request.

    A page of another site can point its own domain name at this server (DNS rebinding). To the
    browser both are then one site, and only Host shows it. No page can do so with `localhost` or an
    IP address, so these always pass. With the names None every name does.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] | None) -> None:
        self._app = app
        self._names = None if names is None else frozenset((True, "localhost", *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and (error := self._check(scope)) is not None:
            app = ProblemResponse(error, {"Connection": "close"})  # the rest may be no request
        await app(scope, receive, send)

    def _check(self, scope: Scope) -> ServiceError | None:
        if not scope["path"].isprintable():
            return NotFoundError(f"{scope['method']} {scope['path'][:200]!r}")
        headers = dict(scope["headers"])
        if prefix := _PREFIX.fullmatch(headers.get(b"x-forwarded-prefix", b"")):
            scope["root_path"] = prefix[1].decode() + scope.get("root_path", "")
            scope["path"] = prefix[1].decode() + scope["path"]
        if len(headers) < len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            for name, error in _ONCE.items():
                if names.count(name) > 1:
                    return error(f"the header {name.decode().title()} must be given once")
        if (
            b"upgrade" in headers
            and has_body(headers)
            and any(b"upgrade" in v.lower() for n, v in scope["headers"] if n == b"connection")
        ):
            return InvalidParameterError("send HTTP/1.1 without the header Upgrade before a body")
        host = headers.get(b"host")
        if host is None:
            is_missing = scope.get("http_version") != "1.0"
            return HostError("the header Host is missing") if is_missing else None
        if not host or (self._names is not None and _parse(host) not in self._names):
            return HostError(f"{host[:80].decode('latin-1')!r} is not a name of this server")
        return None


@functools.lru_cache(maxsize=64)
def _parse(value: bytes) -> str | bool:
    """Return the name in the value of Host; True for an IP address, False without a name."""
    match = _HOST.fullmatch(value.decode("latin-1"))
    if match is None:
        return False
    name = match[1].lower()
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return name
    return True


class Dispatch:
    """ASGI middleware that answers submissions and health checks, and passes on other requests."""

    def __init__(self, app: ASGIApp, submissions: ASGIApp, health: ASGIApp) -> None:
        self._app = app
        self._of_round = Route(paths.ROUND + paths.REPORTS, submissions)
        self._of_current = Route(paths.REPORTS, submissions)
        self._health = Route(paths.HEALTHZ, health)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            route = None
            if (match := paths.SUBMISSION.fullmatch(path)) is not None:
                scope["path_params"] = {"round": match[1]} if match[1] else {}
                route = self._of_round if match[1] else self._of_current
            elif path == paths.HEALTHZ and scope["method"] == "GET":
                route = self._health
            if route is not None:
                # As the framework does: Instrumentation reads the path of the route.
                scope["route"], app = route, route.app
        await app(scope, receive, send)


class Cors(CORSMiddleware):
    """Starlette's middleware with the methods and headers of this interface.

    A rejected preflight is a problem, like every other error. The server reads no cookies, so
    browser credentials are not allowed: a page sends its key or ticket in Authorization.
    """

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=("DELETE", "GET", "HEAD", "POST"),
            allow_headers=(
                "Authorization",
                "Content-Encoding",
                "Content-Type",
                "Idempotency-Key",
                "If-None-Match",
                "X-Request-ID",
            ),
            expose_headers=("ETag", "Location", "Retry-After", "X-Request-ID"),
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Return the response to a preflight request."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        headers = {
            name: response.headers[name]
            for name in ("vary", "access-control-allow-origin")
            if name in response.headers
        }
        return ProblemResponse(HostError(bytes(response.body).decode()), headers)


class StartLimit:
    """ASGI middleware that starts at most `starts` requests in one turn; the others wait in order.

    If thousands of requests started in one turn, submissions would wait for all of them. A request
    without a body that reads is cancelled when its client disconnects, also while it waits: clients
    that ask and leave would otherwise queue work without limit.
    """

    def __init__(self, app: ASGIApp, starts: int) -> None:
        self._app = app
        self._starts = starts
        self._started = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reads = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not reads or has_body(dict(scope["headers"])):
            await self._start()
            await self._app(scope, receive, send)
            return
        is_answered = False

        async def send_response(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        async def work() -> None:
            await self._start()
            await self._app(scope, receive, send_response)

        try:
            await cancel_on_disconnect(receive, work())
        except ClientDisconnect:
            if not is_answered:
                await Response(status_code=GONE)(scope, receive, send)

    async def _start(self) -> None:
        if not self._started:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._started += 1
        if self._started > self._starts:
            start = asyncio.get_running_loop().create_future()
            self._waiting.append(start)
            await start

    def _next_turn(self) -> None:
        self._started = 0
        while self._waiting and self._started < self._starts:
            start = self._waiting.popleft()
            if not start.done():  # else it was cancelled
                start.set_result(None)
                self._started += 1
        if self._started:
            asyncio.get_running_loop().call_soon(self._next_turn)


class UnreadResponses:
    """ASGI middleware that sends large responses in pieces, and limits their sum to `max_bytes`.

    A response without room is a 503. The proxy closes the connection of a client that reads
    nothing for 10 seconds, which releases its memory.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._budget = MemoryBudget(max_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        delayed_start: Message | None = None

        async def send_in_pieces(message: Message) -> None:
            nonlocal delayed_start
            if message["type"] == "http.response.start":
                delayed_start = message  # a body without room needs another status
                return
            start, delayed_start = delayed_start, None
            size = len(message.get("body", b""))
            if size <= _PIECE_BYTES or start is None:
                if start is not None:
                    await send(start)
                await send(message)
            elif self._budget.reserve(size):
                try:
                    await send(start)
                    await _send_pieces(message, send)
                finally:
                    self._budget.release(size)
            else:
                error = BusyError("the memory for unread responses is in use; retry later")
                await ProblemResponse(error)(scope, receive, send)

        await self._app(scope, receive, send_in_pieces if scope["type"] == "http" else send)


async def _send_pieces(message: Message, send: Send) -> None:
    body, more = message["body"], message.get("more_body", False)
    for start in range(0, len(body), _PIECE_BYTES):
        is_last = start + _PIECE_BYTES >= len(body)
        piece = body[start : start + _PIECE_BYTES]
        await send({**message, "body": piece, "more_body": more or not is_last})


class SecurityHeaders:
    """ASGI middleware that adds those of SECURITY_HEADERS that a response does not have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                message = {**message, "headers": headers.raw}
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Head:
    """ASGI middleware that answers HEAD as GET, without the body; FastAPI's routes answer 405."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        get = {**scope, "method": "GET"}

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            await self._app(get, receive, send_without_body)
        finally:
            scope.update(get, method="HEAD")  # middleware outside reads the route from the scope
