"""Problems (RFC 9457): the response to every error, and the handlers that make it."""

import math
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from ldprecover.errors import LDPRecoverError
from ldprecover_interface.invalid_fields import invalid_fields
from ldprecover_interface.problems import MEDIA_TYPE, Problem
from ldprecover_server import errors

ADMIN = (errors.UnauthorizedError, errors.ForbiddenError)
"""Errors of calls that need a key."""

STORAGE = (errors.BusyError, errors.StoreUnavailableError)
"""Errors of calls that read or write the database."""

READ = (*ADMIN, *STORAGE, errors.InvalidRequestError, errors.RoundNotFoundError)
"""Errors of calls that read a round."""

BODY = (
    errors.BodyTooLargeError,
    errors.BodyTimeoutError,
    errors.MalformedBodyError,
    errors.UnsupportedMediaTypeError,
    errors.UnsupportedTransferEncodingError,
    errors.InvalidRequestError,
    errors.BusyError,
)
"""Errors of calls with a body."""

ANALYSIS = (
    errors.AnalysesBusyError,
    errors.AnalysisTimeoutError,
    errors.AnalysisTooLargeError,
    errors.AnalysisFailedError,
    errors.InvalidParameterError,
    errors.NoReportsError,
    errors.ReportsGoneError,
)
"""Errors of analyses."""


GONE = 499
"""The status that metrics show if the caller disconnected before the response, as in nginx."""

SECURITY_HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Vary": "X-Forwarded-Prefix",  # else a cache would give one caller's addresses to others
    }
)
"""The headers of every response that does not set its own: browsers do not guess types, show no
response in a frame, and load nothing. Problems have them everywhere."""


class ProblemResponse(Response):
    """The response to an error of the service or of the core, which the metrics count.

    Its type is below the path of the application.
    """

    media_type = MEDIA_TYPE

    def __init__(self, error: Exception, headers: Mapping[str, str] | None = None) -> None:
        self._error = errors.as_service_error(error)
        super().__init__(
            self._error.problem.to_json(),
            self._error.type.status,
            {**SECURITY_HEADERS, **self._error.headers, **(headers or {})},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (app := scope.get("app")) is not None:
            address = Headers(scope=scope).get("x-real-ip")  # of our proxy, if there is a key
            if address is not None and self.status_code in (401, 403):
                try:
                    app.state.refusal_rates.take(address)
                except errors.RateLimitedError as error:
                    await ProblemResponse(error)(scope, receive, send)
                    return
            if self.status_code == 503 and self._error.retry_after is not None:
                seconds = app.state.return_times.seconds(self._error.retry_after)
                self.headers["Retry-After"] = str(math.ceil(seconds))
            app.state.metrics.refusals.labels(self._error.type.slug).inc()
        if root := scope.get("root_path"):
            problem = self._error.problem
            self.body = problem.model_copy(update={"type": root + problem.type}).to_json()
            self.headers["Content-Length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def problems(*classes: type[errors.ServiceError]) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route that may answer with these errors, for OpenAPI."""
    content = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
    slugs: dict[int, list[str]] = {}
    for problem in sorted({error.type for error in classes}, key=lambda each: each.slug):
        slugs.setdefault(problem.status, []).append(problem.slug)
    return {
        status: {"description": ", ".join(names), "content": content}
        for status, names in sorted(slugs.items())
    }


def install(app: FastAPI) -> None:
    """Answer every error of the application with a problem."""

    async def on_error(request: Request, error: Exception) -> Response:
        return ProblemResponse(error)

    async def on_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return ProblemResponse(
            errors.InvalidRequestError(_invalid_parameters(error, request.scope["route"]))
        )

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        where = f"{request.method} {request.scope['path'][:200]}"
        if error.status_code == 405:
            return ProblemResponse(errors.MethodNotAllowedError(where, _methods_of(request)))
        return ProblemResponse(errors.NotFoundError(where))  # also for unreadable files

    async def on_failure(request: Request, error: Exception) -> Response:
        # Starlette raises the error again for the log, and uvicorn then cuts the connection.
        return ProblemResponse(errors.InternalError(), {"Connection": "close"})

    async def on_disconnect(request: Request, error: Exception) -> Response:
        return Response(status_code=GONE)

    app.exception_handlers.update(
        {
            errors.ServiceError: on_error,
            ClientDisconnect: on_disconnect,
            LDPRecoverError: on_error,
            RequestValidationError: on_validation,
            HTTPException: on_http,
            Exception: on_failure,
        }
    )


def _invalid_parameters(error: RequestValidationError, route: APIRoute) -> list[tuple[str, str]]:
    """Return each invalid parameter, and why it is invalid. Endpoints read bodies themselves."""
    inside = [each | {"loc": each["loc"][1:]} for each in error.errors()]
    value = {each["loc"][0]: each["input"] for each in inside}
    schemas = {each.alias: _schema(each) for each in route.dependant.query_params}
    return invalid_fields(inside, value, {"properties": schemas})


@lru_cache
def _schema(field: Any) -> dict[str, Any]:
    """Return the JSON schema of a parameter."""
    annotated: Any = Annotated[field.field_info.annotation, field.field_info]
    return TypeAdapter(annotated).json_schema()


def _methods_of(request: Request) -> str:
    """Return the methods of all routes at a path; Starlette names those of one route."""
    routes = request.app.router.routes
    allowed = [
        method
        for method in ("DELETE", "GET", "PATCH", "POST", "PUT")
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes
        )
    ]
    return ", ".join([*allowed, "HEAD"] if "GET" in allowed else allowed)
