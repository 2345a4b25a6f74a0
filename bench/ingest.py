"""Ingest through the real server, durable, beside a bare FastAPI route in the same run.

Needs wrk, a compiled load generator. Servers are measured in ABBA order and compared pair by pair,
so that a drift of the machine's speed cancels; figures are medians. wrk shares the machine with the
server, so rates also say who got its processors: the server's processor time a report does not.
"""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import psutil
import typer
from bench.harness import (
    KEY,
    Served,
    bare_route,
    in_turn,
    median_ratio,
    open_round,
    processor_seconds,
    server,
)
from tests.postgres import Cluster

from ldprecover import frequency_oracle
from ldprecover.protocols import wire

CONNECTIONS = 64
RATE = 3000.0  # requests a second at which tails are compared
_FORM = 5  # rounds of a form
_LUA = Path(__file__).with_suffix(".lua")


@dataclass(frozen=True)
class Load:
    """What wrk posts, to the `urls` of one server by turns."""

    urls: tuple[str, ...]
    process: psutil.Process
    body: Path
    content_type: str
    key: str = ""  # several reports in one submission need one


@dataclass(frozen=True)
class Run:
    """One run of wrk."""

    requests_per_second: float
    p99_ms: float
    processor_us: float  # of the server, for each request
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
        url = load.urls[0]
        wrk = f"wrk -t1 -c{connections} -d{self.seconds} --timeout 20s -s {_LUA} {url} --"
        post = [str(load.body), load.content_type, str(rate / connections), load.key]
        paths = [httpx.URL(each).path for each in load.urls]
        before = processor_seconds(load.process)
        output = subprocess.check_output([*wrk.split(), *post, *paths], text=True)
        used = processor_seconds(load.process) - before
        figures = json.loads(output.strip().splitlines()[-1])
        if figures["refused"] or figures["broken"]:
            raise SystemExit(
                f"{url}: {figures['refused']} refused, {figures['broken']} broken requests"
            )
        n = figures["requests"]
        return Run(n / figures["seconds"], figures["p99_ms"], used / n * 1e6, n)

    def compare(self, loads: Mapping[str, Load], name: str, connections: int = CONNECTIONS) -> int:
        """Print single reports as fast as they go, and p99 at a rate, beside those of the last.

        Returns how many reports of the first were answered.
        """
        answered = 0
        for rate, units in (
            (0.0, {"requests_per_second": "reports/s", "processor_us": "µs of processor time"}),
            (RATE, {"p99_ms": f"ms p99 at {RATE:.0f}/s"}),
        ):
            works = {each: partial(self.run, loads[each], rate, connections) for each in loads}
            runs = {each: Runs(sample) for each, sample in in_turn(works, self.pairs).items()}
            *ours, (bare, limit) = runs.items()
            for field, unit in units.items():
                for each, sample in ours:
                    ratio = median_ratio(sample.all(field), limit.all(field))
                    print(
                        f"{name}, {each}: {sample.median(field):8.1f} {unit}, {bare} "
                        f"{limit.median(field):8.1f}, ratio {ratio:5.2f}"
                    )
            answered += sum(run.answered for _, sample in ours for run in sample)
        return answered


def loads(ours: Served, bare: Served, folder: Path) -> dict[str, Load]:
    """Return one OLH report in JSON for a round, for a form of five, and for the bare route."""
    body = folder / "single.json"
    body.write_text('{"seeds": [2882400001], "buckets": [2]}')
    rounds = [open_round(ours[0], "olh", 102) for _ in range(_FORM)]
    urls = {"a round": rounds[:1], "a form of five": rounds, "bare FastAPI route": [bare[0]]}
    return {
        name: Load(tuple(each), bare[1] if each == [bare[0]] else ours[1], body, "application/json")
        for name, each in urls.items()
    }


def sqlite(folder: Path, measure: Measure) -> None:
    """Single reports on SQLite."""
    with server(folder) as ours, bare_route(1) as bare:
        measure.compare(loads(ours, bare, folder), "SQLite")


def postgres(folder: Path, measure: Measure) -> None:
    """Single reports on Postgres, by one process and by two; counts are checked."""
    with Cluster(fsync=True) as cluster:
        for workers in (1, 2):
            with (
                cluster.database() as name,
                server(cluster.url(name), workers=workers) as ours,
                bare_route(workers) as bare,
            ):
                posted = loads(ours, bare, folder)
                answered = measure.compare(posted, f"Postgres, workers {workers}", 32)
                rounds = [each.removesuffix("/reports") for each in posted["a form of five"].urls]
                counted = sum(httpx.get(each).raise_for_status().json()["n"] for each in rounds)
                # wrk stops without waiting for the last answer of each connection.
                if not answered <= counted <= answered + CONNECTIONS * 4 * measure.pairs:
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
        with server(folder, kernels) as (url, process):
            oracle, rng = frequency_oracle(protocol, 0.5, d), np.random.default_rng(1)
            reports = oracle.perturb(rng.integers(0, d, 10_000), rng)
            body = folder / "packed.bin"
            body.write_bytes(wire.pack(reports))
            load = Load((open_round(url, protocol, d),), process, body, wire.MEDIA_TYPE, KEY)
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
