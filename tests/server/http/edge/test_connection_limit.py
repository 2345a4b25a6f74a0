"""The crowd of connections: who makes room, and who is looked at."""

import asyncio

from ldprecover_server.http.edge.connection_limit import ConnectionLimit


class Client:
    """A connection that waits for its client, or is owed something."""

    def __init__(self, crowd: ConnectionLimit, *, waits: bool = True) -> None:
        self.crowd = crowd
        self.waits_for_client = waits
        self.is_cut_off = False
        self.checked_at: list[float] = []

    def cut_off(self) -> None:
        self.is_cut_off = True

    def check(self, now: float) -> None:
        self.checked_at.append(now)
        self.crowd.leave(self)


def joined(crowd: ConnectionLimit, loop: asyncio.AbstractEventLoop, *waiting: bool) -> list[Client]:
    clients = [Client(crowd, waits=waits) for waits in waiting]
    for client in clients:
        crowd.join(client, loop)
    return clients


def test_one_more_takes_the_place_of_the_one_whose_progress_is_longest_ago() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        crowd = ConnectionLimit(3)
        first, second, third = joined(crowd, loop, True, True, True)
        crowd.progressed(first)
        joined(crowd, loop, True)
        assert [client.is_cut_off for client in (first, second, third)] == [False, True, False]
        assert len(crowd) == 3

    asyncio.run(run())


def test_whoever_waits_for_us_keeps_the_place_unless_all_do() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        crowd = ConnectionLimit(2)
        owed, idle = joined(crowd, loop, False, True)
        (late,) = joined(crowd, loop, False)
        assert (owed.is_cut_off, idle.is_cut_off) == (False, True)
        joined(crowd, loop, True)
        assert (owed.is_cut_off, late.is_cut_off) == (True, False)

    asyncio.run(run())


def test_whoever_has_left_makes_no_progress_and_takes_no_place() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        crowd = ConnectionLimit(1)
        (gone,) = joined(crowd, loop, True)
        crowd.leave(gone)
        crowd.leave(gone)
        crowd.progressed(gone)
        joined(crowd, loop, True)
        assert not gone.is_cut_off
        assert len(crowd) == 1

    asyncio.run(run())


def test_a_sweep_checks_every_member_also_where_they_leave_meanwhile() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        crowd = ConnectionLimit(9)
        clients = joined(crowd, loop, True, True)
        crowd._sweep()
        assert [len(client.checked_at) for client in clients] == [1, 1]
        assert len(crowd) == 0

    asyncio.run(run())
