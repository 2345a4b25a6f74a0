"""The requests that start in one turn of the event loop."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from ldprecover_server.http.middleware.start_limit import StartLimit

pytestmark = pytest.mark.anyio

STARTS = 8


async def nothing() -> Message:
    raise AssertionError


async def drop(message: Message) -> None:
    pass


async def test_starts_few_requests_in_a_turn_and_all_in_order() -> None:
    started: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        started.append(scope["number"])

    limit = StartLimit(app, STARTS)

    def begin(number: int) -> "asyncio.Task[None]":
        return asyncio.create_task(limit({"type": "http", "number": number}, nothing, drop))

    tasks = [begin(number) for number in range(4 * STARTS)]
    cancelled = tasks.pop(2 * STARTS)
    turns = 0
    while len(started) < len(tasks):
        before = len(started)
        await asyncio.sleep(0)
        assert len(started) - before <= STARTS
        turns += 1
        if turns == 1:
            cancelled.cancel()
    assert started == [number for number in range(4 * STARTS) if number != 2 * STARTS]
    await asyncio.gather(*tasks)
    await begin(0)
    assert started[-1] == 0
