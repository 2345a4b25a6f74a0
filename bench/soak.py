"""Many single reports through two servers on one Postgres while connections break: counts exact,
memory flat.

Each report is posted under a separate key by one of 64 connections. One in a hundred attempts is
broken off, half of them before the body is whole and half before the answer is read; the report is
then sent again, to the other server, under the same key. At the end every count must be exactly the
number of reports that were sent.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator

import httpx
import numpy as np
import psutil
import typer
from bench.harness import open_round, server
from tools.postgres import Cluster

CONNECTIONS = 64
_BROKEN = 0.01
_D = 100


class Sender:
    """One client that keeps its connection, and breaks it now and then."""

    def __init__(self, urls: list[str], rng: np.random.Generator) -> None:
        self._urls = [httpx.URL(url) for url in urls]
        self._rng = rng
        self._at = int(rng.integers(len(urls)))
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.broken = self.duplicates = 0

    async def send(self, item: int) -> None:
        """Send one report until it is answered with 202."""
        body = b'{"reports":[%d]}' % item
        key = secrets.token_hex(16).encode()
        while True:
            url = self._urls[self._at]
            if self._streams is None:
                self._streams = await asyncio.open_connection(url.host, url.port)
            reader, writer = self._streams
            head = (
                b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                b"application/json\r\nIdempotency-Key: %s\r\n" % (url.raw_path, key)
            )
            request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
            chance = self._rng.random()
            if chance < _BROKEN:
                await self._break_off(request[:-5] if chance < _BROKEN / 2 else request)
                continue
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            answered = await reader.readexactly(length)
            if not answer.startswith(b"HTTP/1.1 202 "):
                raise SystemExit(f"unexpected answer: {answer!r} {answered!r}")
            self.duplicates += b'"duplicate":true' in answered
            return

    async def _break_off(self, sent: bytes) -> None:
        assert self._streams is not None
        _, writer = self._streams
        writer.write(sent)
        await writer.drain()
        await self.close()
        self.broken += 1
        self._at = (self._at + 1) % len(self._urls)

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            with contextlib.suppress(ConnectionError):
                await self._streams[1].wait_closed()
            self._streams = None


async def soak(urls: list[str], items: Iterator[int], watch: "Memory") -> tuple[int, int]:
    """Send every item; return how many attempts were broken off, and how many reports were found
    stored.
    """
    senders = [Sender(urls, np.random.default_rng(seed)) for seed in range(CONNECTIONS)]

    async def run(sender: Sender) -> None:
        for item in items:
            await sender.send(item)
            watch.sent()
        await sender.close()

    await asyncio.gather(*map(run, senders))
    return sum(sender.broken for sender in senders), sum(sender.duplicates for sender in senders)


class Memory:
    """Resident memory of servers as reports go in."""

    def __init__(self, processes: list[psutil.Process], every: int) -> None:
        self._processes = processes
        self._every = every
        self._n = 0
        self.mib: list[list[float]] = []

    def sent(self) -> None:
        self._n += 1
        if self._n % self._every == 0:
            self.mib.append([process.memory_info().rss / (1 << 20) for process in self._processes])


def main(reports: int = 200_000) -> None:
    """Post single reports through two servers while connections break; check the counts."""
    items = np.random.default_rng(1).integers(0, _D, reports)
    with (
        Cluster(fsync=True) as cluster,
        cluster.database() as name,
        server(cluster.url(name)) as one,
        server(cluster.url(name)) as two,
    ):
        first = open_round(one, "grr", _D)
        urls = [first, two + httpx.URL(first).path]
        servers = [p for p in psutil.Process().children() if "serve" in p.cmdline()]
        memory = Memory(servers, reports // 10)
        began = time.perf_counter()
        broken, result = asyncio.run(soak(urls, iter(items.tolist()), memory))
        took = time.perf_counter() - began
        counted = httpx.get(first.replace("/reports", "/frequencies")).raise_for_status().json()
        exact = (
            counted["n"] == reports
            and counted["counts"] == np.bincount(items, minlength=_D).tolist()
        )
        print(
            f"{reports} single reports through two servers, {reports / took:.0f}/s, "
            f"{broken} connections "
            f"broken off, {result} reports stored afterwards: counts "
            f"{'exact' if exact else 'WRONG'}"
        )
        for process, mib in zip(servers, zip(*memory.mib, strict=True), strict=True):
            print(
                f"server {process.pid}: {' '.join(f'{value:.0f}' for value in mib)} MiB, each "
                "tenth of the way"
            )
        if not exact:
            raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
