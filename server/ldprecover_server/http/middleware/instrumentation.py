"""Gives each request an id, measures it, and counts it in the metrics."""

import asyncio
import random
import re
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover_interface import paths
from ldprecover_server import logs
from ldprecover_server.errors import InternalError, StoreUnavailableError
from ldprecover_server.http.problems import problem_response
from ldprecover_server.metrics import Metrics

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}")
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_PUBLISH_SECONDS = 1.0
"""The longest delay until a scrape of another process sees a request."""


class Instrumentation:
    """ASGI middleware for request ids and metrics.

    The id is the client's X-Request-ID if it has 8 to 64 letters, digits, dots, underscores and
    hyphens, else random; it is in the response and in the log. Handlers set `route_path` and
    `problem` in the ASGI scope.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._requests = metrics.requests
        self._will_publish = False

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
            await problem_response(
                StoreUnavailableError("the server stops before the response is ready")
            )(scope, receive, send_with_id)
        except Exception:
            if not status:
                response = problem_response(InternalError(), {"Connection": "close"})
                await response(scope, receive, send_with_id)
            raise  # uvicorn logs it, and cuts the connection
        finally:
            self._count(scope, status or 500, perf_counter() - began)  # 500: there is no response

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._requests.count(method, _route(scope), status, seconds)
        if not self._will_publish:
            self._will_publish = True
            asyncio.get_running_loop().call_later(_PUBLISH_SECONDS, self._publish)
        if (problem := scope.get("problem")) is not None:
            self._metrics.refusals.labels(problem).inc()

    def _publish(self) -> None:
        self._will_publish = False
        self._requests.publish()


def _route(scope: Scope) -> str:
    """Return the path template of the route that took the request, or "none"."""
    path: str | None = scope.get("route_path") or getattr(scope.get("route"), "path", None)
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
