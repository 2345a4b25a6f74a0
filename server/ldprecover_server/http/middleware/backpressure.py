"""Limits the memory and the time of large responses that clients have not read yet."""

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover_server.errors import BusyError
from ldprecover_server.http.edge import ABORT
from ldprecover_server.http.problems import problem_response
from ldprecover_server.memory_budget import MemoryBudget
from ldprecover_server.timeouts import Timeouts

_PIECE_BYTES = 1 << 15
"""Bytes of a body that are sent in one step; the connection takes the next piece when the client
has read most of the last one. Smaller responses do not count."""


class Backpressure:
    """ASGI middleware that limits the large responses that clients have not read yet.

    A response of more than 32 KiB is sent in pieces and counts whole until its end. If all of them
    would hold more than `max_bytes`, the connections of the slowest readers are cut off until there
    is room. A response that is not read within `seconds` is cut off too. The server must offer the
    ABORT extension; without it nothing is limited.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, seconds: float) -> None:
        self._app = app
        self._budget = MemoryBudget(max_bytes)
        self._timeouts = Timeouts(seconds)
        self._unread: set[_UnreadResponse] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        abort = scope.get("extensions", {}).get(ABORT) if scope["type"] == "http" else None
        if abort is None:
            await self._app(scope, receive, send)
            return
        delayed_start: Message | None = None

        async def send_in_pieces(message: Message) -> None:
            nonlocal delayed_start
            if message["type"] == "http.response.start":
                delayed_start = message  # a body without room needs another status
                return
            start, delayed_start = delayed_start, None
            if len(message.get("body", b"")) > _PIECE_BYTES:
                if self._make_room(len(message["body"])):
                    await self._send(abort, send, start, message)
                elif start is None:
                    abort()
                else:
                    error = BusyError("the memory for unread responses is in use; retry later")
                    await problem_response(error)(scope, receive, send)
                return
            if start is not None:
                await send(start)
            await send(message)

        await self._app(scope, receive, send_in_pieces)

    async def _send(
        self, abort: Callable[[], None], send: Send, start: Message | None, message: Message
    ) -> None:
        body, more = message["body"], message.get("more_body", False)
        response = _UnreadResponse(abort, len(body), self._timeouts.loop.time())
        self._unread.add(response)
        number = self._timeouts.add(lambda: self._cut_off(response))
        try:
            if start is not None:
                await send(start)
            while response in self._unread and response.sent < response.size:
                piece = body[response.sent : response.sent + _PIECE_BYTES]
                is_last = response.sent + _PIECE_BYTES >= response.size
                await send({**message, "body": piece, "more_body": more or not is_last})
                response.sent += len(piece)
        finally:
            self._timeouts.remove(number)
            self._release(response)

    def _make_room(self, size: int) -> bool:
        """Reserve memory, cutting off slow readers; return False for a response above the limit."""
        if size > self._budget.limit:
            return False
        now = self._timeouts.loop.time()
        while not self._budget.reserve(size):
            # One more second, so that a response that has just begun does not count as slow.
            self._cut_off(
                min(self._unread, key=lambda unread: unread.sent / (now - unread.began + 1))
            )
        return True

    def _cut_off(self, response: "_UnreadResponse") -> None:
        if self._release(response):
            response.abort()

    def _release(self, response: "_UnreadResponse") -> bool:
        if response not in self._unread:
            return False
        self._unread.discard(response)
        self._budget.release(response.size)
        return True


class _UnreadResponse:
    """A large response that is being sent."""

    def __init__(self, abort: Callable[[], None], size: int, began: float) -> None:
        self.abort = abort
        self.size = size
        self.began = began
        self.sent = 0
