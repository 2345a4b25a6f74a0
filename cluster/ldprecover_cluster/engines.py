"""Chooses the executor: none, processes of this machine, or workers of a Dask cluster."""

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from ldprecover import plugins
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

    Results do not depend on the choice. Workers call `initializer` first; by default it loads the
    protocol and method plugins that this process has loaded. `on_error` is as in `processes`,
    `max_workers` and `notify` as in `dask_executor`. Raises EngineError as they do.
    """
    if initializer is None and (names := plugins.loaded(plugins.GROUPS[:2])):
        initializer = partial(plugins.load, names)
    if scheduler is not None:
        return dask_executor(scheduler, initializer, max_workers=max_workers, notify=notify)
    return processes(jobs, initializer, on_error) if jobs > 1 else nullcontext()
