"""The FastAPI application, composed of its services, middleware and routes."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from asyncio import create_task, gather, get_running_loop, wait
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.metadata import version
from types import FrameType

from anyio import to_thread
from fastapi import FastAPI
from starlette.types import ASGIApp

from ldprecover_server import limits
from ldprecover_server.access.access import Access
from ldprecover_server.access.rates import RefusalRates, ReportRates
from ldprecover_server.analysis.analyses import Analyses, ResultCache
from ldprecover_server.analysis.verdicts import Verdicts
from ldprecover_server.analysis.worker_pool import WorkerPool
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.http import openapi, problems, routes
from ldprecover_server.http.dependencies import Services
from ldprecover_server.http.middleware import (
    Application,
    Cors,
    Dispatch,
    Head,
    HeadChecks,
    Instrumentation,
    SecurityHeaders,
    StartLimit,
    UnreadResponses,
)
from ldprecover_server.http.routes.operation import HEALTH
from ldprecover_server.http.routes.submissions import SubmissionEndpoint
from ldprecover_server.ingest.writer import Ingest
from ldprecover_server.limits import Limits, ReturnTimes, SharedCall
from ldprecover_server.metrics import Metrics
from ldprecover_server.rounds import LABELS_BYTES, Rounds
from ldprecover_server.settings import Settings
from ldprecover_server.storage import Storage
from ldprecover_server.submissions import Submissions

_log = logging.getLogger(__name__)

_STARTS = 4
"""Requests other than submissions and health checks that start in one turn of the event loop: each
takes a millisecond or more."""

_UNREAD_BYTES = 32 << 20
"""Bytes of responses of more than 32 KiB that clients have not read, in each process."""

_LEAST_ANALYSIS = 16 << 20
"""Least bytes of an analysis without a key: most methods need them for 100,000 items."""

_DRAIN_SECONDS = 1.0
"""Seconds that shutdown waits for calls in thread pools whose callers are gone."""


def make_app(settings: Settings, storage: Storage, link_key: str | None, practice: bool) -> FastAPI:
    """Return the application over a storage; `link_key` is an admin key of this process alone.

    With `practice` it opens practice rounds too.

    Its lifespan waits for the database, claims it, runs the writer, the workers, verdicts and
    housekeeping, and closes the storage. `app.state` has the parts.
    """
    metrics = Metrics()
    ingest = Ingest(
        storage,
        max_waiting=limits.QUEUE_REQUESTS,
        group_bytes=limits.GROUP_BYTES,
        group_cells=limits.SUBMISSION_CELLS,
        waiting_seconds=settings.request_seconds,
        metrics=metrics,
    )
    workers = WorkerPool(
        settings.analyses,
        waiting=limits.ANALYSIS_QUEUE,
        seconds=settings.analysis_seconds,
        key_seconds=settings.analysis_key_seconds,
        memory_bytes=settings.analysis_bytes,
        anonymous_bytes=max(_LEAST_ANALYSIS, settings.analysis_bytes // settings.workers),
        disk_bytes=settings.analysis_disk_bytes,
        metrics=metrics,
    )
    rates = None
    if settings.report_rate:
        rates = ReportRates(settings.report_rate, settings.report_burst)
    access = Access(storage, settings.secret_key, link_key, rates=rates)
    labels_bytes = LABELS_BYTES // settings.workers
    rounds = Rounds(storage, access, settings.max_domain_size, labels_bytes, practice)
    cache = ResultCache(limits.ANALYSIS_CACHE_BYTES // settings.workers)
    analyses = Analyses(rounds, storage, workers, cache)
    services = Services(
        rounds=rounds,
        submissions=Submissions(rounds, access, ingest, storage, settings),
        analyses=analyses,
        access=access,
        limits=Limits(settings),
    )
    verdicts = Verdicts(
        storage,
        rounds,
        analyses,
        workers,
        max_reports=settings.verdict_reports,
        disk_bytes=settings.analysis_disk_bytes,
        metrics=metrics,
    )
    app = Application(
        title="LDPRecover",
        version=version("ldprecover"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=openapi.operation_id,
        lifespan=_lifespan,
    )
    app.state.services = services
    app.state.storage = storage
    app.state.ingest = ingest
    app.state.workers = workers
    app.state.verdicts = verdicts
    app.state.metrics = metrics
    app.state.refusal_rates = RefusalRates(limits.REFUSALS_PER_SECOND, limits.REFUSALS)
    app.state.return_times = ReturnTimes()
    app.state.scrape = SharedCall(metrics.render, 0.0)
    entry: ASGIApp = UnreadResponses(SecurityHeaders(Head(app.framework)), _UNREAD_BYTES)
    entry = Dispatch(StartLimit(entry, _STARTS), SubmissionEndpoint(services), HEALTH)
    if settings.cors_origins:
        entry = Cors(entry, settings.cors_origins)
    app.entry = Instrumentation(HeadChecks(entry, settings.host_names), metrics)
    problems.install(app)
    openapi.install(app)
    routes.install(app)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state = app.state
    stopping = threading.Event()
    is_open = False
    try:
        with _on_stop_signal(stopping.set):
            is_open = await to_thread.run_sync(_open, state.storage, state.metrics, stopping)
    finally:
        if not is_open:
            state.storage.close()
    if not is_open:
        yield  # the server stops before it serves
        return
    state.ingest.start(get_running_loop())
    state.workers.start()
    housekeeping = create_task(Housekeeping(state.storage, state.metrics).run())
    verdicts = create_task(state.verdicts.run())
    try:
        with _on_stop_signal(state.workers.close):
            yield
    finally:
        verdicts.cancel()
        await state.workers.stop()
        housekeeping.cancel()
        await wait([housekeeping, verdicts])  # cancelled or failed
        services = state.services
        threads = (services.limits, services.submissions.readiness, state.scrape, state.verdicts)
        await gather(*(each.drain(_DRAIN_SECONDS) for each in threads))
        await to_thread.run_sync(_close, state.ingest, state.storage)


def _open(storage: Storage, metrics: Metrics, stopping: threading.Event) -> bool:
    """Return whether the storage is open: False if `stopping` is set first."""
    is_open = storage.prepare_when_available(_log.warning, stopping, claim=True)
    # After the claim, whose connection does not count.
    storage.database.watch_pool(metrics.pool.inc, metrics.pool.dec)
    return is_open


def _close(ingest: Ingest, storage: Storage) -> None:
    """Commit queued submissions, and close the storage."""
    ingest.stop()
    storage.close()


@contextlib.contextmanager
def _on_stop_signal(call: Callable[[], object]) -> Iterator[None]:
    """Make SIGINT and SIGTERM call `call` in the event loop, before the server's own handlers.

    The lifespan of an application ends after the requests in progress. Without this an analysis
    would delay the exit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    loop = get_running_loop()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(call)
        handler = handlers[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    replaced = [number for number, handler in handlers.items() if callable(handler)]
    for number in replaced:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, handlers[number])
