"""The requests that start in one turn of the event loop, and those whose client is gone."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from ldprecover_server.http.middleware import StartLimit

pytestmark = pytest.mark.anyio

STARTS = 8


async def nothing() -> Message:
    raise AssertionError


async def drop(message: Message) -> None:
    pass


def scope_of(number: int, method: str) -> dict[str, Any]:
    return {"type": "http", "method": method, "headers": [], "number": number}


async def test_starts_few_requests_in_a_turn_and_all_in_order() -> None:
    started: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        started.append(scope["number"])

    limit = StartLimit(app, STARTS)

    def begin(number: int) -> "asyncio.Task[None]":
        return asyncio.create_task(limit(scope_of(number, "POST"), nothing, drop))

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


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_cancels_only_reads_whose_client_is_gone(method: str) -> None:
    ended: list[str] = []
    statuses: list[int] = []
    disconnected, end = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await end.wait()
            ended.append("answered")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def receive() -> Message:
        await disconnected.wait()
        return {"type": "http.disconnect"}

    async def note(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    limit = StartLimit(app, 1)
    tasks = [asyncio.create_task(limit(scope_of(i, method), receive, note)) for i in range(40)]
    await asyncio.sleep(0)
    disconnected.set()
    if method == "POST":
        end.set()
    await asyncio.gather(*tasks)
    if method == "GET":
        assert len(ended) < 40, "those that wait never start"
        assert set(ended) == {"cancelled"}
        assert statuses == 40 * [499]
    else:
        assert ended == 40 * ["answered"]
