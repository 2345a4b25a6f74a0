"""Ingest through the real server, durable, beside its floors in one run.

Needs wrk, a compiled load generator. Servers are measured in ABBA order and compared pair by pair,
so that a drift of the machine's speed cancels; figures are medians. wrk's own CPU is printed: it
shares the machine with the server.
"""

import contextlib
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import httpx
import numpy as np
import psutil
import typer
from bench.harness import (
    ADMIN,
    KEY,
    ended_seconds,
    free_port,
    in_turn,
    median_ratio,
    open_round,
    processor_seconds,
    seconds,
    server,
    serving,
)
from tools.postgres import Cluster

from ldprecover import Tally, frequency_oracle
from ldprecover.protocols import wire

CONNECTIONS = 64
RATE = 3000.0  # requests a second at which tails are compared
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


class Runs(list[Run]):
    """Runs under one load."""

    def all(self, field: str) -> list[float]:
        """Return a field of each run."""
        return [getattr(run, field) for run in self]

    def median(self, field: str) -> float:
        """Return the median of a field."""
        return statistics.median(self.all(field))


@dataclass(frozen=True)
class Measure:
    """How much is measured: pairs of runs, and seconds of each."""

    pairs: int
    seconds: int

    def run(self, load: Load, rate: float = 0.0, connections: int = CONNECTIONS) -> Run:
        """Run wrk; with a rate (requests/s in all) at that rate, else as fast as answers come."""
        wrk = f"wrk -t1 -c{connections} -d{self.seconds} --timeout 20s -s {_LUA} {load.url} --"
        post = [str(load.body), load.content_type, str(rate / connections)]
        key = [load.key] if load.key else []
        before, served = ended_seconds(), server_seconds(load.url)
        began = time.perf_counter()
        output = subprocess.check_output([*wrk.split(), *post, *key], text=True)
        cpu = (ended_seconds() - before) / (time.perf_counter() - began)
        figures = json.loads(output.strip().splitlines()[-1])
        if figures["refused"] or figures["broken"]:
            raise SystemExit(
                f"{load.url}: {figures['refused']} refused, {figures['broken']} broken requests"
            )
        n = figures["requests"]
        per_second = n / figures["seconds"]
        each = (server_seconds(load.url) - served) / max(n, 1) * 1e6
        p50, p99 = figures["p50_ms"], figures["p99_ms"]
        return Run(per_second, per_second * load.reports, p50, p99, cpu, n, each)

    def compare(
        self, ours: Load, theirs: Load, rate: float = 0.0, connections: int = CONNECTIONS
    ) -> tuple[Runs, Runs]:
        """Return the runs of both loads, in ABBA order and paired."""
        works = {
            name: partial(self.run, load, rate, connections)
            for name, load in (("ours", ours), ("theirs", theirs))
        }
        runs = in_turn(works, self.pairs)
        return Runs(runs["ours"]), Runs(runs["theirs"])

    def tail(self, ours: Load, theirs: Load, name: str, rate: float) -> Runs:
        """Print p99 at a rate, over 64 connections, beside a floor's; return our runs."""
        a, b = self.compare(ours, theirs, rate)
        print(
            f"p99 at {rate:.0f} requests/s: {a.median('p99_ms'):.2f} ms, {name} "
            f"{b.median('p99_ms'):.2f} ms, ratio {ratio(a, b, 'p99_ms'):.2f} "
            f"(p50 {a.median('p50_ms'):.2f} and {b.median('p50_ms'):.2f} ms)"
        )
        return a


def server_seconds(url: str) -> float:
    """Return the processor time of the child process whose command names the port of a URL."""
    port = str(httpx.URL(url).port)
    return processor_seconds(
        child for child in psutil.Process().children() if port in child.cmdline()
    )


def ratio(ours: Runs, theirs: Runs, field: str = "requests_per_second") -> float:
    """Return the median of the ratios within the pairs."""
    return median_ratio(ours.all(field), theirs.all(field))


@contextlib.contextmanager
def floor(kind: str, argument: object) -> Iterator[str]:
    """Run a floor of `ingest_floors.py`; yield the URL of its reports."""
    port = free_port()
    command = [sys.executable, "-m", "bench.ingest_floors", kind, str(port), str(argument)]
    with serving(command, f"http://127.0.0.1:{port}"):
        yield f"http://127.0.0.1:{port}/reports"


def packed_load(url: str, protocol: str, d: int, n: int, folder: Path) -> Load:
    """Open a round; return n packed reports to it."""
    oracle = frequency_oracle(protocol, 0.5, d)
    rng = np.random.default_rng(1)
    body = folder / f"{protocol}-{d}-{n}.bin"
    body.write_bytes(wire.pack(oracle.perturb(rng.integers(0, d, n), rng)))
    return Load(open_round(url, protocol, d), body, wire.MEDIA_TYPE, n, KEY)


def single_load(url: str, folder: Path) -> Load:
    """Return one OLH report in JSON."""
    body = folder / "single.json"
    body.write_text('{"seeds": [2882400001], "buckets": [2]}')
    return Load(url, body, "application/json", 1)


def processor_time(ours: Runs, theirs: Runs) -> str:
    """Say what a request took of processors, which other processes on the machine hardly change."""
    return (
        f"processor time {ours.median('server_us'):.0f} and {theirs.median('server_us'):.0f} "
        "us a request"
    )


def singles(folder: Path, measure: Measure) -> None:
    """Single reports as fast as they go."""
    with (
        server(folder) as url,
        floor("bare", 1) as bare,
        floor("transaction", folder / "transaction.db") as plain,
    ):
        ours = single_load(open_round(url, "olh", 102), folder)
        for other, name, goal in (
            (bare, "bare FastAPI route", 0.9),
            (plain, "a transaction a request", 5.0),
        ):
            a, b = measure.compare(ours, single_load(other, folder))
            print(
                f"single reports: {a.median('requests_per_second'):8.0f}/s, "
                f"{name} {b.median('requests_per_second'):8.0f}/s, "
                f"ratio {ratio(a, b):5.2f} (goal >= {goal}); {processor_time(a, b)}; "
                f"wrk {a.median('wrk_cpu'):.2f} and {b.median('wrk_cpu'):.2f} cores"
            )


def tails(folder: Path, measure: Measure) -> None:
    """p99 at a fixed rate, beside the bare route's, and beside that of the least that group commit
    can do.
    """
    with (
        server(folder) as url,
        floor("bare", 1) as bare,
        floor("group", folder / "group.db") as least,
    ):
        ours = single_load(open_round(url, "olh", 102), folder)
        for other, name in ((bare, "bare FastAPI route"), (least, "group commit alone")):
            measure.tail(ours, single_load(other, folder), name, RATE)


def analyses(folder: Path, measure: Measure) -> None:
    """Single reports while an analysis runs, and while another process keeps a core busy."""
    with server(folder) as url, httpx.Client(base_url=url, headers=ADMIN, timeout=60) as admin:
        reports = packed_load(url, "olh", 102, 300_000, folder)
        packed = {"Content-Type": wire.MEDIA_TYPE}
        admin.post(
            reports.url, content=reports.body.read_bytes(), headers=packed
        ).raise_for_status()
        long = {"method": "em", "options": {"iterations": 1000, "tolerance": 0}}
        path = f"{urlsplit(reports.url).path.removesuffix('/reports')}/recover"
        ours = single_load(open_round(url, "olh", 102), folder)
        alone, beside, busy = Runs(), Runs(), Runs()
        for _ in range(measure.pairs):
            alone.append(measure.run(ours))
            with contextlib.closing(HTTPConnection(urlsplit(url).netloc)) as caller:
                caller.request("POST", path, json.dumps(long), {"Content-Type": "application/json"})
                beside.append(measure.run(ours))
                if select.select([caller.sock], [], [], 0)[0]:
                    raise SystemExit("the analysis ended before the measurement did")
            with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as loop:
                busy.append(measure.run(ours))
                loop.kill()
        print(
            f"single reports beside an analysis: {ratio(beside, alone):5.2f} of those alone; "
            f"beside a busy core {ratio(busy, alone):5.2f}; p99 {beside.median('p99_ms'):.1f}, "
            f"{busy.median('p99_ms'):.1f}, alone {alone.median('p99_ms'):.1f} ms"
        )


def counted_per_second(protocol: str, d: int, body: Path, least: float) -> float:
    """Return how many packed reports a second one core counts, measured for `least` seconds."""
    oracle = frequency_oracle(protocol, 0.5, d)
    reports = oracle.wire.unpack(body.read_bytes())
    count = partial(Tally.of, oracle, reports)
    count()
    repeats = 1 + round(least / seconds(count))
    return len(reports) / seconds(count, repeats)


def packed(folder: Path, measure: Measure) -> None:
    """Packed submissions of 10,000 reports, for OLH beside what one core counts."""
    for protocol, d, kernels, goal, least_share in (
        ("grr", 102, "numba", 15e6, None),
        ("olh", 490, "numpy", 0.8e6, None),
        ("olh", 490, "numba", 6e6, 0.8),
        ("oue", 490, "numba", 0, None),
    ):
        with server(folder, kernels) as url:
            load = packed_load(url, protocol, d, 10_000, folder)
            runs, counted = Runs(), []
            for _ in range(measure.pairs):
                runs.append(measure.run(load))
                if least_share is not None:
                    counted.append(counted_per_second(protocol, d, load.body, measure.seconds / 4))
            goals = f"(goal >= {goal / 1e6:g})" if goal else ""
            if counted:
                share = median_ratio(runs.all("reports_per_second"), counted)
                one = statistics.median(counted) / 1e6
                goals += (
                    f", {share:.2f} of the {one:.1f} that one core counts (goal >= {least_share})"
                )
            print(
                f"packed submissions of 10,000 {protocol.upper()} reports, d={d}, {kernels}: "
                f"{runs.median('reports_per_second') / 1e6:6.2f} million reports/s {goals}; "
                f"processor time {runs.median('server_us'):.0f} us a submission, "
                f"wrk {runs.median('wrk_cpu'):.2f} cores"
            )


def wide(folder: Path, measure: Measure) -> None:
    """Packed HR and LLH beside GRR and OLH, and HR over 100,000 items beside HR over 102."""
    with server(folder) as url:

        def load(protocol: str, d: int) -> Load:
            return packed_load(url, protocol, d, 10_000, folder)

        for (protocol, d), (other, other_d), goal in (
            (("hr", 102), ("grr", 102), 0.9),
            (("hr", 100_000), ("hr", 102), 0.5),
            (("llh", 490), ("grr", 490), 0.9),
            (("llh", 490), ("olh", 490), 2.3),
        ):
            a, b = measure.compare(load(protocol, d), load(other, other_d))
            print(
                f"packed submissions of 10,000 {protocol.upper()} reports, d={d}: "
                f"{ratio(a, b):5.2f} of {other.upper()}'s at d={other_d} (goal >= {goal}), "
                f"{a.median('reports_per_second') / 1e6:6.2f} and "
                f"{b.median('reports_per_second') / 1e6:6.2f} million reports/s; "
                f"{processor_time(a, b)}; wrk {a.median('wrk_cpu'):.2f} cores"
            )


def postgres(folder: Path, measure: Measure) -> None:
    """Single reports on Postgres, by one process and by two, from 32 connections; counts are
    checked.
    """
    with Cluster(fsync=True) as cluster:
        for workers in (1, 2):
            with (
                cluster.database() as name,
                server(cluster.url(name), workers=workers) as url,
                floor("bare", workers) as bare,
            ):
                ours, theirs = (
                    single_load(each, folder) for each in (open_round(url, "olh", 102), bare)
                )
                before, began = postgres_seconds(), time.perf_counter()
                a, b = measure.compare(ours, theirs, connections=32)
                cores = 2 * (postgres_seconds() - before) / (time.perf_counter() - began)
                print(
                    f"Postgres, {workers} process{'es' * (workers > 1)}: "
                    f"{a.median('requests_per_second'):8.0f}/s, "
                    f"bare FastAPI route in as many {b.median('requests_per_second'):8.0f}/s, "
                    f"ratio {ratio(a, b):5.2f}{' (goal >= 0.9)' * (workers == 1)}; "
                    f"{processor_time(a, b)}; Postgres took {cores:.2f} cores while it "
                    f"was asked, wrk {a.median('wrk_cpu'):.2f} and {b.median('wrk_cpu'):.2f}"
                )
                if workers == 2:
                    rate = a.median("requests_per_second") / 2
                    a += measure.tail(ours, theirs, "bare FastAPI route", rate)
                counted = httpx.get(f"{url}/rounds/current").raise_for_status().json()["n"]
                answered = sum(run.answered for run in a)
                # wrk stops without waiting for the last answer of each connection.
                if not answered <= counted <= answered + CONNECTIONS * len(a):
                    raise SystemExit(f"{counted} reports counted of {answered} answered")


def postgres_seconds() -> float:
    """Return the processor time of all Postgres processes that run."""
    return sum(
        sum(process.info["cpu_times"][:2])
        for process in psutil.process_iter(["name", "cpu_times"])
        if process.info["name"] == "postgres" and process.info["cpu_times"]
    )


PARTS = {each.__name__: each for each in (singles, tails, packed, wide, postgres, analyses)}
Part = Literal["singles", "tails", "packed", "wide", "postgres", "analyses"]


def main(pairs: int = 6, seconds: int = 5, only: Part | None = None) -> None:
    """Measure ingest through the real server beside its floors; `--only` runs one part."""
    if shutil.which("wrk") is None:
        print(
            "ingest: skipped, for wrk is not installed: `apt-get install wrk` or `brew install wrk`"
        )
        return
    print(
        f"ingest, {os.cpu_count()} cores, {CONNECTIONS} connections, {pairs} pairs of {seconds:g} s"
    )
    for name, part in PARTS.items():
        if only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                part(Path(folder), Measure(pairs, seconds))


if __name__ == "__main__":
    typer.run(main)
