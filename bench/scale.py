"""One round over many deployments: synthetic ones on disk, merged, and recovered on a Dask cluster
of this machine.

Each deployment is a report dataset and its `round.json`, as `ldprecover export --reports` writes
them; its users and its attackers are simulated. From there on everything is done by the commands
that anyone would use: `ldprecover merge`, and `ldprecover recompute` on all datasets with Dask's
own scheduler and workers, or without. What is there already is not made again.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil
from bench.engines import cluster

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


def made(folder: Path, d: int, n: int, site: int) -> ReportDataset:
    """Return the dataset of one deployment, written where it is not there."""
    if (folder / "round.json").exists():
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


def processes(workers: "Sequence[subprocess.Popen[str]]") -> list[int]:
    """Return the processes that read reports: those that workers' nannies have started."""
    return [
        child.pid
        for worker in workers
        for child in psutil.Process(worker.pid).children(recursive=True)
    ]


def peak_mebibytes(pid: int) -> float:
    """Return the most memory that a process has held."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(
        int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")
    )


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Return the processor time of the commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(*arguments: str) -> float:
    """Run the command and return the seconds it took."""
    began = time.perf_counter()
    subprocess.run([COMMAND, *arguments], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what each step takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the deployments are, or are made")
    parser.add_argument("--reports", type=int, default=100_000_000)
    parser.add_argument("--deployments", type=int, default=8)
    parser.add_argument("--items", type=int, default=128)
    parser.add_argument("--methods", nargs="+", default=["unmix"])
    parser.add_argument("--workers", type=int, default=2, help="of the Dask cluster; 0 for none")
    options = parser.parse_args(arguments)
    folder, n = options.folder, options.reports // options.deployments
    began = time.perf_counter()
    sets = [
        made(folder / f"site-{site}", options.items, n, site) for site in range(options.deployments)
    ]
    parts = [part for each in sets for part in each.parts]
    size = sum(file.stat().st_size for file in folder.glob("site-*/hour=*/*.parquet"))
    print(
        f"{options.deployments} deployments, {n * options.deployments:,} reports over "
        f"{options.items} "
        "items: "
        f"{len(parts)} parts, {size / 1e6:,.0f} MB, in {time.perf_counter() - began:,.1f} s",
        flush=True,
    )
    (folder / "all.json").unlink(missing_ok=True)
    seconds = timed(
        "merge",
        *(str(folder / f"site-{i}" / "round.json") for i in range(len(sets))),
        "--output",
        str(folder / "all.json"),
    )
    print(f"merge: {seconds:.2f} s", flush=True)
    folders = [word for i in range(len(sets)) for word in ("--reports", str(folder / f"site-{i}"))]
    truth = users(options.items)
    with ExitStack() as stack:
        how, pids = [], []
        if options.workers:
            scheduler, workers = stack.enter_context(cluster(options.workers))
            how, pids = ["--scheduler", scheduler.url], processes(workers)
        for method in options.methods:
            output = folder / f"{method}.json"
            output.unlink(missing_ok=True)
            before = sum(map(processor_seconds, pids)) + own_seconds()
            seconds = timed(
                "recompute",
                str(folder / "all.json"),
                *folders,
                "--method",
                method,
                *how,
                "--output",
                str(output),
            )
            answer = json.loads(output.read_bytes())
            errors = [
                float(np.mean((np.array(answer[name]) - truth) ** 2))
                for name in ("frequencies", "recovered")
            ]
            worked = sum(map(processor_seconds, pids)) + own_seconds() - before
            memory = [peak_mebibytes(pid) for pid in pids]
            here = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(
                f"{method}, {options.workers} workers: {seconds:,.1f} s, {worked:,.1f} s of "
                "processors, at most "
                f"{', '.join(f'{each:.0f}' for each in memory) or 'no'} MiB in workers and "
                f"{here:.0f} in the command; "
                f"mean squared error {errors[0]:.3g} poisoned, {errors[1]:.3g} recovered",
                flush=True,
            )


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
