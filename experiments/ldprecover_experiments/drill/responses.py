"""The drill's JSON and problem responses (RFC 9457), with the page's security headers."""

import json
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every response of the drill."""


def json_answer(value: Any, status: int = 200) -> Response:
    """Return a value as JSON."""
    body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return Response(body, status, HEADERS, "application/json")


def problem(status: HTTPStatus, detail: str) -> Response:
    """Return a problem in the form of the server's problems."""
    body = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    return Response(json.dumps(body).encode(), status, HEADERS, "application/problem+json")
