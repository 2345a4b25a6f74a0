"""Engines beside each other: two loops over parts, a pool of two processes, and Dask with two
separate workers.

Parts of random OLH reports lie on disk, each worth more than half a second of counting. All three
count them in turn, forwards then backwards; a ratio is the median of those within the rounds. Then
what a task costs beside its work, what a worker holds at two numbers of reports, and what it costs
when one of two workers is killed, with its nanny, in the midst.
"""

import os
import resource
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import typer
from bench.harness import in_turn, processor_seconds, seconds
from tools.dask_cluster import DaskCluster

from ldprecover import FrequencyOracle, Tally, frequency_oracle
from ldprecover.recovery import ReportSource
from ldprecover_cluster import ParquetPart, engine
from ldprecover_cluster.parts import encode, part_path

PARTS, FEW = 20, 2
TASKS = 1_000


def main(reports: int = 1_000_000, items: int = 2_048, parts: int = PARTS, rounds: int = 5) -> None:
    """Compare engines on parts of `reports` over `items`; `parts` of them are timed."""
    oracle = frequency_oracle("olh", 1.0, items)
    with tempfile.TemporaryDirectory() as folder:
        written = write_parts(Path(folder), oracle, reports)
        Tally.of(oracle, next(iter(written[0].arrays()))[:1_000])  # loads the kernels
        took = seconds(ReportSource.of_parts(oracle, written[:1]).tally)
        print(
            f"{PARTS} parts of {reports:,} reports over {items} items, {took:.2f} s of counting "
            "each"
        )
        timed = written[:parts]
        with engine(2) as pool, dask_engine() as (dask, processes):
            assert pool is not None
            throughput(oracle, timed, pool, dask, rounds)
            overhead("pool", pool, [], rounds)
            overhead("Dask", dask, [process.pid for process in processes], rounds)
        for number in (FEW, PARTS):
            with dask_engine() as (dask, _):
                ReportSource.of_parts(oracle, written[:number], executor=dask).tally()
                # More calls than workers, so that each has one.
                peaks = dict(each.result() for each in [dask.submit(_peak) for _ in range(8)])
                entry = " and ".join(f"{peak:.0f}" for peak in peaks.values())
                print(f"workers held {entry} MiB at most, of {number * reports:,} reports")
        killed(oracle, timed)


def write_parts(folder: Path, oracle: FrequencyOracle, n: int) -> list[ParquetPart]:
    """Write parts of random reports: any seed and any bucket is one."""
    rng, parts = np.random.default_rng(1), []
    for i in range(PARTS):
        rows = np.empty(n, oracle.wire.dtype)
        rows["seed"] = rng.integers(0, 1 << 32, n)
        rows["bucket"] = rng.integers(0, oracle.hash_range, n)  # type: ignore[attr-defined]
        entry, data = encode(0, f"part-{i:03}.parquet", rows, oracle.wire.dtype)
        file = folder / part_path(entry.hour, entry.name)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
        parts.append(
            ParquetPart(str(folder), entry.hour, entry.name, n, entry.sha256, oracle.wire.dtype)
        )
    return parts


def throughput(
    oracle: FrequencyOracle, parts: list[ParquetPart], pool: Executor, dask: Executor, rounds: int
) -> None:
    """Print the ratios of the three."""

    def tally(some: list[ParquetPart], executor: Executor | None = None) -> Tally:
        return ReportSource.of_parts(oracle, some, executor=executor).tally()

    def loops() -> Tally:
        first, second = (pool.submit(_loop, oracle, parts[half::2]) for half in range(2))
        return first.result() + second.result()  # type: ignore[no-any-return]

    works: dict[str, Callable[[], Tally]] = {
        "two loops": loops,
        "pool": partial(tally, parts, pool),
        "Dask": partial(tally, parts, dask),
    }
    tallies = [work() for work in works.values()]  # this also loads what is loaded once
    assert tallies[0] == tallies[1] == tallies[2]
    took = in_turn({name: partial(seconds, work) for name, work in works.items()}, rounds)
    for name, beside, goal in (
        ("Dask", "pool", 0.9),
        ("pool", "two loops", 0.85),
        ("Dask", "two loops", 0.85),
    ):
        ratios = [b / a for a, b in zip(took[name], took[beside], strict=True)]
        print(
            f"{name}: {statistics.median(ratios):.2f} times the throughput of {beside} (goal >= "
            f"{goal}); from {min(ratios):.2f} to {max(ratios):.2f} in {rounds} rounds"
        )


def overhead(name: str, executor: Executor, pids: Sequence[int], rounds: int) -> None:
    """Print the clock and processor time of a task that does nothing, with four ahead of workers.

    `pids` are processes that take part beside this one, as do their descendants.
    """
    others = [psutil.Process(pid) for pid in pids]

    def used() -> float:
        return time.process_time() + processor_seconds(others)

    def tasks() -> None:
        waiting = [executor.submit(int) for _ in range(4)]
        for _ in range(TASKS - 4):
            waiting.pop(0).result()
            waiting.append(executor.submit(int))
        for future in waiting:
            future.result()

    took = []
    for _ in range(rounds):
        before = used()
        took.append((seconds(tasks), used() - before))
    clock, processors = (1000 * min(each) / TASKS for each in zip(*took, strict=True))
    subject = "all its processes" if others else "this process"
    print(
        f"{name}: {clock:.2f} ms a task (goal <= 5), {processors:.2f} ms of processors by {subject}"
    )


def killed(oracle: FrequencyOracle, parts: list[ParquetPart]) -> None:
    """Print how long it takes when one of two workers is killed after a third of the parts."""
    times, tallies = [], []
    for kill in (False, True):
        with dask_engine() as (dask, workers):
            ReportSource.of_parts(oracle, parts[:2], executor=dask).tally()
            third = sum(part.n for part in parts) // 3

            def progress(passes: int, read: int) -> None:
                if kill and read >= third and workers[0].poll() is None:  # noqa: B023
                    os.killpg(workers[0].pid, signal.SIGKILL)
                    workers[0].wait()

            began = time.perf_counter()
            tallies.append(
                ReportSource.of_parts(oracle, parts, executor=dask, progress=progress).tally()
            )
            times.append(time.perf_counter() - began)
    equal = "equal" if tallies[0] == tallies[1] else "NOT EQUAL"
    print(
        f"one of two workers killed: {times[1] / times[0]:.2f} times the undisturbed time (goal "
        f"<= 2), {equal}"
    )


@contextmanager
def dask_engine() -> Iterator[tuple[Executor, list["subprocess.Popen[str]"]]]:
    """Yield an engine on a cluster of two workers, and the cluster's processes."""
    with cluster(2) as nodes, engine(scheduler=nodes.address) as dask:
        assert dask is not None
        yield dask, [*nodes.workers, nodes.scheduler]


@contextmanager
def cluster(workers: int) -> Iterator[DaskCluster]:
    """Start a scheduler and workers of one thread on this machine; yield the cluster."""
    with tempfile.TemporaryDirectory() as folder, closing(DaskCluster(Path(folder))) as nodes:
        for _ in range(workers):
            nodes.start_worker()
        yield nodes


def _loop(oracle: FrequencyOracle, parts: list[ParquetPart]) -> Tally:
    return ReportSource.of_parts(oracle, parts).tally()


def _peak() -> tuple[int, float]:
    time.sleep(0.1)  # so that the other takes the next
    return os.getpid(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    from bench import engines  # by this name workers find what they are to call

    typer.run(engines.main)
