"""Calls from web pages of other origins: what browsers ask first, and what they then let a page
see.
"""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from ldprecover_server.errors import CrossOriginError
from ldprecover_server.http.problems import refuse


class Cors(CORSMiddleware):
    """Starlette's middleware with what this interface takes and gives; a refusal is a problem, like
    all others.

    No cookie is ever looked at, so credentials of the browser's own are not allowed: a page that
    has a key or a ticket sends it in Authorization.
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
                "Prefer",
                "X-Request-ID",
            ),
            expose_headers=("ETag", "Location", "Retry-After", "X-Request-ID"),
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer what a browser asks before it sends a request that is not simple."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        headers = {
            name: response.headers[name]
            for name in ("vary", "access-control-allow-origin")
            if name in response.headers
        }
        return refuse(CrossOriginError(bytes(response.body).decode(), headers))
