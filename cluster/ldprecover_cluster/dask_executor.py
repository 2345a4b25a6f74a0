"""The workers of a Dask cluster, as an executor."""

import logging
import pickle
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from functools import partial
from typing import Any

from ldprecover_cluster.errors import EngineError
from ldprecover_cluster.scheduler import Scheduler
from ldprecover_cluster.tasks import Task, run
from ldprecover_cluster.translated import Translated

_SECONDS = 5.0  # for the scheduler to answer, at first and after the connection was lost
_FRESH = 1.0  # seconds for which a number of workers is taken as it was


@contextmanager
def dask_executor(
    scheduler: Scheduler,
    begin: Callable[[], None] | None = None,
    *,
    most: int | None = None,
    tell: Callable[[str], None] = lambda said: None,
) -> Iterator[Executor]:
    """Yield an executor of the workers that a scheduler has, now and later.

    Each worker process calls `begin` before its first task; a worker that dies loses nothing but
    time. `most` is the number of workers that tasks are kept ready for at most, for what this
    process holds. `tell` is told in a sentence where there is no worker yet. What is under way when
    the block ends is let go: workers finish the one task that they are at.

    Raises EngineError where Dask is not installed, the scheduler cannot be reached or is lost, or a
    task has ended every worker that took it.
    """
    if (missing := Scheduler.missing_package()) is not None:
        raise EngineError(missing)
    client = _connected(scheduler)
    try:
        threads = _Threads(client)
        if not threads.number:
            tell(f"The scheduler {scheduler.url} has no workers yet; the work waits for them.")

        def workers() -> int:
            return max(1, threads.number if most is None else min(threads.number, most))

        yield Translated(
            _Pickling(client, begin),
            workers,
            partial(_translate, client, scheduler.url),
            pickle.loads,
        )
    finally:
        client.close(_SECONDS)


def _translate(client: Any, url: str, error: BaseException) -> BaseException:
    from distributed import KilledWorker
    from distributed.scheduler import NoValidWorkerError

    if isinstance(error, KilledWorker):
        said = (
            "a task has ended every worker that took it: workers were killed again and again, "
            "or lack memory"
        )
    elif isinstance(error, NoValidWorkerError):
        said = f"the scheduler {url} has had no workers for too long"
    elif isinstance(error, CancelledError) or client.status != "running":
        said = f"the scheduler {url} was lost, or has dropped what it was asked for"
    elif isinstance(error, ModuleNotFoundError):
        said = f"the workers lack {error.name}: install there what is installed here"
    else:
        return error
    return EngineError(said)


def _connected(scheduler: Scheduler) -> Any:
    import dask
    import distributed

    dask_of: Any = distributed  # which says no types of these two
    # What goes wrong is raised and told once; Dask would also write it to standard error, in many
    # lines.
    for name in ("distributed", "distributed.client", "distributed.core", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    files = {
        "tls_ca_file": scheduler.tls_ca,
        "tls_client_cert": scheduler.tls_cert,
        "tls_client_key": scheduler.tls_key,
    }
    try:
        security = dask_of.Security(
            require_encryption=scheduler.is_encrypted,
            **{name: file for name, file in files.items() if file},
        )
        if (
            scheduler.is_encrypted
            and security.get_connection_args("client").get("ssl_context") is None
        ):
            raise EngineError(
                f"the scheduler {scheduler.url} asks for TLS: give a CA, a certificate and its key"
            )
        with dask.config.set({"distributed.comm.timeouts.connect": _SECONDS}):
            return dask_of.Client(
                scheduler.url, security=security, timeout=_SECONDS, set_as_default=False
            )
    except (OSError, TypeError, ValueError, RuntimeError) as error:
        said = " ".join(re.sub(r"in <[^>]*>: ", "", str(error.__cause__ or error)).split())
        raise EngineError(
            f"the scheduler {scheduler.url} cannot be reached: {said or type(error).__name__}"
        ) from error


class _Threads:
    """How many tasks the workers of a cluster can work on at once, looked up now and then."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._number, self._at = 0, -_FRESH

    @property
    def number(self) -> int:
        if (now := time.monotonic()) - self._at >= _FRESH:
            self._number, self._at = sum(self._client.nthreads().values()), now
        return self._number


class _Pickling(Executor):
    """Dask's own executor, with tasks and results that are pickled as for processes of this
    machine.
    """

    def __init__(self, client: Any, begin: Callable[[], None] | None) -> None:
        self._inner: Executor = client.get_executor(pure=False)
        self._begin = begin

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called by a worker."""
        return self._inner.submit(run, Task.of(partial(call, *args, **kwargs), self._begin))
