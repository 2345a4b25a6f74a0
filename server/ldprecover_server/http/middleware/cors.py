"""Calls from web pages of other origins (CORS)."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from ldprecover_server.errors import HostError
from ldprecover_server.http.problems import problem_response


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
        return problem_response(HostError(bytes(response.body).decode()), headers)
