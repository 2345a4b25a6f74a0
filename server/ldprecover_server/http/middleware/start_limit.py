"""Limits the requests that start in one turn of the event loop."""

import asyncio
from collections import deque

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ldprecover_server.http.edge import ON_LOSS
from ldprecover_server.http.problems import GONE


class StartLimit:
    """ASGI middleware that starts at most `starts` requests in one turn; the others wait in order.

    A request whose connection is lost while it waits never starts: clients that reset their
    connections would otherwise fill the queue without limit.

    Accepting, reading and answering take a turn each. If thousands of requests started in each of
    them, a new client would wait for all of them several times.
    """

    def __init__(self, app: ASGIApp, starts: int) -> None:
        self._app = app
        self._starts = starts
        self._started = 0
        self._waiting: deque[asyncio.Future[bool]] = deque()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._started:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._started += 1
        if self._started > self._starts:
            start: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._waiting.append(start)

            def end() -> None:
                if not start.done():
                    start.set_result(False)

            scope.get("extensions", {}).get(ON_LOSS, []).append(end)
            if not await start:
                await Response(status_code=GONE)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _next_turn(self) -> None:
        self._started = 0
        while self._waiting and self._started < self._starts:
            start = self._waiting.popleft()
            if not start.done():  # else it was cancelled or its connection was lost
                start.set_result(True)
                self._started += 1
        if self._started:
            asyncio.get_running_loop().call_soon(self._next_turn)
