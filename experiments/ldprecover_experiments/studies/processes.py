"""Worker processes of this machine, as an executor."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import current_process, parent_process, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess

from ldprecover_experiments.errors import ExperimentError

_ENVIRONMENT = {"MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""One thread a process, unless the environment sets these variables."""


_IMPORTING = 73
"""Exit code of a worker whose import of the main script starts workers in turn."""


@contextmanager
def processes(
    jobs: int,
    initializer: Callable[[], None],
    on_error: Callable[[], None],
) -> Iterator[Executor]:
    """Yield an executor of `jobs` processes, which end with the block; queued tasks are cancelled.

    Each process calls `initializer` before its first task and ignores Ctrl-C. `on_error` is called
    if the block raises, before running tasks are waited for. Raises ExperimentError if a process
    ends.
    """
    if getattr(current_process(), "_inheriting", False):  # a worker that imports the main script
        sys.exit(_IMPORTING)
    pool = ProcessPoolExecutor(jobs, _Context(), _initialize, (initializer,))
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            pool.submit(int)  # starts a process; an interrupted start would leave it behind
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield pool
    except BrokenProcessPool as error:
        # All that were started by then; the one that broke the pool is not always the first.
        workers = list((pool._processes or {}).values())
        pool.shutdown()
        codes = {worker.exitcode for worker in workers}
        if _IMPORTING in codes:
            raise ExperimentError(
                "several processes import the script that starts them: call run(jobs=...) below "
                'if __name__ == "__main__":'
            ) from None
        raise ExperimentError(
            "a worker process has died: it could not start, as an error above says, it was killed, "
            "perhaps for lack of memory, or a plugin ended it"
        ) from error
    except BaseException:
        workers = list((pool._processes or {}).values())
        try:
            on_error()
            pool.shutdown(cancel_futures=True)
        except BaseException:  # a second Ctrl-C does not wait
            for worker in workers:
                worker.kill()
            raise
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class _Process(SpawnProcess):
    """A process with one thread for linear algebra that never receives Ctrl-C."""

    def start(self) -> None:
        # The tracker would otherwise start below, and unblock the signal again.
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


def _initialize(initializer: Callable[[], None]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    initializer()


def _end_with_parent() -> None:
    """End this process when its parent has ended, also by SIGKILL: a task may take minutes."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
