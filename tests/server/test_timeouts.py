"""Many timeouts under one timer."""

import asyncio
from functools import partial

import pytest

from ldprecover_server.limits import Timeouts


@pytest.mark.anyio
async def test_calls_back_in_order_unless_removed() -> None:
    timeouts = Timeouts(0.01)
    called: list[str] = []
    done = asyncio.Event()
    for name in ("first", "removed", "second"):
        number = timeouts.add(partial(called.append, name))
        if name == "removed":
            timeouts.remove(number)
    timeouts.add(done.set)
    await done.wait()
    assert called == ["first", "second"]


@pytest.mark.anyio
async def test_callback_may_remove_another_timeout() -> None:
    timeouts = Timeouts(0.01)
    called: list[str] = []
    done = asyncio.Event()
    numbers: list[int] = []
    timeouts.add(lambda: timeouts.remove(numbers[0]))
    numbers.append(timeouts.add(lambda: called.append("removed")))
    timeouts.add(done.set)
    await done.wait()
    assert called == []


def test_restarts_after_a_pause_and_in_another_loop() -> None:
    timeouts = Timeouts(0.01)

    async def wait_twice() -> None:
        for _ in range(2):
            done = asyncio.Event()
            timeouts.add(done.set)
            await done.wait()

    for _ in range(2):
        asyncio.run(wait_twice())
