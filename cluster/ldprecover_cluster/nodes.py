"""Runs the nodes of a Dask cluster, a scheduler or workers: with TLS, without HTTP, within limits.

Dask serves identity, call stacks and logs over plain HTTP on all addresses, with and without its
dashboard. Here its HTTP server has nothing to serve, and listens on loopback alone.
"""

import asyncio
import logging
import os
import resource
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from ldprecover_cluster.dask_executor import reason_of, tls_security
from ldprecover_cluster.errors import EngineError
from ldprecover_cluster.scheduler import Scheduler, TlsFiles, check_tls_files

_SETTINGS: dict[str, Any] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
_DEFAULTS = {"allowed-failures": 3, "no-workers-timeout": "10 minutes", "worker-ttl": "5 minutes"}
"""Limits of failures, which Dask's files of settings and environment variables override."""
_OPTIONS = {"protocol": "tls", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
_START_SECONDS = 60.0  # for a worker to start and register
_GRACE_SECONDS = 10.0  # for the nodes to end; Dask kills workers after 4


def run_scheduler(
    host: str, port: int, tls: TlsFiles, on_start: Callable[[str], None] = lambda url: None
) -> None:
    """Run a scheduler until SIGINT or SIGTERM; port 0 is any free port.

    `on_start` is called with its address. Raises EngineError if it cannot listen there or use the
    TLS files, and ParameterError for files that do not exist.
    """
    check_tls_files(tls)
    distributed = _dask()
    security = tls_security("scheduler", tls)

    async def start(nodes: list[Any]) -> None:
        with _explained(f"a scheduler cannot listen on {host}, port {port}"):
            nodes.append(distributed.Scheduler(host=host, port=port, security=security, **_OPTIONS))
            on_start((await nodes[0]).address)

    asyncio.run(_until_end(start))


def run_workers(
    scheduler: Scheduler,
    jobs: int | None,
    memory_limit: int,
    host: str | None = None,
    on_start: Callable[[int], None] = lambda jobs: None,
) -> None:
    """Run `jobs` worker processes of one thread each until SIGINT or SIGTERM.

    None is one process for each processor. A process near `memory_limit` bytes is replaced. They
    listen on `host`, by default the address from which this machine reaches the scheduler.
    `on_start` is called with the number of processes. Raises EngineError if the scheduler cannot be
    reached or is lost, or the workers cannot start.
    """
    distributed = _dask()
    from dask.system import CPU_COUNT

    security = tls_security("worker", scheduler.tls)
    number = jobs or CPU_COUNT

    async def start(nodes: list[Any]) -> None:
        with _explained(f"the scheduler {scheduler.url} cannot be reached"):
            comm = await distributed.comm.connect(
                scheduler.url, **security.get_connection_args("worker")
            )
            # Without a host, Dask's workers listen on all addresses.
            own = host or distributed.comm.get_address_host(comm.local_address)
            await comm.close()
        with _explained(f"the workers cannot start on {own}"):
            nodes += (
                distributed.Nanny(
                    scheduler.url,
                    nthreads=1,
                    memory_limit=memory_limit,
                    host=own,
                    security=security,
                    silence_logs=logging.WARNING,
                    death_timeout=_START_SECONDS,
                    **_OPTIONS,
                )
                for _ in range(number)
            )
            await asyncio.gather(*nodes)
        on_start(number)

    if not asyncio.run(_until_end(start)):
        raise EngineError(f"the scheduler {scheduler.url} has ended, or the connection to it")


def _dask() -> Any:
    """Return the module `distributed` with our settings. Raises EngineError without Dask."""
    if (missing := Scheduler.missing_package()) is not None:
        raise EngineError(missing)
    # Until the nodes start: an exception can be lost during an import.
    signal.signal(signal.SIGINT, _exit)
    signal.signal(signal.SIGTERM, _exit)
    import dask
    import distributed

    dask.config.update_defaults({"distributed": {"scheduler": _DEFAULTS}})
    dask.config.set(_SETTINGS)
    # Each connection is an open file.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard // 2), hard))
    return distributed


def _exit(number: int, frame: FrameType | None) -> None:
    os._exit(0)


@contextmanager
def _explained(problem: str) -> Iterator[None]:
    """Raise errors of Dask as EngineError, with what did not succeed."""
    try:
        yield
    except Exception as error:
        raise EngineError(f"{problem}: {reason_of(error)}") from error


async def _until_end(start: Callable[[list[Any]], Awaitable[None]]) -> bool:
    """Run nodes until they end or a signal comes; return whether it was a signal.

    `start` adds the nodes to its argument and starts them.
    """
    loop, signalled, nodes = asyncio.get_running_loop(), asyncio.Event(), list[Any]()

    async def run() -> None:
        await start(nodes)
        logging.disable(logging.NOTSET)
        await asyncio.gather(*(node.finished() for node in nodes))

    def wait_for_interrupt() -> None:
        signal.sigwait({signal.SIGINT})
        loop.call_soon_threadsafe(signalled.set)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signalled.set)
    # A terminal sends Ctrl-C to worker processes too, which end with their nanny: they inherit the
    # mask. Here a thread waits for the signal, unless one that was there before receives it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threading.Thread(target=wait_for_interrupt, daemon=True).start()
    logging.disable()  # a start that fails and an end need no traceback in the log
    running, waiting = asyncio.create_task(run()), asyncio.create_task(signalled.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    logging.disable()
    if signalled.is_set():
        running.cancel()  # Dask closes no worker that is starting
        await asyncio.wait({running})
    with suppress(TimeoutError):
        closing = (node.close() for node in nodes)
        await asyncio.wait_for(asyncio.gather(*closing, return_exceptions=True), _GRACE_SECONDS)
    if not signalled.is_set():
        await running
    return signalled.is_set()
