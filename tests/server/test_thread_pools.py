"""Lanes of threads: never more calls at once than allowed, whoever comes and goes."""

import asyncio
import threading

import pytest

from ldprecover_server.errors import BusyError
from ldprecover_server.thread_pools import ThreadPool

pytestmark = pytest.mark.anyio


async def test_cancelled_caller_leaves_queue_but_not_its_thread() -> None:
    threads = ThreadPool(1)
    began, go_on = threading.Event(), threading.Event()
    made = []

    def first() -> None:
        began.set()
        go_on.wait()
        made.append("first")

    calls = [asyncio.create_task(threads.run(first))]
    await asyncio.to_thread(began.wait)
    calls += [asyncio.create_task(threads.run(lambda: made.append("second")))]
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    third = asyncio.create_task(threads.run(lambda: made.append("third")))
    await asyncio.sleep(0)
    assert made == []  # the first has its place still
    go_on.set()
    await third
    assert made == ["first", "third"]


async def test_errors_reach_the_caller_and_drain_waits() -> None:
    def fail() -> None:
        raise KeyError("no")

    threads = ThreadPool(2)
    with pytest.raises(KeyError):
        await threads.run(fail)
    began, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        go_on.wait()

    call = asyncio.create_task(threads.run(wait))
    await asyncio.to_thread(began.wait)
    await threads.drain(0.01)
    assert not call.done()
    go_on.set()
    await threads.drain(60)
    await call


async def test_full_pool_counts_calls_of_cancelled_callers() -> None:
    lane = ThreadPool(1, waiting=1)
    began, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        go_on.wait()

    first = asyncio.create_task(lane.run(wait))
    await asyncio.to_thread(began.wait)
    second = asyncio.create_task(lane.run(lambda: None))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    with pytest.raises(BusyError):
        await lane.run(lambda: None)
    go_on.set()
    await second
    await lane.run(lambda: None)


async def test_call_without_free_thread_times_out() -> None:
    """The one that has begun is waited for."""
    made = []

    lane = ThreadPool(1, seconds=0.05)
    began, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        go_on.wait()
        made.append("first")

    first = asyncio.create_task(lane.run(wait))
    await asyncio.to_thread(began.wait)
    with pytest.raises(BusyError, match=r"free in 0\.05 seconds"):
        await lane.run(lambda: made.append("second"))
    go_on.set()
    await first
    await lane.run(lambda: made.append("third"))
    assert made == ["first", "third"]
