"""Ingest through the real server, durable, beside its floors in one run.

Needs wrk, a compiled load generator. Servers are measured in ABBA order and compared pair by pair,
so that a drift of the machine's speed cancels; figures are medians. wrk's own CPU is printed: it
shares the machine with the server.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import psutil
from tools.postgres import Cluster

from ldprecover import Tally, frequency_oracle
from ldprecover.protocols import wire

CONNECTIONS = 64
RATE = 3000.0  # requests a second at which tails are compared
_KEY = "bench-admin-key-of-32-characters"
_LUA = Path(__file__).with_suffix(".lua")


@dataclass(frozen=True)
class Load:
    """What wrk posts."""

    url: str
    body: Path
    content_type: str
    reports: int
    key: str | None = None  # several reports in one submission need one


@dataclass(frozen=True)
class Run:
    """One run of wrk."""

    requests_per_second: float
    reports_per_second: float
    p50_ms: float
    p99_ms: float
    wrk_cpu: float  # cores
    answered: int
    server_us: float  # processor time a request


def wrk(load: Load, seconds: int, rate: float = 0.0, connections: int = CONNECTIONS) -> Run:
    """Run wrk; with a rate (requests/s in all) at that rate, else as fast as answers come."""
    before, served = resource.getrusage(resource.RUSAGE_CHILDREN), server_seconds(load.url)
    began = time.perf_counter()
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}",
        "--timeout",
        "20s",
        "-s",
        str(_LUA),
        load.url,
    ]
    command += ["--", str(load.body), load.content_type, str(rate / connections)]
    command += [load.key] if load.key else []
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    took = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / took
    figures = json.loads(output.strip().splitlines()[-1])
    if figures["refused"] or figures["broken"]:
        raise SystemExit(
            f"{load.url}: {figures['refused']} refused, {figures['broken']} broken requests"
        )
    per_second = figures["requests"] / figures["seconds"]
    n = figures["requests"]
    each = (server_seconds(load.url) - served) / max(n, 1) * 1e6
    return Run(
        per_second, per_second * load.reports, figures["p50_ms"], figures["p99_ms"], cpu, n, each
    )


def server_seconds(url: str) -> float:
    """Return the processor time that the server at a URL has used: ours that was started with its
    port.
    """
    port = str(httpx.URL(url).port)
    used = 0.0
    for child in psutil.Process().children():
        if port in child.cmdline():
            for process in (child, *child.children(recursive=True)):
                times = process.cpu_times()
                used += times.user + times.system
    return used


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def process(command: list[str], url: str, **environment: str) -> Iterator[str]:
    """Run a server until the block ends; wait until it answers."""
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log)
        try:
            with httpx.Client(transport=httpx.HTTPTransport(retries=5)) as client:
                deadline = time.monotonic() + 120
                while True:
                    with contextlib.suppress(httpx.TransportError):
                        client.get(url)
                        break
                    if child.poll() is not None or time.monotonic() > deadline:
                        log.seek(0)
                        raise SystemExit(f"{command} did not start:\n{log.read().decode()}")
                    time.sleep(0.05)
            yield url
        finally:
            child.terminate()
            child.wait()


@contextlib.contextmanager
def bare_floor(workers: int = 1) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "bench.ingest_floors", "bare", str(port), str(workers)]
    with process(command, f"http://127.0.0.1:{port}") as url:
        yield f"{url}/reports"


@contextlib.contextmanager
def durable_floor(kind: str, folder: Path) -> Iterator[str]:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "bench.ingest_floors",
        kind,
        str(port),
        str(folder / f"{kind}.db"),
    ]
    with process(command, f"http://127.0.0.1:{port}") as url:
        yield f"{url}/reports"


@contextlib.contextmanager
def server(database: Path | str, kernels: str, workers: int = 1) -> Iterator[str]:
    """Run the server on a new SQLite file in a folder, or on a database's URL."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "ldprecover_cli",
        "serve",
        "--port",
        str(port),
        "--workers",
        str(workers),
    ]
    environment = {
        "LDPRECOVER_KERNELS": kernels,
        "LDPRECOVER_ADMIN_KEY": _KEY,
        "LDPRECOVER_DATABASE_URL": f"sqlite:///{database}/{port}.db"
        if isinstance(database, Path)
        else database,
    }
    with process(command, f"http://127.0.0.1:{port}/readyz", **environment):
        yield f"http://127.0.0.1:{port}"


def open_round(url: str, protocol: str, d: int) -> str:
    new = {"protocol": protocol, "epsilon": 0.5, "domain_size": d}
    answer = httpx.post(f"{url}/rounds", json=new, headers={"Authorization": f"Bearer {_KEY}"})
    return f"{url}/rounds/{answer.raise_for_status().json()['id']}/reports"


def packed_load(url: str, protocol: str, d: int, n: int, folder: Path) -> Load:
    oracle = frequency_oracle(protocol, 0.5, d)
    rng = np.random.default_rng(1)
    body = folder / f"{protocol}-{d}-{n}.bin"
    body.write_bytes(wire.pack(oracle.perturb(rng.integers(0, d, n), rng)))
    return Load(open_round(url, protocol, d), body, wire.MEDIA_TYPE, n, _KEY)


def single_load(url: str, folder: Path) -> Load:
    body = folder / "single.json"
    body.write_text('{"seeds": [2882400001], "buckets": [2]}')
    return Load(url, body, "application/json", 1)


def abba(
    a: Load, b: Load, pairs: int, seconds: int, connections: int = CONNECTIONS
) -> tuple[list[Run], list[Run]]:
    """Measure a and b in the order a b b a, a b b a, ...; return the runs of each, paired."""
    runs: tuple[list[Run], list[Run]] = ([], [])
    for pair in range(pairs):
        for which in (0, 1) if pair % 2 == 0 else (1, 0):
            runs[which].append(wrk((a, b)[which], seconds, connections=connections))
    return runs


def median_ratio(a: list[Run], b: list[Run]) -> float:
    return statistics.median(
        x.requests_per_second / y.requests_per_second for x, y in zip(a, b, strict=True)
    )


def median(runs: list[Run], field: str) -> float:
    return statistics.median(getattr(run, field) for run in runs)


def processor_time(ours: list[Run], theirs: list[Run]) -> str:
    """Say what a request took of processors, which other processes on the machine hardly change."""
    return (
        f"processor time {median(ours, 'server_us'):.0f} and {median(theirs, 'server_us'):.0f} "
        "us a request"
    )


def singles(folder: Path, pairs: int, seconds: int) -> None:
    with (
        server(folder, "numba") as url,
        bare_floor() as bare,
        durable_floor("transaction", folder) as plain,
    ):
        ours = single_load(open_round(url, "olh", 102), folder)
        for other, name, goal in (
            (bare, "bare FastAPI route", 0.9),
            (plain, "a transaction a request", 5.0),
        ):
            theirs = single_load(other, folder)
            a, b = abba(ours, theirs, pairs, seconds)
            print(
                f"single reports: {median(a, 'requests_per_second'):8.0f}/s, "
                f"{name} {median(b, 'requests_per_second'):8.0f}/s, "
                f"ratio {median_ratio(a, b):5.2f} (wanted >= {goal}); {processor_time(a, b)}; "
                f"wrk {median(a, 'wrk_cpu'):.2f} and {median(b, 'wrk_cpu'):.2f} cores"
            )


def tails(folder: Path, pairs: int, seconds: int) -> None:
    """p99 at a fixed rate, beside the bare route's, and beside that of the least that group commit
    can do.
    """
    with (
        server(folder, "numba") as url,
        bare_floor() as bare,
        durable_floor("group", folder) as least,
    ):
        ours = single_load(open_round(url, "olh", 102), folder)
        for other, name in ((bare, "bare FastAPI route"), (least, "group commit alone")):
            tail(ours, single_load(other, folder), name, RATE, pairs, seconds)


def analyses(folder: Path, pairs: int, seconds: int) -> None:
    """Single reports while an analysis runs, and while another process keeps a core busy."""
    with server(folder, "numba") as url:
        reports = packed_load(url, "olh", 102, 300_000, folder)
        key = {"Authorization": f"Bearer {_KEY}"}
        packed = {"Content-Type": wire.MEDIA_TYPE, **key}
        httpx.post(
            reports.url, content=reports.body.read_bytes(), headers=packed, timeout=60
        ).raise_for_status()
        long = {"method": "em", "options": {"iterations": 1000, "tolerance": 0}}
        ours = single_load(open_round(url, "olh", 102), folder)
        alone, beside, busy = [], [], []
        for _ in range(pairs):
            alone.append(wrk(ours, seconds))
            headers = {**key, "Prefer": "respond-async"}
            path = reports.url.removesuffix("/reports")
            job = httpx.post(
                f"{path}/recover", json=long, headers=headers, timeout=60
            ).raise_for_status()
            beside.append(wrk(ours, seconds))
            state = httpx.get(f"{url}{job.headers['location']}", headers=key).json()["state"]
            if state not in ("queued", "running"):
                raise SystemExit(f"the analysis was {state} before the measurement ended")
            httpx.delete(f"{url}{job.headers['location']}", headers=key).raise_for_status()
            loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            busy.append(wrk(ours, seconds))
            loop.kill()
            loop.wait()
        print(
            f"single reports beside an analysis: {median_ratio(beside, alone):5.2f} of those "
            "alone; beside a busy core "
            f"{median_ratio(busy, alone):5.2f}; p99 {median(beside, 'p99_ms'):.1f}, "
            f"{median(busy, 'p99_ms'):.1f}, "
            f"alone {median(alone, 'p99_ms'):.1f} ms"
        )


def tail(ours: Load, theirs: Load, name: str, rate: float, pairs: int, seconds: int) -> list[Run]:
    """Print p99 at a rate, over 64 connections, beside a floor's; return our runs."""
    a, b = [], []
    for _ in range(pairs):
        a.append(wrk(ours, seconds, rate))
        b.append(wrk(theirs, seconds, rate))
    ratio = statistics.median(x.p99_ms / y.p99_ms for x, y in zip(a, b, strict=True))
    print(
        f"p99 at {rate:.0f} requests/s: {median(a, 'p99_ms'):.2f} ms, "
        f"{name} {median(b, 'p99_ms'):.2f} ms, ratio {ratio:.2f} "
        f"(p50 {median(a, 'p50_ms'):.2f} and {median(b, 'p50_ms'):.2f} ms)"
    )
    return a


def counting(protocol: str, d: int, body: Path, seconds: float) -> float:
    """Return how many packed reports a second one core counts that does nothing else."""
    oracle = frequency_oracle(protocol, 0.5, d)
    reports = oracle.wire.unpack(body.read_bytes())
    Tally.of(oracle, reports)
    counted, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        Tally.of(oracle, reports)
        counted += len(reports)
    return counted / took


def packed(folder: Path, pairs: int, seconds: int) -> None:
    cases = [
        ("grr", 102, "numba", 15e6, None),
        ("olh", 490, "numpy", 0.8e6, None),
        ("olh", 490, "numba", 6e6, 0.8),
        ("oue", 490, "numba", 0, None),
    ]
    for protocol, d, kernels, goal, least_share in cases:
        with server(folder, kernels) as url:
            load = packed_load(url, protocol, d, 10_000, folder)
            runs, counted = [], []
            for _ in range(pairs):
                runs.append(wrk(load, seconds))
                if least_share is not None:
                    counted.append(counting(protocol, d, load.body, seconds / 4))
            goal_text = f"(wanted >= {goal / 1e6:g})" if goal else ""
            floor = ""
            if counted:
                share = statistics.median(
                    run.reports_per_second / n for run, n in zip(runs, counted, strict=True)
                )
                one = statistics.median(counted) / 1e6
                floor = (
                    f", {share:.2f} of the {one:.1f} that one core counts (wanted >= {least_share})"
                )
            print(
                f"packed submissions of 10,000 {protocol.upper()} reports, d={d}, {kernels}: "
                f"{median(runs, 'reports_per_second') / 1e6:6.2f} million reports/s "
                f"{goal_text}{floor}; "
                f"processor time {median(runs, 'server_us'):.0f} us a submission, "
                f"wrk {median(runs, 'wrk_cpu'):.2f} cores"
            )


def wide(folder: Path, pairs: int, seconds: int) -> None:
    """Packed Hadamard response beside GRR, and over 100,000 items beside itself over 102."""
    with server(folder, "numba") as url:
        narrow, many = (packed_load(url, "hr", d, 10_000, folder) for d in (102, 100_000))
        for ours, theirs, names, goal in (
            (narrow, packed_load(url, "grr", 102, 10_000, folder), "HR, d=102: of GRR's", 0.9),
            (many, narrow, "HR, d=100000: of HR at 102", 0.5),
        ):
            a, b = abba(ours, theirs, pairs, seconds)
            print(
                f"packed submissions of 10,000 reports, {names} {median_ratio(a, b):5.2f} (wanted "
                f">= {goal}), "
                f"{median(a, 'reports_per_second') / 1e6:6.2f} and "
                f"{median(b, 'reports_per_second') / 1e6:6.2f} "
                f"million reports/s; wrk {median(a, 'wrk_cpu'):.2f} cores"
            )


def postgres(folder: Path, pairs: int, seconds: int) -> None:
    """Single reports on Postgres, by one process and by two, from 32 connections; counts are
    checked.
    """
    with Cluster(fsync=True) as cluster:
        for workers in (1, 2):
            with (
                cluster.database() as name,
                server(cluster.url(name), "numba", workers) as url,
                bare_floor(workers) as bare,
            ):
                ours = single_load(open_round(url, "olh", 102), folder)
                before = cpu_seconds()
                began = time.perf_counter()
                a, b = abba(ours, single_load(bare, folder), pairs, seconds, connections=32)
                used = cpu_seconds() - before
                took = time.perf_counter() - began
                print(
                    f"Postgres, {workers} process{'es' * (workers > 1)}: "
                    f"{median(a, 'requests_per_second'):8.0f}/s, "
                    f"bare FastAPI route in as many {median(b, 'requests_per_second'):8.0f}/s, "
                    f"ratio {median_ratio(a, b):5.2f}{' (goal >= 0.9)' * (workers == 1)}; "
                    f"{processor_time(a, b)}; Postgres took {used / took * 2:.2f} cores while it "
                    "was asked, "
                    f"wrk {median(a, 'wrk_cpu'):.2f} and {median(b, 'wrk_cpu'):.2f}"
                )
                if workers == 2:
                    rate = median(a, "requests_per_second") / 2
                    a += tail(
                        ours, single_load(bare, folder), "bare FastAPI route", rate, pairs, seconds
                    )
                counted = httpx.get(f"{url}/rounds/current").raise_for_status().json()["n"]
                answered = sum(run.answered for run in a)
                # wrk stops without waiting for the last answer of each connection.
                if not answered <= counted <= answered + CONNECTIONS * len(a):
                    raise SystemExit(f"{counted} reports counted of {answered} answered")


def cpu_seconds() -> float:
    """Return what every Postgres process alive has used."""
    used = 0.0
    for process in psutil.process_iter(["name", "cpu_times"]):
        if process.info["name"] == "postgres" and process.info["cpu_times"]:
            used += process.info["cpu_times"].user + process.info["cpu_times"].system
    return used


PARTS = {
    "singles": singles,
    "tails": tails,
    "packed": packed,
    "wide": wide,
    "postgres": postgres,
    "analyses": analyses,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ingest", description=__doc__)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--only", choices=list(PARTS))
    chosen = parser.parse_args(arguments)
    if shutil.which("wrk") is None:
        print(
            "ingest: skipped, for wrk is not installed: `apt-get install wrk` or `brew install wrk`"
        )
        return
    print(
        f"ingest, {os.cpu_count()} cores, {CONNECTIONS} connections, {chosen.pairs} pairs of "
        f"{chosen.seconds:g} s"
    )
    for name, part in PARTS.items():
        if chosen.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                part(Path(folder), chosen.pairs, chosen.seconds)


if __name__ == "__main__":
    main()
