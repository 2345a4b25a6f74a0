"""Large responses: sent in pieces, within a limit, and cut off if read too slowly."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from tests.server.conftest import StartInProcess

from ldprecover_server.http.edge.protocol import ABORT
from ldprecover_server.http.middleware.backpressure import Backpressure

pytestmark = pytest.mark.sqlite


KIB = 1 << 10


class Reader:
    """A client that reads everything, or, if slow, one piece per signal."""

    def __init__(self, *, slow: bool = False) -> None:
        self.messages: list[Message] = []
        self.is_cut_off = False
        self._resumed = asyncio.Event()
        if not slow:
            self._resumed.set()

    def abort(self) -> None:
        self.is_cut_off = True
        self._resumed.set()  # as the end of the connection ends the wait for its client

    async def send(self, message: Message) -> None:
        self.messages.append(message)
        if message["type"] == "http.response.body":
            await self._resumed.wait()

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.messages[1:])

    def scope(self, **headers: str) -> Scope:
        headers_sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        return {"type": "http", "headers": headers_sent, "extensions": {ABORT: self.abort}}

    async def read(
        self, app: Callable[[Scope, Receive, Send], Awaitable[None]], **headers: str
    ) -> None:
        await app(self.scope(**headers), nothing, self.send)


async def nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": True}


def answers(*pieces: bytes) -> Any:
    """An application that answers with these pieces."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for i, piece in enumerate(pieces, start=1):
            await send({"type": "http.response.body", "body": piece, "more_body": i < len(pieces)})

    return app


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


@pytest.mark.parametrize("size", [0, 1, 32 * KIB, 32 * KIB + 1, 100 * KIB])
def test_large_response_is_sent_in_pieces(size: int) -> None:
    async def run() -> None:
        body, reader = bytes(i % 251 for i in range(size)), Reader()
        app = Backpressure(answers(body), 1 << 20, 60)
        await reader.read(app)
        assert reader.body == body
        assert [message["more_body"] for message in reader.messages[1:]] == [True] * (
            len(reader.messages) - 2
        ) + [False]
        assert all(len(message["body"]) <= 32 * KIB for message in reader.messages[1:])
        assert app._budget.reserved == 0

    asyncio.run(run())


def test_slowest_reader_is_cut_off_first() -> None:
    async def run() -> None:
        app = Backpressure(answers(bytes(100 * KIB)), 150 * KIB, 60)
        slow, quick = Reader(slow=True), Reader()
        reading = asyncio.create_task(slow.read(app))
        await until(lambda: len(slow.messages) == 2)
        await quick.read(app)
        await reading
        assert slow.is_cut_off
        assert len(quick.body) == 100 * KIB
        assert not quick.is_cut_off
        assert app._budget.reserved == 0

    asyncio.run(run())


def test_unread_response_is_cut_off_after_its_time() -> None:
    async def run() -> None:
        slow = Reader(slow=True)
        app = Backpressure(answers(bytes(100 * KIB)), 1 << 20, seconds=0.01)
        await slow.read(app)
        assert slow.is_cut_off
        assert app._budget.reserved == 0

    asyncio.run(run())


def test_response_above_the_limit_is_503_or_cut_off() -> None:
    async def run() -> None:
        whole, begun = Reader(), Reader()
        await whole.read(Backpressure(answers(bytes(100 * KIB)), 64 * KIB, 60))
        assert (whole.status, whole.is_cut_off) == (503, False)
        await begun.read(Backpressure(answers(b"begun", bytes(100 * KIB)), 64 * KIB, 60))
        assert (begun.status, begun.body, begun.is_cut_off) == (200, b"begun", True)

    asyncio.run(run())


def test_replacing_error_closes_connection_with_unread_body(
    start_in_process: StartInProcess,
) -> None:
    app, reader = start_in_process(answer_bytes=1024 * KIB), Reader()
    id = app.open_round(items=[f"{i:0100}" for i in range(12_000)])
    scope = reader.scope(**{"content-length": "5"})
    scope = {
        **scope,
        "method": "GET",
        "path": f"/rounds/{id}",
        "raw_path": b"",
        "query_string": b"",
        "app": app,
    }
    app.run(app.app(scope, nothing, reader.send))
    assert reader.status == 503
    assert (b"connection", b"close") in reader.messages[0]["headers"]
