"""The ASGI application, composed of its services, middleware and routes."""

from __future__ import annotations

import contextlib
import signal
import threading
from asyncio import create_task, gather, get_running_loop, wait
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.metadata import version
from threading import Lock
from types import FrameType

from anyio import to_thread
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from ldprecover_interface import paths
from ldprecover_server import limits
from ldprecover_server.access.access import Access
from ldprecover_server.access.rates import ReportRates
from ldprecover_server.analysis.analyses import Analyses
from ldprecover_server.analysis.cache import ResultCache
from ldprecover_server.analysis.verdicts import Verdicts
from ldprecover_server.analysis.worker_pool import WorkerPool
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.http import openapi, problems
from ldprecover_server.http.bodies import BodyMemory
from ldprecover_server.http.dependencies import (
    ANONYMOUS_BYTES,
    DECODED_BYTES,
    UNWRITTEN_BYTES,
    Services,
)
from ldprecover_server.http.middleware.allowed_hosts import AllowedHosts
from ldprecover_server.http.middleware.cors import Cors
from ldprecover_server.http.middleware.head import Head
from ldprecover_server.http.middleware.instrumentation import Instrumentation
from ldprecover_server.http.middleware.security_headers import SecurityHeaders
from ldprecover_server.http.middleware.start_limit import StartLimit
from ldprecover_server.http.middleware.unread_responses import UnreadResponses
from ldprecover_server.http.routes import (
    analysis,
    operation,
    page,
    planning,
    reference,
    results,
    rounds,
)
from ldprecover_server.http.routes.submissions import SubmissionRoute
from ldprecover_server.ingest.writer import Ingest
from ldprecover_server.memory_budget import MemoryBudget
from ldprecover_server.metrics import Metrics
from ldprecover_server.results import Results
from ldprecover_server.rounds import LABELS_BYTES, Rounds
from ldprecover_server.settings import Settings
from ldprecover_server.storage import Storage
from ldprecover_server.submissions import Submissions
from ldprecover_server.thread_pools import SharedCall, ThreadPool

_STARTS = 4
"""Requests other than submissions and health checks that start in one turn of the event loop: each
takes a millisecond or more."""

_UNREAD_BYTES = 32 << 20
"""Bytes of responses of more than 32 KiB that clients have not read, in each process."""

_LEAST_ANALYSIS = 16 << 20
"""Least bytes of an analysis without a key: most methods need them for 100,000 items."""

_DRAIN_SECONDS = 1.0
"""Seconds that shutdown waits for calls in thread pools whose callers are gone."""


_READINESS_SECONDS = 1.0
"""Seconds that the result of `/readyz` is kept: anybody may call it, and each check writes to the
database."""


class Application:
    """The application over a prepared storage.

    Its lifespan runs the writer, the workers, verdicts and housekeeping, and closes the storage.
    """

    def __init__(self, settings: Settings, storage: Storage) -> None:
        self.storage = storage
        self.metrics = Metrics()
        storage.watch_pool(self.metrics.pool.inc, self.metrics.pool.dec)
        self.ingest = Ingest(
            storage,
            max_waiting=limits.QUEUE_REQUESTS,
            group_bytes=limits.GROUP_BYTES,
            group_cells=limits.SUBMISSION_CELLS,
            waiting_seconds=settings.request_seconds,
            metrics=self.metrics,
        )
        self.bodies = BodyMemory(
            settings.queue_bytes, limits.BODY_SECONDS, limits.ANONYMOUS_BODY_SECONDS
        )
        self.workers = WorkerPool(
            settings.analyses,
            waiting=limits.ANALYSIS_QUEUE,
            seconds=settings.analysis_seconds,
            key_seconds=settings.analysis_key_seconds,
            memory_bytes=settings.analysis_bytes,
            anonymous_bytes=max(_LEAST_ANALYSIS, settings.analysis_bytes // settings.workers),
            disk_bytes=settings.analysis_disk_bytes,
            metrics=self.metrics,
        )
        rates = None
        if settings.report_rate:
            rates = ReportRates(settings.report_rate, settings.report_burst)
        access = Access(storage, settings.secret_key, rates=rates)
        round_directory = Rounds(
            storage,
            settings.max_domain_size,
            LABELS_BYTES // settings.workers,
        )
        submissions = Submissions(round_directory, access, self.ingest, storage, settings)
        tallies = Results(round_directory, access, storage)
        analyses = Analyses(
            round_directory,
            tallies,
            storage,
            self.workers,
            ResultCache(limits.ANALYSIS_CACHE_BYTES // settings.workers),
        )
        self.verdicts = Verdicts(
            storage,
            round_directory,
            analyses,
            self.workers,
            max_reports=settings.verdict_reports,
            disk_bytes=settings.analysis_disk_bytes,
            metrics=self.metrics,
        )
        self.readiness = SharedCall(submissions.readiness_error, _READINESS_SECONDS)
        self.scrape = SharedCall(self.metrics.render, 0.0)
        self._services = Services(
            settings=settings,
            rounds=round_directory,
            submissions=submissions,
            results=tallies,
            analyses=analyses,
            verdicts=self.verdicts,
            access=access,
            bodies=self.bodies,
            decoded=MemoryBudget(max(ANONYMOUS_BYTES, DECODED_BYTES // settings.workers)),
            unwritten=MemoryBudget(UNWRITTEN_BYTES // settings.workers),
            writing=Lock(),
            submitting=ThreadPool(2, limits.QUEUE_REQUESTS, settings.request_seconds),
            reading=ThreadPool(2, limits.READS, settings.request_seconds),
            keyed=ThreadPool(2, limits.READS, settings.request_seconds),
            readiness=self.readiness,
            metrics=self.metrics,
            scrape=self.scrape,
        )
        self.api = self._make_api()
        self._submit = SubmissionRoute(self._services)
        self._health = SecurityHeaders(operation.HEALTH)
        self._others = StartLimit(
            UnreadResponses(SecurityHeaders(Head(self.api)), _UNREAD_BYTES), _STARTS
        )
        app: ASGIApp = self._dispatch
        if settings.cors_origins:
            app = Cors(app, settings.cors_origins)
        if (names := settings.host_names) is not None:
            app = AllowedHosts(app, names)
        self._app = Instrumentation(app, self.metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and paths.is_submission(scope["path"]):
            await self._submit(scope, receive, send)
        elif scope["type"] == "http" and _asks_for_health(scope):
            scope["route_path"] = paths.HEALTHZ
            await self._health(scope, receive, send)
        else:
            await self._others(scope, receive, send)

    def _make_api(self) -> FastAPI:
        """Return the FastAPI application of all calls but submissions."""
        api = FastAPI(
            title="LDPRecover",
            version=version("ldprecover"),
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            redirect_slashes=False,
            generate_unique_id_function=openapi.operation_id,
            lifespan=self._lifespan,
        )
        api.state.services = self._services
        problems.install(api)
        openapi.install(api)
        # Below the path of a round, and at the root for the current round.
        api.include_router(results.router, prefix=paths.ROUND)
        api.include_router(results.router)
        api.include_router(results.round_router)
        api.include_router(analysis.router)
        api.include_router(rounds.router)
        api.include_router(planning.router)
        api.include_router(operation.router)
        api.include_router(page.router)
        reference.install(api)
        return api

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self.ingest.start(get_running_loop())
        self.workers.start()
        housekeeping = create_task(Housekeeping(self.storage, self.metrics).run())
        verdicts = create_task(self.verdicts.run())
        try:
            with _on_stop_signal(self.workers.close):
                yield
        finally:
            verdicts.cancel()
            await self.workers.stop()
            housekeeping.cancel()
            await wait([housekeeping, verdicts])  # cancelled or failed
            services = self._services
            pools = (
                services.submitting,
                services.reading,
                services.keyed,
                services.readiness,
                services.scrape,
            )
            await gather(*(pool.drain(_DRAIN_SECONDS) for pool in (*pools, self.verdicts)))
            await to_thread.run_sync(self._close)

    def _close(self) -> None:
        """Commit queued submissions, and close the storage."""
        self.ingest.stop()
        self.storage.close()


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


def _asks_for_health(scope: Scope) -> bool:
    return bool(scope["path"] == paths.HEALTHZ and scope["method"] == "GET")
