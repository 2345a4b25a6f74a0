"""The memory of large responses that clients have not read yet."""

import asyncio

import pytest
from starlette.responses import Response
from starlette.types import Message

from ldprecover_server.http.middleware import UnreadResponses

pytestmark = pytest.mark.anyio

KIB = 1 << 10
SCOPE = {"type": "http", "method": "GET", "headers": []}


async def nothing() -> Message:
    raise AssertionError


async def test_large_responses_share_a_budget_until_they_are_read() -> None:
    app = UnreadResponses(Response(bytes(100 * KIB)), 150 * KIB)
    reads = asyncio.Event()
    unread: list[Message] = []
    refused: list[Message] = []

    async def send_slowly(message: Message) -> None:
        unread.append(message)
        await reads.wait()

    async def send(message: Message) -> None:
        refused.append(message)

    first = asyncio.create_task(app(SCOPE, nothing, send_slowly))
    await asyncio.sleep(0)
    await app(SCOPE, nothing, send)
    assert refused[0]["status"] == 503
    assert (b"retry-after", b"1") in refused[0]["headers"]
    reads.set()
    await first
    assert [len(message["body"]) for message in unread[1:]] == [32 * KIB] * 3 + [4 * KIB]
    assert [message["more_body"] for message in unread[1:]] == [True] * 3 + [False]
    refused.clear()
    await app(SCOPE, nothing, send)
    assert refused[0]["status"] == 200
