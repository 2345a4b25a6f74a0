"""Equal questions are answered once, and nobody works for those who have gone."""

import asyncio

import pytest

from ldprecover_server.analysis.cache import ResultCache, Work
from ldprecover_server.analysis.worker_pool import OnProgress

pytestmark = pytest.mark.anyio


class Worked:
    """Work that ends when it is told to, and counts how often it was begun and cancelled."""

    def __init__(self, answer: bytes = b"answer") -> None:
        self.begun = self.cancelled = 0
        self.answer = answer
        self.go_on = asyncio.Event()
        self.tell: OnProgress | None = None

    async def __call__(self, tell: OnProgress) -> bytes:
        self.begun += 1
        self.tell = tell
        tell(0.5)
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.answer


async def turns() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


def asked(
    answers: ResultCache, key: bytes, work: Work, *, keyed: bool = False
) -> "asyncio.Task[bytes]":
    return asyncio.create_task(answers.get(key, work, keyed=keyed))


async def test_equal_requests_share_one_computation() -> None:
    answers, work = ResultCache(1000), Worked()
    waiting = [asked(answers, b"key", work) for _ in range(5)]
    await turns()
    work.go_on.set()
    assert await asyncio.gather(*waiting) == [b"answer"] * 5
    assert await answers.get(b"key", work, keyed=False) == b"answer"
    assert work.begun == 1
    assert await answers.get(b"other", work, keyed=False) == b"answer"
    assert work.begun == 2


async def test_work_is_cancelled_with_its_last_caller() -> None:
    answers, work = ResultCache(1000), Worked()
    first, second = (asked(answers, b"key", work) for _ in range(2))
    await turns()
    first.cancel()
    await turns()
    assert (work.begun, work.cancelled) == (1, 0)
    second.cancel()
    await turns()
    assert (work.begun, work.cancelled) == (1, 1)
    third = asked(answers, b"key", work)  # it does not get what was cancelled
    work.go_on.set()
    assert await third == b"answer"


async def test_caller_does_not_join_cancelled_work() -> None:
    answers, work = ResultCache(1000), Worked()
    first = asked(answers, b"key", work)
    await turns()
    first.cancel()
    await asyncio.sleep(0)  # the run is being cancelled, and has not ended
    second = asked(answers, b"key", work)
    work.go_on.set()
    assert await second == b"answer"


async def test_keyed_caller_does_not_share_work_of_others() -> None:
    answers, work = ResultCache(1000), Worked()
    tasks = [asked(answers, b"key", work, keyed=keyed) for keyed in (False, True, False, True)]
    await turns()
    assert work.begun == 2
    work.go_on.set()
    await asyncio.gather(*tasks)


async def test_error_reaches_all_callers_and_is_not_cached() -> None:
    answers = ResultCache(1000)

    async def fail(tell: OnProgress) -> bytes:
        await asyncio.sleep(0)
        raise RuntimeError("no answer")

    tasks = [asked(answers, b"key", fail) for _ in range(3)]
    assert [str(found) for found in await asyncio.gather(*tasks, return_exceptions=True)] == [
        "no answer"
    ] * 3
    work = Worked()
    work.go_on.set()
    assert await answers.get(b"key", work, keyed=False) == b"answer"


async def test_later_caller_receives_current_progress() -> None:
    answers, work = ResultCache(1000), Worked()
    first = asked(answers, b"key", work)
    await turns()
    heard: list[float] = []
    second = asyncio.create_task(answers.get(b"key", work, keyed=False, on_progress=heard.append))
    await turns()
    assert work.tell is not None
    work.tell(0.75)
    work.go_on.set()
    await asyncio.gather(first, second)
    assert heard == [0.5, 0.75]


@pytest.mark.parametrize("size", [0, 5, 10, 11])
async def test_cache_evicts_least_recently_used(size: int) -> None:
    answers = ResultCache(10)
    works = {name: Worked(bytes(5)) for name in (b"a", b"b", b"c")}
    works[b"d"] = Worked(bytes(size))
    for work in works.values():
        work.go_on.set()
    for name in (b"a", b"b", b"a", b"c", b"a"):  # b is used the longest ago when c comes
        await answers.get(name, works[name], keyed=False)
    assert [work.begun for work in works.values()] == [1, 1, 1, 0]
    for _ in range(2):
        await answers.get(b"d", works[b"d"], keyed=False)
    assert works[b"d"].begun == (1 if size <= 10 else 2)
    await answers.get(b"a", works[b"a"], keyed=False)
    assert works[b"a"].begun == (1 if size <= 5 else 2)
