"""The requests that start in one turn of the event loop."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from ldprecover_server.http.edge import ON_LOSS
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


async def test_ends_a_waiting_request_whose_connection_is_lost() -> None:
    """Clients that reset their connections would fill the queue."""
    started: list[int] = []
    statuses: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        started.append(scope["number"])

    async def note(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    limit = StartLimit(app, 1)
    scopes: list[dict[str, Any]] = [
        {"type": "http", "number": number, "extensions": {ON_LOSS: []}} for number in range(40)
    ]
    tasks = [asyncio.create_task(limit(scope, nothing, note)) for scope in scopes]
    await asyncio.sleep(0)
    assert started == [0]
    for scope in scopes[1:39]:
        for notify in scope["extensions"][ON_LOSS]:
            notify()
    await asyncio.gather(*tasks[1:39])
    assert statuses == 38 * [499]
    await asyncio.gather(*tasks)
    assert started == [0, 39]
