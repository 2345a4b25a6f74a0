"""Worker pools, and tasks that take as long as a test needs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import psutil

from ldprecover import FrequencyOracle, RecoveryRequest, Tally, frequency_oracle
from ldprecover.recovery import recover_tally
from ldprecover_server.analysis import tasks
from ldprecover_server.analysis.tasks import Task
from ldprecover_server.analysis.worker_pool import Prepare, WorkerPool
from ldprecover_server.metrics import Metrics

ORACLE = frequency_oracle("oue", 1.0, 64)
REPORTS = ORACLE.perturb(
    np.random.default_rng(1).integers(64, size=3_000), np.random.default_rng(2)
)
TALLY = Tally.of(ORACLE, REPORTS)


@contextlib.asynccontextmanager
async def running_pool(**settings: Any) -> AsyncIterator[WorkerPool]:
    """A worker pool with these settings, whose processes have ended afterwards."""
    usual: dict[str, Any] = {
        "count": 2,
        "waiting": 8,
        "seconds": 100,
        "key_seconds": 100,
        "memory_bytes": 1 << 28,
        "disk_bytes": 1 << 30,
        "metrics": Metrics(),
    }
    pool = WorkerPool(**(usual | settings))
    pool.start()
    try:
        yield pool
    finally:
        pids = pids_of(pool)
        await pool.stop()
        assert not any(map(psutil.pid_exists, pids))


def pids_of(pool: WorkerPool) -> set[int]:
    """The process ids of the workers that take tasks."""
    workers = [*pool._idle, *pool._runs.values()]
    return {each._process.pid for each in workers if each._process and not each.is_over}


def recovery(
    method: str,
    oracle: FrequencyOracle = ORACLE,
    tally: Tally = TALLY,
    *,
    reads: bool = True,
    **fields: Any,
) -> Task:
    """A task that reads reports."""
    compute = partial(recover_tally, request=RecoveryRequest(method, **fields))
    return Task(compute, oracle, tally, reads)


def alarms_task(tally: Tally = TALLY, *, reads: bool = True) -> Task:
    return Task(partial(tasks.alarms), ORACLE, tally, reads)


def alarms() -> Prepare:
    """A short analysis of the reports."""
    return lambda: (alarms_task(), [REPORTS.tobytes()])


def endless() -> Prepare:
    """An analysis that takes many minutes: a thousand steps over 600,000 reports, none of them the
    last.
    """
    many = 200
    tally = Tally(TALLY.summary * many, TALLY.n * many)
    task = recovery("em", tally=tally, options={"iterations": 1000, "tolerance": 0.0})
    return lambda: (task, (REPORTS.tobytes() for _ in range(many)))


async def begin(run: Callable[[Prepare], Coroutine[Any, Any, bytes]]) -> "asyncio.Task[bytes]":
    """Begin a task that takes many minutes; return when its worker receives the reports."""
    loop, has_begun = asyncio.get_running_loop(), asyncio.Event()

    def prepare() -> tuple[Task, Iterable[bytes]]:
        task, reports = endless()()
        assert reports is not None

        def pieces() -> Iterator[bytes]:
            loop.call_soon_threadsafe(has_begun.set)
            yield from reports

        return task, pieces()

    task = asyncio.create_task(run(prepare))
    await has_begun.wait()
    return task
