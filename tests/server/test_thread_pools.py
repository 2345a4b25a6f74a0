"""Thread pools: their bounds hold also when callers are cancelled."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ldprecover_server.errors import BusyError
from ldprecover_server.limits import ThreadPool

pytestmark = pytest.mark.anyio


async def hold(
    pool: ThreadPool, then: Callable[[], Any] = bool
) -> tuple[asyncio.Task[Any], threading.Event]:
    """Return a call that has begun, and the event that it waits for."""
    began, released = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        released.wait()
        then()

    call = asyncio.create_task(pool.run(wait))
    await asyncio.to_thread(began.wait)
    return call, released


async def test_cancelled_caller_leaves_queue_but_not_its_thread() -> None:
    threads = ThreadPool(1)
    calls_made: list[str] = []
    first, released = await hold(threads, lambda: calls_made.append("first"))
    calls = [first, asyncio.create_task(threads.run(lambda: calls_made.append("second")))]
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    third = asyncio.create_task(threads.run(lambda: calls_made.append("third")))
    await asyncio.sleep(0)
    assert calls_made == []  # the first has its place still
    released.set()
    await third
    assert calls_made == ["first", "third"]


async def test_errors_reach_the_caller_and_drain_waits() -> None:
    def fail() -> None:
        raise KeyError("no")

    threads = ThreadPool(2)
    with pytest.raises(KeyError):
        await threads.run(fail)
    call, released = await hold(threads)
    await threads.drain(0.01)
    assert not call.done()
    released.set()
    await threads.drain(60)
    await call


async def test_full_pool_counts_calls_of_cancelled_callers() -> None:
    pool = ThreadPool(1, waiting=1)
    first, released = await hold(pool)
    second = asyncio.create_task(pool.run(lambda: None))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    with pytest.raises(BusyError):
        await pool.run(lambda: None)
    released.set()
    await second
    await pool.run(lambda: None)


async def test_call_without_free_thread_times_out() -> None:
    """The one that has begun is waited for."""
    calls_made: list[str] = []
    pool = ThreadPool(1, seconds=0.05)
    first, released = await hold(pool, lambda: calls_made.append("first"))
    with pytest.raises(BusyError, match=r"free in 0\.05 seconds"):
        await pool.run(lambda: calls_made.append("second"))
    released.set()
    await first
    await pool.run(lambda: calls_made.append("third"))
    assert calls_made == ["first", "third"]
