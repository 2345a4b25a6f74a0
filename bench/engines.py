"""Engines beside each other: two loops over parts, a pool of two processes, and Dask with two
separate workers.

Parts of random OLH reports lie on disk, each worth more than half a second of counting. All three
count them in turn, forwards then backwards; a ratio is the median of those within the rounds. Then
what a task costs beside its work, what a worker holds at two numbers of reports, and what it costs
when one of two workers is killed, with its nanny, in the midst.
"""

import argparse
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import psutil

from ldprecover import FrequencyOracle, Tally, frequency_oracle
from ldprecover.recovery import ReportSource
from ldprecover_cluster import ParquetPart, Scheduler, engine
from ldprecover_cluster.parts import encode, part_path

PARTS, FEW = 20, 2
TASKS = 1_000


def main(arguments: Sequence[str] = ()) -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=1_000_000, help="of a part")
    parser.add_argument("--items", type=int, default=2_048)
    parser.add_argument("--parts", type=int, default=PARTS, help="to be timed")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    oracle = frequency_oracle("olh", 1.0, chosen.items)
    with tempfile.TemporaryDirectory() as folder:
        parts = made(Path(folder), oracle, chosen.reports)
        began = time.process_time()
        Tally.of(oracle, next(iter(parts[0].arrays()))[:1_000])  # loads the kernels
        began = time.process_time()
        ReportSource.of_parts(oracle, parts[:1]).tally()
        took = time.process_time() - began
        print(
            f"{PARTS} parts of {chosen.reports:,} reports over {chosen.items} items, {took:.2f} s "
            "of counting each"
        )
        with (
            cluster(2) as (scheduler, started),
            engine(2) as pool,
            engine(scheduler=scheduler) as dask,
        ):
            assert pool is not None
            assert dask is not None
            throughput(oracle, parts[: chosen.parts], pool, dask, chosen.rounds)
            overhead("pool", pool, [], chosen.rounds)
            overhead("Dask", dask, [process.pid for process in started], chosen.rounds)
        for number in (FEW, PARTS):
            with cluster(2) as (scheduler, _), engine(scheduler=scheduler) as dask:
                assert dask is not None
                ReportSource.of_parts(oracle, parts[:number], executor=dask).tally()
                peaks = dict(_every(dask, _peak))
                entry = " and ".join(f"{peak:.0f}" for peak in peaks.values())
                print(f"workers held {entry} MiB at most, of {number * chosen.reports:,} reports")
        killed(oracle, parts[: chosen.parts])


def made(folder: Path, oracle: FrequencyOracle, n: int) -> list[ParquetPart]:
    """Write parts of random reports: any seed and any bucket is one."""
    rng, parts = np.random.default_rng(1), []
    for i in range(PARTS):
        rows = np.empty(n, oracle.wire.dtype)
        rows["seed"], rows["bucket"] = (
            rng.integers(0, 1 << 32, n),
            rng.integers(0, oracle.hash_range, n),
        )  # type: ignore[attr-defined]
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

    def loops() -> Tally:
        first, second = (pool.submit(_loop, oracle, parts[half::2]) for half in range(2))
        return first.result() + second.result()  # type: ignore[no-any-return]

    ways: dict[str, Callable[[], Tally]] = {
        "two loops": loops,
        "pool": lambda: ReportSource.of_parts(oracle, parts, executor=pool).tally(),
        "Dask": lambda: ReportSource.of_parts(oracle, parts, executor=dask).tally(),
    }
    tallies = [way() for way in ways.values()]  # and what is loaded once is loaded
    assert tallies[0] == tallies[1] == tallies[2]
    took: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(rounds):
        for name in list(ways)[:: 1 if i % 2 else -1]:
            began = time.perf_counter()
            ways[name]()
            took[name].append(time.perf_counter() - began)
    for name, beside, goal in (
        ("Dask", "pool", 0.9),
        ("pool", "two loops", 0.85),
        ("Dask", "two loops", 0.85),
    ):
        ratios = [b / a for a, b in zip(took[name], took[beside], strict=True)]
        print(
            f"{name}: {statistics.median(ratios):.2f} times the throughput of {beside} (wanted >= "
            f"{goal}); "
            f"from {min(ratios):.2f} to {max(ratios):.2f} in {rounds} rounds"
        )


def overhead(name: str, executor: Executor, others: Sequence[int], rounds: int) -> None:
    """Print what a task takes that does nothing, a few ahead of the workers: on the clock, and of
    processors.

    `others` are processes that take part, beside this one, with those that they have started.
    """
    took = []
    for _ in range(rounds):
        began, used = time.perf_counter(), used_by(others)
        waiting = [executor.submit(int) for _ in range(4)]
        for _ in range(TASKS - 4):
            waiting.pop(0).result()
            waiting.append(executor.submit(int))
        for future in waiting:
            future.result()
        took.append((time.perf_counter() - began, used_by(others) - used))
    clock, processors = (1000 * min(each) / TASKS for each in zip(*took, strict=True))
    subject = "all its processes" if others else "this process"
    print(
        f"{name}: {clock:.2f} ms a task (goal <= 5), {processors:.2f} ms of processors by {subject}"
    )


def used_by(others: Sequence[int]) -> float:
    """Return the seconds of processors that this process and others have used, with those that
    these have started.
    """
    trees = [[each, *each.children(recursive=True)] for each in map(psutil.Process, others)]
    return time.process_time() + sum(sum(each.cpu_times()[:2]) for tree in trees for each in tree)


def killed(oracle: FrequencyOracle, parts: list[ParquetPart]) -> None:
    """Print how long it takes when one of two workers is killed after a third of the parts."""
    times, tallies = [], []
    for kill in (False, True):
        with cluster(2) as (scheduler, workers), engine(scheduler=scheduler) as dask:
            assert dask is not None
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
        f"one of two workers killed: {times[1] / times[0]:.2f} times the undisturbed time (wanted "
        f"<= 2), {equal}"
    )


@contextmanager
def cluster(workers: int) -> Iterator[tuple[Scheduler, list["subprocess.Popen[str]"]]]:
    """Start workers of one thread and a scheduler on this machine; yield its address, and the
    processes, it last.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        usual = ("--no-dashboard", "--host", "127.0.0.1")
        scheduler, line = _started(
            stack,
            folder,
            "Scheduler at:",
            "scheduler",
            "--port",
            "0",
            "--idle-timeout",
            "3600",
            *usual,
        )
        url = line.split()[-1]
        of_one = (
            "--nworkers",
            "1",
            "--nthreads",
            "1",
            "--memory-limit",
            "512MiB",
            "--local-directory",
            folder,
        )
        started = [
            _started(stack, folder, "Registered to:", "worker", url, *of_one, *usual)
            for _ in range(workers)
        ]
        yield Scheduler(url), [*(process for process, _ in started), scheduler]


def _started(
    stack: ExitStack, folder: str, until: str, *command: str
) -> tuple["subprocess.Popen[str]", str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path]))
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,  # and of this session: systems share processors among sessions first
    )
    stack.callback(_end, process)
    assert process.stderr is not None
    line = next((line for line in process.stderr if until in line), None)
    if line is None:
        raise RuntimeError(f"dask {command[0]} did not start")
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return process, line.strip()


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _loop(oracle: FrequencyOracle, parts: list[ParquetPart]) -> Tally:
    return ReportSource.of_parts(oracle, parts).tally()


def _peak() -> tuple[int, float]:
    time.sleep(0.1)  # so that the other takes the next
    return os.getpid(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _every(
    executor: Executor, call: Callable[[], tuple[int, float]]
) -> Iterator[tuple[int, float]]:
    """Yield what each worker returns, some more than once."""
    for future in [executor.submit(call) for _ in range(8)]:
        yield future.result()


if __name__ == "__main__":
    from bench import engines  # by this name workers find what they are to call

    engines.main(sys.argv[1:])
