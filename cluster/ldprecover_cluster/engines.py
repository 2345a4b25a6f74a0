"""Who does the work: this process, other processes of this machine, or the workers of a Dask
cluster.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial

from ldprecover import plugins
from ldprecover_cluster.dask_executor import dask_executor
from ldprecover_cluster.processes import processes
from ldprecover_cluster.scheduler import Scheduler


@contextmanager
def engine(
    jobs: int = 1,
    scheduler: Scheduler | None = None,
    *,
    begin: Callable[[], None] | None = None,
    leaving: Callable[[], None] = lambda: None,
    most: int | None = None,
    tell: Callable[[str], None] = lambda said: None,
) -> Iterator[Executor | None]:
    """Yield the executor of a scheduler's workers, or of so many processes; None where this process
    does the work.

    Workers load the plugins that this process has loaded, protocols and methods, or call `begin`
    instead. Numbers are the same with each. `leaving`, `most` and `tell` are as `processes` and
    `dask_executor` have them. Raises EngineError as they do.
    """
    if begin is None and (names := plugins.loaded(plugins.GROUPS[:2])):
        begin = partial(plugins.load, names)
    if scheduler is not None:
        with dask_executor(scheduler, begin, most=most, tell=tell) as executor:
            yield executor
    elif jobs > 1:
        with processes(jobs, begin, leaving) as executor:
            yield executor
    else:
        yield None
