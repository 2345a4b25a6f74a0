"""Bounds the memory and the time of large responses that clients have not read yet."""

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover_server.errors import BusyError
from ldprecover_server.http.edge import ABORT
from ldprecover_server.http.problems import refuse
from ldprecover_server.timeouts import Timeouts

_PIECE = 1 << 15
"""A body goes out in pieces of this size: the connection takes the next when the client has read
most of the last.
"""


class Backpressure:
    """ASGI middleware: bounds what large answers hold of memory until they are read, and for how
    long.

    An answer of more than 32 KiB goes out in pieces, and counts in whole until its end. When all of
    them would hold more than `max_bytes`, the one that is read slowest is cut off, and the next in
    turn, until there is room. One that is not read whole within `seconds` is cut off too. Only a
    server that gives a way to cut a connection off (`ABORT` in the scope's extensions) can be held
    to this.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, seconds: float) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._deadlines = Timeouts(seconds)
        self._held = 0
        self._answers: set[_Answer] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        abort = scope.get("extensions", {}).get(ABORT) if scope["type"] == "http" else None
        if abort is None:
            await self._app(scope, receive, send)
            return
        start: Message | None = None

        async def send_in_pieces(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message  # until it is known how large the body is
                return
            begin, start = start, None
            if len(message.get("body", b"")) > _PIECE:
                if self._make_room(len(message["body"])):
                    await self._send(abort, send, begin, message)
                elif begin is not None:
                    await refuse(
                        BusyError("the answers that wait to be read hold all the memory they may")
                    )(scope, receive, send)
                else:
                    abort()
                return
            if begin is not None:
                await send(begin)
            await send(message)

        await self._app(scope, receive, send_in_pieces)

    async def _send(
        self, abort: Callable[[], None], send: Send, begin: Message | None, message: Message
    ) -> None:
        body, more = message["body"], message.get("more_body", False)
        answer = _Answer(abort, len(body), self._deadlines.loop.time())
        self._held += answer.size
        self._answers.add(answer)
        number = self._deadlines.add(lambda: self._cut_off(answer))
        try:
            if begin is not None:
                await send(begin)
            while answer in self._answers and answer.sent < answer.size:
                piece = body[answer.sent : answer.sent + _PIECE]
                last = answer.sent + _PIECE >= answer.size
                await send({**message, "body": piece, "more_body": more or not last})
                answer.sent += len(piece)
        finally:
            self._deadlines.remove(number)
            self._forget(answer)

    def _make_room(self, size: int) -> bool:
        if size > self._max_bytes:
            return False
        now = self._deadlines.loop.time()
        while self._held + size > self._max_bytes:
            self._cut_off(
                min(self._answers, key=lambda answer: answer.sent / (now - answer.began + 1))
            )
        return True

    def _cut_off(self, answer: "_Answer") -> None:
        if answer in self._answers:
            self._forget(answer)
            answer.abort()

    def _forget(self, answer: "_Answer") -> None:
        if answer in self._answers:
            self._answers.discard(answer)
            self._held -= answer.size


class _Answer:
    """A large answer on its way."""

    def __init__(self, abort: Callable[[], None], size: int, began: float) -> None:
        self.abort = abort
        self.size = size
        self.began = began
        self.sent = 0
