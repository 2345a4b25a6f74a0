"""Work is cancelled when its caller disconnects."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from ldprecover_server.http.disconnects import cancel_on_disconnect


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

        assert await cancel_on_disconnect(Caller().request, right()) == 7
        with pytest.raises(KeyError):
            await cancel_on_disconnect(Caller().request, wrong())
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

        call = asyncio.create_task(cancel_on_disconnect(caller.request, work()))
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
