"""Chooses the executor: none, processes of this machine, or workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext

from ldprecover_cluster.dask_executor import dask_executor
from ldprecover_cluster.processes import processes
from ldprecover_cluster.scheduler import Scheduler


def engine(
    jobs: int = 1,
    scheduler: Scheduler | None = None,
    *,
    initializer: Callable[[], None] | None = None,
    on_error: Callable[[], None] = lambda: None,
    max_workers: int | None = None,
    notify: Callable[[str], None] = lambda message: None,
) -> AbstractContextManager[Executor | None]:
    """Open an executor of a scheduler's workers or of `jobs` processes; None for this process.

    Results do not depend on the choice. Workers call `initializer` first. A task is pickled, so a
    worker imports the plugins that the task refers to, and needs no others. `on_error` is as in
    `processes`, `max_workers` and `notify` as in `dask_executor`. Raises EngineError as they do.
    """
    if scheduler is not None:
        return dask_executor(scheduler, initializer, max_workers=max_workers, notify=notify)
    return processes(jobs, initializer, on_error) if jobs > 1 else nullcontext()
