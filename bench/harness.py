"""What benchmarks share: work timed in turn, medians, and servers as separate processes."""

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import httpx
import psutil

KEY = "bench-admin-key-of-32-characters"
"""The admin key of each server."""

ADMIN = {"Authorization": f"Bearer {KEY}"}

Work = Callable[[], object]
T = TypeVar("T")


def seconds(work: Work, repeats: int = 1) -> float:
    """Return the mean time of a call."""
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - began) / repeats


def in_turn(works: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Run all works in each round, forwards and backwards by turns (ABBA); return their results.

    So a drift of the machine's speed cancels in ratios within the rounds.
    """
    results: dict[str, list[T]] = {name: [] for name in works}
    for i in range(rounds):
        for name in list(works)[:: -1 if i % 2 else 1]:
            results[name].append(works[name]())
    return results


def median_ratio(numerators: Iterable[float], denominators: Iterable[float]) -> float:
    """Return the median of the ratios within the rounds."""
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def serving(command: list[str], url: str, **environment: str) -> Iterator[psutil.Process]:
    """Run a server until the block ends; yield its process once it answers at `url`."""
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 120
            while True:
                with contextlib.suppress(httpx.TransportError):
                    httpx.get(url)
                    break
                if child.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise SystemExit(f"{command} did not start:\n{log.read().decode()}")
                time.sleep(0.05)
            yield psutil.Process(child.pid)
        finally:
            child.terminate()
            child.wait()


def processor_seconds(server: psutil.Process) -> float:
    """Return the processor time of a server and its processes so far."""
    times = [each.cpu_times() for each in (server, *server.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


Served = tuple[str, psutil.Process]
"""The URL of a server, and its process."""


@contextlib.contextmanager
def server(database: Path | str, kernels: str = "numba", workers: int = 1) -> Iterator[Served]:
    """Run the server on a new SQLite file in a folder, or on a database's URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["serve", "--port", str(port), "--workers", str(workers)]
    if isinstance(database, Path):
        database = f"sqlite:///{database}/{port}.db"
    with serving(
        [sys.executable, "-m", "ldprecover_cli", *command],
        f"{url}/readyz",
        LDPRECOVER_KERNELS=kernels,
        LDPRECOVER_ADMIN_KEY=KEY,
        LDPRECOVER_DATABASE_URL=database,
    ) as process:
        yield url, process


@contextlib.contextmanager
def bare_route(workers: int) -> Iterator[Served]:
    """Run the route of `bare.py` in this many processes."""
    port = free_port()
    options = ["--port", str(port), "--workers", str(workers), "--no-access-log"]
    with serving(
        [sys.executable, "-m", "uvicorn", "bench.bare:app", *options], f"http://127.0.0.1:{port}"
    ) as process:
        yield f"http://127.0.0.1:{port}/reports", process


def open_round(url: str, protocol: str, d: int) -> str:
    """Open a round over d items; return the URL of its reports."""
    new = {"protocol": protocol, "epsilon": 0.5, "domain_size": d}
    answer = httpx.post(f"{url}/rounds", json=new, headers=ADMIN)
    return f"{url}/rounds/{answer.raise_for_status().json()['id']}/reports"
