"""One round over many deployments: synthetic ones on disk, merged, and recovered on a Dask cluster
of this machine.

Each deployment is a report dataset and its `_round.json`, as `ldprecover file dataset` writes
them; its users and its attackers are simulated. From there on everything is done by the commands
that anyone would use: `ldprecover file merge`, and `ldprecover file recompute` on all datasets with
Dask's own scheduler and workers, or without. Existing data is not made again.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import numpy as np
import psutil
import typer
from bench.engines import cluster
from bench.harness import ended_seconds, processor_seconds, seconds

from ldprecover import RoundExport, RoundParameters, Tally
from ldprecover.types import Reports
from ldprecover_attacker import MGA
from ldprecover_cluster import ReportDataset, write_dataset

PROTOCOL, EPSILON, BETA, TARGETS, SEARCH = "olh", 1.0, 0.05, 10, 16
BLOCK, HOUR = 1 << 20, 490_000
COMMAND = Path(sys.executable).with_name("ldprecover")


def users(d: int) -> np.ndarray:
    """Return what share of the users holds each item: Zipf's law."""
    weights = 1 / np.arange(1, d + 1)
    return weights / weights.sum()


def parameters(d: int) -> RoundParameters:
    """Return those of the round on every deployment."""
    return RoundParameters(PROTOCOL, EPSILON, tuple(map(str, range(d))))


def blocks(round_parameters: RoundParameters, n: int, seed: int) -> Iterator[Reports]:
    """Yield the reports of n users, a share BETA of them crafted by MGA, the same each time."""
    oracle, rng = round_parameters.oracle, np.random.default_rng([seed, n])
    shares, attack = users(oracle.domain_size), MGA(range(TARGETS, 2 * TARGETS), search=SEARCH)
    while n:
        size = min(n, BLOCK)
        malicious = round(BETA * size)
        honest = oracle.perturb(rng.choice(oracle.domain_size, size - malicious, p=shares), rng)
        reports = np.concatenate([honest, attack.reports(oracle, malicious, rng)])
        rng.shuffle(reports)
        yield reports
        n -= size


def dataset(folder: Path, d: int, n: int, site: int) -> ReportDataset:
    """Return the dataset of one deployment, written where it is not there."""
    if (folder / "_round.json").exists():
        return ReportDataset.open(folder)
    round_parameters = parameters(d)
    tally = Tally.empty(round_parameters.oracle.summary_size)
    for reports in blocks(round_parameters, n, site):
        tally += Tally.of(round_parameters.oracle, reports)
    export = RoundExport(f"synthetic-{site}", "synthetic", round_parameters, tally)
    hours = {HOUR + site: n}
    return write_dataset(
        folder,
        export,
        hours,
        ((HOUR + site, each.tobytes()) for each in blocks(round_parameters, n, site)),
    )


def peak_mebibytes(pid: int) -> float:
    """Return the most memory that a process has held."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(
        int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")
    )


def timed(*arguments: object) -> float:
    """Run the command and return the seconds it took."""
    command = [COMMAND, *map(str, arguments)]
    return seconds(lambda: subprocess.run(command, check=True, stderr=subprocess.DEVNULL))


def main(
    folder: Path,
    reports: int = 100_000_000,
    deployments: int = 8,
    items: int = 128,
    methods: Annotated[list[str], typer.Option()] = ["unmix"],  # noqa: B006  typer copies it
    workers: int = 2,
) -> None:
    """Make deployments in a folder, merge and recover them; print what each step takes.

    `--workers 0` recovers without a Dask cluster.
    """
    n = reports // deployments
    sites = [folder / f"site-{i}" for i in range(deployments)]
    began = time.perf_counter()
    sets = [dataset(site, items, n, i) for i, site in enumerate(sites)]
    parts = sum(len(each.parts) for each in sets)
    size = sum(file.stat().st_size for file in folder.glob("site-*/hour=*/*.parquet"))
    print(
        f"{deployments} deployments, {n * deployments:,} reports over {items} items: "
        f"{parts} parts, {size / 1e6:,.0f} MB, in {time.perf_counter() - began:,.1f} s",
        flush=True,
    )
    merged = folder / "all.json"
    merged.unlink(missing_ok=True)
    took = timed("file", "merge", *(site / "_round.json" for site in sites), "--output", merged)
    print(f"merge: {took:.2f} s", flush=True)
    reports_of_sites = [word for site in sites for word in ("--reports", site)]
    truth = users(items)
    with ExitStack() as stack:
        scheduler: list[str] = []
        processes: list[psutil.Process] = []
        if workers:
            nodes = stack.enter_context(cluster(workers))
            scheduler = nodes.options.split()
            # Those that read reports: each nanny has started one.
            processes = [
                child
                for nanny in nodes.workers
                for child in psutil.Process(nanny.pid).children(recursive=True)
            ]
        for method in methods:
            output = folder / f"{method}.json"
            output.unlink(missing_ok=True)
            before = processor_seconds(processes) + ended_seconds()
            choice = ("--method", method, *scheduler, "--output", output)
            took = timed("file", "recompute", merged, *reports_of_sites, *choice)
            worked = processor_seconds(processes) + ended_seconds() - before
            answer = json.loads(output.read_bytes())
            poisoned, recovered = (
                float(np.mean((np.array(answer[name]) - truth) ** 2))
                for name in ("frequencies", "recovered")
            )
            memory = ", ".join(f"{peak_mebibytes(each.pid):.0f}" for each in processes)
            here = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(
                f"{method}, {workers} workers: {took:,.1f} s, {worked:,.1f} s of processors, at "
                f"most {memory or 'no'} MiB in workers and {here:.0f} in the command; mean squared "
                f"error {poisoned:.3g} poisoned, {recovered:.3g} recovered",
                flush=True,
            )


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    typer.run(main)
