"""Serves readiness and metrics on a port that the public does not reach."""

from starlette.types import ASGIApp, Receive, Scope, Send

from ldprecover_interface import paths
from ldprecover_server.errors import NotFoundError
from ldprecover_server.http.problems import problem_response

_MOVED = frozenset({paths.READYZ, paths.METRICS})
_ON_BOTH = frozenset({paths.HEALTHZ, paths.VERSION})


class OperationPort:
    """ASGI middleware that serves readiness and metrics on `port` alone, and no other call there.

    Health and version are served on every port.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and (path := scope["path"]) not in _ON_BOTH:
            is_on_port = (scope.get("server") or (None, None))[1] == self._port
            if is_on_port != (path in _MOVED):
                app = problem_response(NotFoundError(f"{scope['method']} {path[:200]}"))
        await app(scope, receive, send)
