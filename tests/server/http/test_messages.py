"""Bodies are strict JSON, and work is cancelled when its caller disconnects."""

import asyncio
from typing import Any

import pytest
from pydantic import RootModel
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from ldprecover_server.errors import InvalidRequestError
from ldprecover_server.http.messages import cancel_on_disconnect, parse_json


class Body(RootModel[Any]):
    """Any JSON."""


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b' {"count": [3, 1.0, "\\ud83d\\ude00"]}\n', {"count": [3, 1.0, "\N{GRINNING FACE}"]}),
        (b'{"count": 1, "c\\u006funt": 2}', {"count": 2}),
    ],
)
def test_json_is_its_value(body: bytes, value: object) -> None:
    assert parse_json(Body, bytearray(body)).root == value


@pytest.mark.parametrize(
    "body",
    [
        b'{"count": 1',
        b'{"\xff": 1}',
        b'\xef\xbb\xbf{"count": 1}',
        b'{"count": NaN}',
        b'{"count": 1} x',
        b'{"\\ud800": 1}',
        b'{"\\ud800 and much more of it": 1}',
        b'{"\\udc00 and much more of it": 1}',
        b"[" * 100_000,
    ],
)
def test_rejects_what_is_not_strict_json(body: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="not JSON"):
        parse_json(Body, body)


class Caller:
    """A caller who stays connected until `disconnected` is set."""

    def __init__(self) -> None:
        self.disconnected = asyncio.Event()
        self.request = Request({"type": "http", "headers": []}, self._receive)

    async def _receive(self) -> Message:
        await self.disconnected.wait()
        return {"type": "http.disconnect"}


def test_result_and_error_reach_the_caller() -> None:
    async def run() -> None:
        async def right() -> int:
            return 7

        async def wrong() -> int:
            raise KeyError("7")

        assert await cancel_on_disconnect(Caller().request.receive, right()) == 7
        with pytest.raises(KeyError):
            await cancel_on_disconnect(Caller().request.receive, wrong())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


@pytest.mark.parametrize("ends", ["the caller goes", "the call is cancelled"])
def test_the_work_ends_before_the_call_does(ends: str) -> None:
    async def run() -> None:
        caller, begun, ended = Caller(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        call = asyncio.create_task(cancel_on_disconnect(caller.request.receive, work()))
        await begun.wait()
        if ends == "the caller goes":
            caller.disconnected.set()
        else:
            call.cancel()
        with pytest.raises(
            ClientDisconnect if ends == "the caller goes" else asyncio.CancelledError
        ):
            await call
        assert ended.is_set()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
