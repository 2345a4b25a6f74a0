"""Worker processes of this machine, as an executor."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import parent_process, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess

from ldprecover_cluster.errors import EngineError
from ldprecover_cluster.translated import Translated

_ENVIRONMENT = {"MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""One thread a process. What the environment says of these goes before."""


@contextmanager
def processes(
    jobs: int, begin: Callable[[], None] | None = None, leaving: Callable[[], None] = lambda: None
) -> Iterator[Executor]:
    """Yield an executor of so many processes, which end with the block: none is left, and what
    waits is not done.

    Each calls `begin` before its first task. Ctrl-C is for this process alone; `leaving` is called
    where the block ends by an error, before tasks under way are waited for. Raises EngineError
    where a process is killed.
    """
    pool = ProcessPoolExecutor(jobs, _Context(), _begin, (begin,))
    try:
        yield Translated(pool, lambda: jobs, _translate)
    except BaseException:
        leaving()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _translate(error: BaseException) -> BaseException:
    if not isinstance(error, BrokenProcessPool):
        return error
    said = (
        "a process that worked on it has ended: it was killed, perhaps for want of memory, or "
        "a plugin ended it"
    )
    return EngineError(said)


class _Process(SpawnProcess):
    """A process that has no thread of this one's, no second thread for matrices, and never sees
    Ctrl-C.
    """

    def start(self) -> None:
        # or it would be started below, and let signals through again
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        added = {name: value for name, value in _ENVIRONMENT.items() if name not in os.environ}
        os.environ.update(added)
        try:
            super().start()
        finally:
            for name in added:
                os.environ.pop(name, None)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Context(SpawnContext):
    Process = _Process


def _begin(begin: Callable[[], None] | None) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if begin is not None:
        begin()


def _end_with_parent() -> None:
    """End this process when the one that started it has ended, were it by SIGKILL: a task may take
    minutes.
    """
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
