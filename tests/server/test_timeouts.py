"""Many deadlines under one timer."""

import asyncio

from ldprecover_server.timeouts import Timeouts


def test_only_what_has_not_ended_is_called_back_in_the_order_of_its_coming() -> None:
    async def run() -> list[str]:
        deadlines = Timeouts(0.01)
        called: list[str] = []
        done = asyncio.Event()
        for name in ("first", "ended", "second"):
            number = deadlines.add(lambda name=name: called.append(name))  # type: ignore[misc]
            if name == "ended":
                deadlines.remove(number)
        deadlines.add(done.set)
        await done.wait()
        return called

    assert asyncio.run(run()) == ["first", "second"]


def test_it_starts_again_after_a_pause_and_in_another_loop() -> None:
    deadlines = Timeouts(0.01)

    async def run() -> None:
        for _ in range(2):
            done = asyncio.Event()
            deadlines.add(done.set)
            await done.wait()

    for _ in range(2):
        asyncio.run(run())


def test_a_deadline_that_is_removed_by_another_is_not_called() -> None:
    async def run() -> list[str]:
        deadlines = Timeouts(0.01)
        called: list[str] = []
        done = asyncio.Event()
        numbers: list[int] = []
        deadlines.add(lambda: deadlines.remove(numbers[0]))
        numbers.append(deadlines.add(lambda: called.append("removed")))
        deadlines.add(done.set)
        await done.wait()
        return called

    assert asyncio.run(run()) == []
