"""The order in which analyses are admitted, and who makes room."""

import asyncio
from collections.abc import Hashable

import pytest

from ldprecover_server.analysis.worker_pool import AdmissionQueue
from ldprecover_server.errors import AnalysesBusyError

pytestmark = pytest.mark.anyio


class Queue:
    """An admission queue with one place, which is taken, and the names of those admitted."""

    def __init__(self, waiting: int) -> None:
        self.admission = AdmissionQueue(1, waiting)
        self.admitted: list[str] = []
        self.rejected: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def add(self, name: str, group: Hashable = None, *, keyed: bool = False) -> None:
        async def wait() -> None:
            try:
                await self.admission.acquire(keyed=keyed, seconds=60, group=group)
            except AnalysesBusyError:
                self.rejected.append(name)
                return
            self.admitted.append(name)
            if len(self.admitted) > 1:  # the first holds its place until `serve`
                self.admission.release(keyed=keyed)

        self.tasks.append(asyncio.create_task(wait()))
        await asyncio.sleep(0)

    async def serve(self) -> list[str]:
        """Release the place, and return the names in the order of their admission."""
        self.admission.release(keyed=False)
        await asyncio.gather(*self.tasks)
        assert (self.admission.running, self.admission.waiting) == (0, 0)
        return self.admitted[1:]


async def test_groups_take_turns_and_keys_come_first() -> None:
    queue = Queue(32)
    await queue.add("runs", "A")
    for name, group, keyed in (
        ("A1", "A", False),
        ("A2", "A", False),
        ("B1", "B", False),
        ("B2", "B", False),
        ("key 1", ("A", "one"), True),
        ("key 2", ("A", "one"), True),
        ("other key", ("A", "two"), True),
    ):
        await queue.add(name, group, keyed=keyed)
    keys = ["key 1", "other key", "key 2"]
    assert await queue.serve() == [*keys, "B2", "A2", "B1", "A1"]


async def test_one_anonymous_caller_cannot_take_all_places() -> None:
    """The last one that comes is served next, whatever waits before it in its round or others."""
    for round in ("A", "B"):
        queue = Queue(32)
        await queue.add("runs", "A")
        for number in range(20):
            await queue.add(f"flood {number}", "A")
        assert queue.admission.waiting == 16
        await queue.add("honest", round)
        assert (await queue.serve())[0] == "honest"
        assert queue.rejected == [f"flood {number}" for number in range(5)]


async def test_the_largest_group_makes_room() -> None:
    queue = Queue(6)
    await queue.add("runs", "A")
    for name, group in (("B1", "B"), ("A1", "A"), ("A2", "A"), ("C1", "C")):
        await queue.add(name, group)
    assert set(await queue.serve()) == {"B1", "A2", "C1"}
    assert queue.rejected == ["A1"]


async def test_a_full_queue_rejects_a_caller_with_a_key() -> None:
    queue = Queue(2)
    await queue.add("runs")
    for number in range(3):
        await queue.add(f"key {number}", keyed=True)
    assert await queue.serve() == ["key 0", "key 1"]
    assert queue.rejected == ["key 2"]


async def test_cancelled_callers_leave_the_queue_or_their_place() -> None:
    queue = Queue(8)
    await queue.add("runs")
    await queue.add("waits")
    queue.tasks[1].cancel()
    await asyncio.wait(queue.tasks[1:])
    assert queue.admission.waiting == 0
    await queue.add("admitted and cancelled")
    queue.admission.release(keyed=False)
    queue.tasks[2].cancel()
    await asyncio.wait(queue.tasks[2:])
    assert queue.admission.running == 0


async def test_background_work_waits_for_callers() -> None:
    admission = AdmissionQueue(1, 8, quiet_seconds=0.0)
    await admission.acquire(keyed=False, seconds=60)
    own = asyncio.create_task(admission.acquire_own())
    caller = asyncio.create_task(admission.acquire(keyed=False, seconds=60))
    await asyncio.sleep(0)
    admission.release(keyed=False)
    await caller  # though it came later
    assert not own.done()
    admission.release(keyed=False)
    await own
    assert (admission.running, admission.needs_place) == (1, False)
    caller = asyncio.create_task(admission.acquire(keyed=True, seconds=60))
    await asyncio.sleep(0)
    assert admission.needs_place
    admission.release_own()
    await caller
    assert not admission.needs_place


async def test_own_work_takes_a_place_that_callers_may_not() -> None:
    """Anonymous callers leave one place free, and however many wait, they cannot take it."""
    admission = AdmissionQueue(2, 8)
    await admission.acquire(keyed=False, seconds=60)
    waits = asyncio.create_task(admission.acquire(keyed=False, seconds=60))
    await asyncio.sleep(0)
    await admission.acquire_own()
    assert (admission.running, admission.waiting, admission.needs_place) == (2, 1, False)
    waits.cancel()


async def test_own_work_follows_a_caller_who_leaves_the_queue() -> None:
    admission = AdmissionQueue(2, 8, quiet_seconds=0.0)
    for keyed in (True, True):
        await admission.acquire(keyed=keyed, seconds=60)
    waits = asyncio.create_task(admission.acquire(keyed=True, seconds=60))
    own = asyncio.create_task(admission.acquire_own())
    await asyncio.sleep(0)
    waits.cancel()
    admission.release(keyed=True)
    await own
    assert (admission.running, admission.waiting) == (2, 0)


async def test_own_work_leaves_the_last_place_for_a_while() -> None:
    """A caller who had it comes again, as one who asks for one result after the other."""
    admission = AdmissionQueue(1, 8, quiet_seconds=60)
    await admission.acquire(keyed=False, seconds=60)
    admission.release(keyed=False)
    own = asyncio.create_task(admission.acquire_own())
    await asyncio.sleep(0)
    await admission.acquire(keyed=False, seconds=60)
    admission.release(keyed=False)
    await asyncio.sleep(0)
    assert not own.done()
    own.cancel()
    two = AdmissionQueue(2, 8, quiet_seconds=60)
    await two.acquire(keyed=True, seconds=60)
    two.release(keyed=True)
    await two.acquire_own()  # another place is free


async def test_own_work_takes_the_last_place_when_it_is_quiet() -> None:
    admission = AdmissionQueue(1, 8, quiet_seconds=0.01)
    await admission.acquire(keyed=False, seconds=60)
    admission.release(keyed=False)
    await admission.acquire_own()
    assert admission.running == 1
