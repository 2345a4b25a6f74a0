"""Limits the requests that start in one turn of the event loop, and cancels abandoned ones."""

import asyncio
from collections import deque

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover_server.http.bodies import has_body
from ldprecover_server.http.problems import GONE


class StartLimit:
    """ASGI middleware that starts at most `starts` requests in one turn; the others wait in order.

    If thousands of requests started in one turn, submissions would wait for all of them. A request
    without a body that reads is cancelled when its client disconnects, also while it waits: clients
    that ask and leave would otherwise queue work without limit.
    """

    def __init__(self, app: ASGIApp, starts: int) -> None:
        self._app = app
        self._starts = starts
        self._started = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reads = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not reads or has_body(dict(scope["headers"])):
            await self._start()
            await self._app(scope, receive, send)
            return
        is_answered = False

        async def send_response(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        async def work() -> None:
            await self._start()
            await self._app(scope, receive, send_response)

        working = asyncio.ensure_future(work())
        disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait([working, disconnected], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            for task in (working, disconnected):
                task.cancel()
            await asyncio.gather(working, disconnected, return_exceptions=True)
        if not is_answered:
            await Response(status_code=GONE)(scope, receive, send)

    async def _start(self) -> None:
        if not self._started:
            asyncio.get_running_loop().call_soon(self._next_turn)
        self._started += 1
        if self._started > self._starts:
            start = asyncio.get_running_loop().create_future()
            self._waiting.append(start)
            await start

    def _next_turn(self) -> None:
        self._started = 0
        while self._waiting and self._started < self._starts:
            start = self._waiting.popleft()
            if not start.done():  # else it was cancelled
                start.set_result(None)
                self._started += 1
        if self._started:
            asyncio.get_running_loop().call_soon(self._next_turn)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
