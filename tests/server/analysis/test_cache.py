"""The cache of results: single flight, cancellation, and eviction."""

import asyncio
from collections.abc import Callable

import pytest

from ldprecover_server.analysis.analyses import ResultCache, Work

pytestmark = pytest.mark.anyio


class CountedWork:
    """Work that ends on a signal and counts its starts and cancellations.

    If it `is_queued`, it never runs.
    """

    def __init__(self, answer: bytes = b"answer", *, is_queued: bool = False) -> None:
        self.begun = self.cancelled = 0
        self.answer = answer
        self.finish = asyncio.Event()
        self.is_queued = is_queued

    async def __call__(self, on_start: Callable[[], None]) -> bytes:
        self.begun += 1
        if not self.is_queued:
            on_start()
        try:
            await self.finish.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.answer


async def run_tasks() -> None:
    """Run all tasks until they wait."""
    for _ in range(10):
        await asyncio.sleep(0)


def request(
    cache: ResultCache, key: bytes, work: Work, *, keyed: bool = False
) -> "asyncio.Task[bytes]":
    return asyncio.create_task(cache.get(key, work, keyed=keyed))


async def test_equal_requests_share_one_computation() -> None:
    cache, work = ResultCache(1000), CountedWork()
    waiting = [request(cache, b"key", work) for _ in range(5)]
    await run_tasks()
    work.finish.set()
    assert await asyncio.gather(*waiting) == [b"answer"] * 5
    assert await cache.get(b"key", work, keyed=False) == b"answer"
    assert work.begun == 1
    assert await cache.get(b"other", work, keyed=False) == b"answer"
    assert work.begun == 2


async def test_work_is_cancelled_with_its_last_caller() -> None:
    cache, work = ResultCache(1000), CountedWork()
    first, second = (request(cache, b"key", work) for _ in range(2))
    await run_tasks()
    first.cancel()
    await run_tasks()
    assert (work.begun, work.cancelled) == (1, 0)
    second.cancel()
    await run_tasks()
    assert (work.begun, work.cancelled) == (1, 1)
    third = request(cache, b"key", work)  # it does not get what was cancelled
    work.finish.set()
    assert await third == b"answer"


async def test_running_work_of_a_keyed_caller_outlives_it() -> None:
    cache, work = ResultCache(1000), CountedWork()
    first = request(cache, b"key", work, keyed=True)
    await run_tasks()
    first.cancel()
    await run_tasks()
    second = request(cache, b"key", work, keyed=True)
    await run_tasks()
    second.cancel()
    work.finish.set()
    await run_tasks()
    assert await cache.get(b"key", work, keyed=False) == b"answer"
    assert (work.begun, work.cancelled) == (1, 0)


async def test_queued_work_is_cancelled_with_its_keyed_caller() -> None:
    cache, work = ResultCache(1000), CountedWork(is_queued=True)
    first = request(cache, b"key", work, keyed=True)
    await run_tasks()
    first.cancel()
    await run_tasks()
    assert (work.begun, work.cancelled) == (1, 1)


async def test_caller_does_not_join_cancelled_work() -> None:
    cache, work = ResultCache(1000), CountedWork()
    first = request(cache, b"key", work)
    await run_tasks()
    first.cancel()
    await asyncio.sleep(0)  # the run is being cancelled, and has not ended
    second = request(cache, b"key", work)
    work.finish.set()
    assert await second == b"answer"


async def test_keyed_caller_does_not_share_work_of_others() -> None:
    cache, work = ResultCache(1000), CountedWork()
    tasks = [request(cache, b"key", work, keyed=keyed) for keyed in (False, True, False, True)]
    await run_tasks()
    assert work.begun == 2
    work.finish.set()
    await asyncio.gather(*tasks)


async def test_error_reaches_all_callers_and_is_not_cached() -> None:
    cache = ResultCache(1000)

    async def fail(on_start: Callable[[], None]) -> bytes:
        await asyncio.sleep(0)
        raise RuntimeError("no answer")

    tasks = [request(cache, b"key", fail) for _ in range(3)]
    assert [str(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == [
        "no answer"
    ] * 3
    work = CountedWork()
    work.finish.set()
    assert await cache.get(b"key", work, keyed=False) == b"answer"


@pytest.mark.parametrize("size", [0, 5, 10, 11])
async def test_cache_evicts_least_recently_used(size: int) -> None:
    cache = ResultCache(10)
    works = {name: CountedWork(bytes(5)) for name in (b"a", b"b", b"c")}
    works[b"d"] = CountedWork(bytes(size))
    for work in works.values():
        work.finish.set()
    for name in (b"a", b"b", b"a", b"c", b"a"):  # b is used the longest ago when c comes
        await cache.get(name, works[name], keyed=False)
    assert [work.begun for work in works.values()] == [1, 1, 1, 0]
    for _ in range(2):
        await cache.get(b"d", works[b"d"], keyed=False)
    assert works[b"d"].begun == (1 if size <= 10 else 2)
    await cache.get(b"a", works[b"a"], keyed=False)
    assert works[b"a"].begun == (1 if size <= 5 else 2)
