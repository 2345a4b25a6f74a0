"""The workers of a Dask cluster, as an executor."""

import logging
import pickle
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from functools import partial
from typing import Any

from ldprecover_cluster.errors import EngineError
from ldprecover_cluster.executor import TranslatingExecutor
from ldprecover_cluster.scheduler import Scheduler, TlsFiles
from ldprecover_cluster.tasks import Task, add_results, run

_TIMEOUT = 5.0  # seconds for the scheduler to answer, also after a lost connection
_CACHE_SECONDS = 1.0  # age up to which the number of workers is not requested again


@contextmanager
def dask_executor(
    scheduler: Scheduler,
    initializer: Callable[[], None] | None = None,
    *,
    max_workers: int | None = None,
    notify: Callable[[str], None] = lambda message: None,
) -> Iterator[Executor]:
    """Yield an executor of a scheduler's current and future workers.

    Each worker process calls `initializer` before its first task. Tasks of a worker that dies are
    repeated elsewhere. `max_workers` limits how many workers tasks are prepared for, and with it
    the memory of this process. `notify` gets a message if there is no worker yet. At the end of
    the block queued tasks are cancelled; workers finish their current task. The executor's
    `submit_sum` adds results in the workers, in order.

    Raises EngineError if Dask is not installed, the scheduler cannot be reached or is lost, or a
    task has killed every worker that ran it.
    """
    if (missing := Scheduler.missing_package()) is not None:
        raise EngineError(missing)
    client = _connected(scheduler)
    try:
        threads: int = sum(client.nthreads().values())
        requested = time.monotonic()
        if not threads:
            notify(f"The scheduler {scheduler.url} has no workers yet; waiting for them.")

        def workers() -> int:
            """Return the number of workers, requested at most once a second."""
            nonlocal threads, requested
            if time.monotonic() - requested >= _CACHE_SECONDS:
                threads, requested = sum(client.nthreads().values()), time.monotonic()
            return max(1, threads if max_workers is None else min(threads, max_workers))

        def submit(call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            task = Task.of(partial(call, *args, **kwargs), initializer)
            future: Future[Any] = executor.submit(run, task)
            return future

        def submit_sum(add: Callable[..., Any], calls: Sequence[Callable[[], Any]]) -> Future[Any]:
            tasks = [client.submit(run, Task.of(call, initializer), pure=False) for call in calls]
            future: Future[Any] = executor.submit(
                run, Task.of(partial(add_results, add), initializer), *tasks
            )
            return future

        executor = client.get_executor(pure=False)
        yield TranslatingExecutor(
            submit, workers, partial(_translate, client, scheduler.url), pickle.loads, submit_sum
        )
    finally:
        client.close(_TIMEOUT)


def _translate(client: Any, url: str, error: BaseException) -> BaseException:
    from distributed import KilledWorker
    from distributed.scheduler import NoValidWorkerError

    if isinstance(error, KilledWorker):
        message = (
            "a task has killed every worker that ran it: workers were killed repeatedly, or lack "
            "memory"
        )
    elif isinstance(error, NoValidWorkerError):
        message = f"the scheduler {url} has had no workers for too long"
    elif isinstance(error, CancelledError) or client.status != "running":
        message = f"the connection to the scheduler {url} was lost, or it dropped the tasks"
    elif isinstance(error, ModuleNotFoundError):
        missing = error.name
        message = f"{error.msg} {missing}: install the same packages there as here"
    else:
        return error
    return EngineError(message)


def _connected(scheduler: Scheduler) -> Any:
    import dask
    import distributed

    untyped: Any = distributed  # it declares no types for Security and Client
    # Errors are raised once; Dask would also write each to standard error, in many lines.
    for name in ("distributed", "distributed.client", "distributed.core", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    security = tls_security("client", scheduler.tls) if scheduler.is_encrypted else None
    try:
        with dask.config.set({"distributed.comm.timeouts.connect": _TIMEOUT}):
            return untyped.Client(
                scheduler.url, security=security, timeout=_TIMEOUT, set_as_default=False
            )
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        raise EngineError(
            f"the scheduler {scheduler.url} cannot be reached: {reason_of(error)}"
        ) from error


def tls_security(role: str, tls: TlsFiles) -> Any:
    """Return Dask's settings of TLS for a client, scheduler or worker; without files its own.

    Raises EngineError without files and settings, and for files that cannot be used.
    """
    import distributed

    untyped: Any = distributed
    names = ("tls_ca_file", f"tls_{role}_cert", f"tls_{role}_key")
    files = {name: file for name, file in zip(names, tls, strict=True) if file}
    try:
        security = untyped.Security(require_encryption=True, **files)
        usable = security.get_connection_args(role)["ssl_context"] is not None
    except (OSError, TypeError, ValueError) as error:
        raise EngineError(f"the TLS files cannot be used: {error}") from error
    if not usable:
        raise EngineError(f"a {role} needs TLS: give a CA, a certificate and its key")
    return security


def reason_of(error: BaseException | None) -> str:
    """Return the innermost message of an error of Dask, in one line without objects of Dask."""
    reason = ""
    while isinstance(error, Exception):
        text = error.strerror if isinstance(error, OSError) else None
        reason = text or re.sub(r"in <[^>]*>: ", "", str(error)) or reason or type(error).__name__
        error = error.__cause__ or error.__context__
    return " ".join(reason.split())
