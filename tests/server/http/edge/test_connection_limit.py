"""The limit on connections: which one is evicted, and which are checked."""

import asyncio

import pytest

from ldprecover_server.http.edge import ConnectionLimit

pytestmark = pytest.mark.anyio


class Client:
    """A connection that is idle (it waits for its client), or has a response in progress."""

    def __init__(self, limit: ConnectionLimit, *, idle: bool = True) -> None:
        self.limit = limit
        self.loop = asyncio.get_running_loop()
        self.waits_for_client = idle
        self.is_cut_off = False
        self.checks = 0

    def cut_off(self) -> None:
        self.is_cut_off = True

    def check(self, now: float) -> None:
        self.checks += 1
        self.limit.remove(self)


def add(limit: ConnectionLimit, *idle: bool) -> list[Client]:
    clients = [Client(limit, idle=each) for each in idle]
    for client in clients:
        limit.add(client)
    return clients


async def test_evicts_slowest() -> None:
    counts: list[int] = []
    evictions: list[None] = []
    limit = ConnectionLimit(3, counts.append, lambda: evictions.append(None))
    first, second, third = add(limit, True, True, True)
    limit.progressed(first)
    add(limit, True)
    assert [client.is_cut_off for client in (first, second, third)] == [False, True, False]
    assert (counts, len(evictions)) == ([1, 2, 3, 2, 3], 1)


async def test_evicts_idle_first() -> None:
    limit = ConnectionLimit(2)
    busy, idle = add(limit, False, True)
    (newer,) = add(limit, False)
    assert (busy.is_cut_off, idle.is_cut_off) == (False, True)
    add(limit, True)
    assert (busy.is_cut_off, newer.is_cut_off) == (True, False)


async def test_forgets_removed_connection() -> None:
    counts: list[int] = []
    limit = ConnectionLimit(1, counts.append)
    (client,) = add(limit, True)
    limit.remove(client)
    limit.remove(client)
    limit.progressed(client)
    add(limit, True)
    assert not client.is_cut_off
    assert counts == [1, 0, 0, 1]


async def test_checks_all_while_they_leave() -> None:
    counts: list[int] = []
    limit = ConnectionLimit(9, counts.append)
    clients = [Client(limit) for _ in range(2)]
    for client in clients:
        limit.add(client)
    limit._check_all(asyncio.get_running_loop())
    assert [client.checks for client in clients] == [1, 1]
    assert counts[-1] == 0
