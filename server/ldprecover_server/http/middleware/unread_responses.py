"""Limits the memory of large responses that clients have not read yet."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover_server.errors import BusyError
from ldprecover_server.http.problems import problem_response
from ldprecover_server.limits import MemoryBudget

_PIECE_BYTES = 1 << 15
"""Bytes of a body that are sent in one step. Smaller responses do not count."""


class UnreadResponses:
    """ASGI middleware that sends large responses in pieces, and limits their sum to `max_bytes`.

    A response without room is a 503. The proxy closes the connection of a client that reads
    nothing for 10 seconds, which releases its memory.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._budget = MemoryBudget(max_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        delayed_start: Message | None = None

        async def send_in_pieces(message: Message) -> None:
            nonlocal delayed_start
            if message["type"] == "http.response.start":
                delayed_start = message  # a body without room needs another status
                return
            start, delayed_start = delayed_start, None
            size = len(message.get("body", b""))
            if size <= _PIECE_BYTES or start is None:
                if start is not None:
                    await send(start)
                await send(message)
            elif self._budget.reserve(size):
                try:
                    await send(start)
                    await _send_pieces(message, send)
                finally:
                    self._budget.release(size)
            else:
                error = BusyError("the memory for unread responses is in use; retry later")
                await problem_response(error)(scope, receive, send)

        await self._app(scope, receive, send_in_pieces if scope["type"] == "http" else send)


async def _send_pieces(message: Message, send: Send) -> None:
    body, more = message["body"], message.get("more_body", False)
    for start in range(0, len(body), _PIECE_BYTES):
        is_last = start + _PIECE_BYTES >= len(body)
        piece = body[start : start + _PIECE_BYTES]
        await send({**message, "body": piece, "more_body": more or not is_last})
