"""Around every request: its id, how long it took, and what became of it."""

import asyncio
import random
import re
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover_interface import paths
from ldprecover_server import logs
from ldprecover_server.errors import StoreUnavailableError
from ldprecover_server.http.edge import ABORT
from ldprecover_server.http.problems import refuse
from ldprecover_server.metrics import Metrics
from ldprecover_server.rejections import Rejections

_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}")
_PUBLISH_SECONDS = (
    1.0  # other processes that are scraped see this one's requests at most so much later
)
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class Instrumentation:
    """ASGI middleware: names each request in its answer and in the log, counts it and takes its
    time.

    The id is the client's where X-Request-ID holds 8 to 64 letters, digits, dots, underscores and
    hyphens, else random. What answers says in the scope which route took the request (`route`),
    with which problem it was refused (`problem`), and of a submission which round it was for
    (`round_seq`).
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, rejections: Rejections) -> None:
        self._app = app
        self._metrics = metrics
        self._rejections = rejections
        self._requests = metrics.requests
        self._to_publish = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        id = _given_id(scope) or b"%016x" % random.getrandbits(64)  # it is not a secret
        logs.request_id.set(id.decode())
        code = 0

        async def send_named(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", id)]
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        except asyncio.CancelledError:
            # The grace time after SIGTERM is over, and uvicorn would answer 500, or log at length
            # each answer that is not read: thousands of them would keep the server from ending.
            if code:
                await _cut_off(scope, receive)
                return
            await refuse(StoreUnavailableError("the server stops and has no answer yet"))(
                scope, receive, send_named
            )
        finally:
            self._count(scope, code or 500, perf_counter() - began)  # 500: the answer never began

    def _count(self, scope: Scope, code: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._requests.count(method, _template(scope), code, seconds)
        if not self._to_publish:
            self._to_publish = True
            asyncio.get_running_loop().call_later(_PUBLISH_SECONDS, self._publish)
        if (problem := scope.get("problem")) is not None:
            self._metrics.refusals.labels(problem).inc()
            if (seq := scope.get("round_seq")) is not None:
                self._rejections.count(seq, problem)

    def _publish(self) -> None:
        self._to_publish = False
        self._requests.publish()


async def _cut_off(scope: Scope, receive: Receive) -> None:
    if (abort := scope.get("extensions", {}).get(ABORT)) is None:
        raise asyncio.CancelledError
    abort()
    while (await receive())["type"] != "http.disconnect":
        pass


def _template(scope: Scope) -> str:
    path: str | None = scope.get("route_path") or getattr(scope.get("route"), "path", None)
    if path is None:
        return "none"
    # A route of a router that is included under a prefix knows only its own part of the path.
    prefix = (
        paths.ROUND if "round" in scope.get("path_params", ()) and "{round}" not in path else ""
    )
    return prefix + path


def _given_id(scope: Scope) -> bytes | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return value if _ID.fullmatch(value) else None
    return None
