"""Refusals as problems (RFC 9457), and the handlers that make every error one."""

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from ldprecover.errors import LDPRecoverError
from ldprecover_interface import paths
from ldprecover_server import errors

MEDIA_TYPE = "application/problem+json"

GONE = 499
"""What metrics show of a caller who did not wait for the answer, as nginx has it; nobody reads it.
"""


def problem_type(refusal: type[errors.ServiceError]) -> str:
    """Return the URL of a problem type: a reference to its heading on the server's own errors
    page.
    """
    return f"{paths.ERRORS}#{refusal.slug}"


class Problem(Response):
    """The answer to a refusal, which tells whoever watches the request which one it is."""

    media_type = MEDIA_TYPE

    def __init__(
        self, refusal: errors.ServiceError, headers: Mapping[str, str] | None = None
    ) -> None:
        body = {
            "type": problem_type(type(refusal)),
            "title": refusal.title,
            "status": refusal.status,
        }
        detail = str(refusal)
        super().__init__(
            msgspec.json.encode(
                body | ({"detail": detail} if detail else {}) | dict(refusal.members)
            ),
            status_code=refusal.status,
            headers={**refusal.headers, **(headers or {})},
        )
        self._slug = refusal.slug

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["problem"] = self._slug
        await super().__call__(scope, receive, send)


def refuse(error: Exception, headers: Mapping[str, str] | None = None) -> Problem:
    """Return the answer to a refusal of the service or of the mathematics."""
    return Problem(errors.as_service_error(error), headers)


def install(app: FastAPI) -> None:
    """Make every error of the app a problem."""

    async def on_refusal(request: Request, error: Exception) -> Response:
        return refuse(error)

    async def on_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]  # of the query: bodies are decoded by `decoding`
        return refuse(
            errors.InvalidRequestError(first["msg"], ".".join(map(str, first["loc"][1:])))
        )

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        where = f"{request.method} {request.url.path[:200]}"
        if error.status_code == 405:
            return refuse(errors.MethodNotAllowedError(where, _methods_of_path(request)))
        return refuse(errors.NotFoundError(where))  # files that cannot be read are not there either

    async def on_failure(request: Request, error: Exception) -> Response:
        # The framework raises the error again for the log, and the connection is cut after this
        # answer.
        return refuse(errors.InternalError(), {"Connection": "close"})

    async def on_gone(request: Request, error: Exception) -> Response:
        return Response(status_code=GONE)

    app.add_exception_handler(errors.ServiceError, on_refusal)
    app.add_exception_handler(ClientDisconnect, on_gone)
    app.add_exception_handler(LDPRecoverError, on_refusal)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(Exception, on_failure)


def _methods_of_path(request: Request) -> str:
    """Return the methods of all routes at a path; the framework would name those of the first
    one.
    """
    routes = request.app.router.routes
    scopes: list[dict[str, Any]] = [
        {**request.scope, "method": method} for method in ("DELETE", "GET", "PATCH", "POST", "PUT")
    ]
    allowed = [
        s["method"] for s in scopes if any(route.matches(s)[0] is Match.FULL for route in routes)
    ]
    return ", ".join([*allowed, "HEAD"] if "GET" in allowed else allowed)
