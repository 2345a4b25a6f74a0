"""The drill's own answers: JSON and problems (RFC 9457), under the page's content security
policy.
"""

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
}
"""Of every answer that is the drill's own."""


def json_answer(value: Any, status: int = 200) -> Response:
    """Return a value as JSON."""
    body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return Response(body, status, HEADERS, "application/json")


def problem(status: HTTPStatus, detail: str) -> Response:
    """Return why a call was refused, in the form that the server's refusals have."""
    body = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    return Response(json.dumps(body).encode(), status, HEADERS, "application/problem+json")
