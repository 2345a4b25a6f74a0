"""Limits the requests that start in one turn of the event loop."""

import asyncio
from collections import deque

from starlette.types import ASGIApp, Receive, Scope, Send


class StartLimit:
    """ASGI middleware that starts at most `starts` requests in one turn; the others wait in order.

    Accepting, reading and answering take a turn each. If thousands of requests started in each of
    them, a new client would wait for all of them several times.
    """

    def __init__(self, app: ASGIApp, starts: int) -> None:
        self._app = app
        self._starts = starts
        self._started = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._started:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._started += 1
        if self._started > self._starts:
            self._waiting.append(asyncio.get_running_loop().create_future())
            await self._waiting[-1]
        await self._app(scope, receive, send)

    def _next_turn(self) -> None:
        self._started = 0
        while self._waiting and self._started < self._starts:
            start = self._waiting.popleft()
            if not start.done():  # else it was cancelled
                start.set_result(None)
                self._started += 1
        if self._started:
            asyncio.get_running_loop().call_soon(self._next_turn)
