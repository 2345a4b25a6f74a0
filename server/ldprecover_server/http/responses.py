"""JSON responses that are written without validation, and their columns."""

from collections.abc import Mapping

from starlette.responses import Response

from ldprecover_interface.base import Message


def json_response(
    message: Message,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    labels: bytes | None = None,
) -> Response:
    """Return a message as JSON; floats are written so that they read back exactly.

    For large messages: FastAPI would validate a returned model and copy it before writing. `labels`
    are JSON as stored, and replace the empty `items` of the message: as texts they would take ten
    times the memory.
    """
    body = message.to_json()
    if labels is not None:
        view, start = memoryview(body), body.index(b'"items":[]')  # slices of a view are no copies
        body = b"".join([view[: start + 8], labels, view[start + 10 :]])
    return Response(body, status, dict(headers or {}), "application/json")
