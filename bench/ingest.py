"""Ingest through the real server, durable, beside a bare FastAPI route in the same run.

Needs wrk, a compiled load generator. Servers are measured in ABBA order and compared pair by pair,
so that a drift of the machine's speed cancels; figures are medians. wrk shares the machine with the
server.
"""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import typer
from bench.harness import (
    KEY,
    bare_route,
    in_turn,
    median_ratio,
    open_round,
    server,
)
from tools.postgres import Cluster

from ldprecover import frequency_oracle
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
    key: str | None = None  # several reports in one submission need one


@dataclass(frozen=True)
class Run:
    """One run of wrk."""

    requests_per_second: float
    p99_ms: float
    answered: int


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
        output = subprocess.check_output([*wrk.split(), *post, *key], text=True)
        figures = json.loads(output.strip().splitlines()[-1])
        if figures["refused"] or figures["broken"]:
            raise SystemExit(
                f"{load.url}: {figures['refused']} refused, {figures['broken']} broken requests"
            )
        n = figures["requests"]
        return Run(n / figures["seconds"], figures["p99_ms"], n)

    def compare(self, ours: Load, bare: Load, name: str, connections: int = CONNECTIONS) -> Runs:
        """Print single reports as fast as they go, and p99 at a rate, beside the bare route's.

        Returns our runs.
        """
        every = Runs()
        for rate, field, unit in (
            (0.0, "requests_per_second", "reports/s"),
            (RATE, "p99_ms", f"ms p99 at {RATE:.0f}/s"),
        ):
            works = {each.url: partial(self.run, each, rate, connections) for each in (ours, bare)}
            a, b = map(Runs, in_turn(works, self.pairs).values())
            ratio = median_ratio(a.all(field), b.all(field))
            print(
                f"{name}: {a.median(field):8.1f} {unit}, bare FastAPI route "
                f"{b.median(field):8.1f}, ratio {ratio:5.2f}"
            )
            every += a
        return every


def single_load(url: str, folder: Path) -> Load:
    """Return one OLH report in JSON."""
    body = folder / "single.json"
    body.write_text('{"seeds": [2882400001], "buckets": [2]}')
    return Load(url, body, "application/json")


def sqlite(folder: Path, measure: Measure) -> None:
    """Single reports on SQLite."""
    with server(folder) as url, bare_route(1) as bare:
        ours = single_load(open_round(url, "olh", 102), folder)
        measure.compare(ours, single_load(bare, folder), "SQLite")


def postgres(folder: Path, measure: Measure) -> None:
    """Single reports on Postgres, by one process and by two; counts are checked."""
    with Cluster(fsync=True) as cluster:
        for workers in (1, 2):
            with (
                cluster.database() as name,
                server(cluster.url(name), workers=workers) as url,
                bare_route(workers) as bare,
            ):
                ours, theirs = (
                    single_load(each, folder) for each in (open_round(url, "olh", 102), bare)
                )
                runs = measure.compare(ours, theirs, f"Postgres, workers {workers}", 32)
                counted = httpx.get(f"{url}/rounds/current").raise_for_status().json()["n"]
                answered = sum(run.answered for run in runs)
                # wrk stops without waiting for the last answer of each connection.
                if not answered <= counted <= answered + CONNECTIONS * len(runs):
                    raise SystemExit(f"{counted} reports counted of {answered} answered")


def packed(folder: Path, measure: Measure) -> None:
    """Packed submissions of 10,000 reports."""
    for protocol, d, kernels in (
        ("grr", 102, "numba"),
        ("hr", 100_000, "numba"),
        ("llh", 490, "numba"),
        ("olh", 490, "numpy"),
        ("olh", 490, "numba"),
        ("oue", 490, "numba"),
    ):
        with server(folder, kernels) as url:
            oracle, rng = frequency_oracle(protocol, 0.5, d), np.random.default_rng(1)
            reports = oracle.perturb(rng.integers(0, d, 10_000), rng)
            body = folder / "packed.bin"
            body.write_bytes(wire.pack(reports))
            load = Load(open_round(url, protocol, d), body, wire.MEDIA_TYPE, KEY)
            runs = Runs(measure.run(load) for _ in range(measure.pairs))
        speed = len(reports) * runs.median("requests_per_second")
        print(
            f"packed submissions of 10,000 {protocol.upper()} reports, d={d}, {kernels}: "
            f"{speed / 1e6:6.2f} million reports/s"
        )


def main(pairs: int = 6, seconds: int = 5) -> None:
    """Measure ingest through the real server beside a bare route."""
    if shutil.which("wrk") is None:
        print(
            "ingest: skipped, for wrk is not installed: `apt-get install wrk` or `brew install wrk`"
        )
        return
    print(f"ingest, {os.cpu_count()} cores, {pairs} pairs of {seconds:g} s")
    for part in (sqlite, packed, postgres):
        with tempfile.TemporaryDirectory() as folder:
            part(Path(folder), Measure(pairs, seconds))


if __name__ == "__main__":
    typer.run(main)
