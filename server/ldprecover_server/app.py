"""The ASGI application."""

import contextlib
from asyncio import create_task, get_running_loop, wait
from collections.abc import AsyncIterator
from importlib.metadata import version

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ldprecover_server.analysis import Analysis
from ldprecover_server.housekeeping import Housekeeping
from ldprecover_server.http import openapi, problems
from ldprecover_server.http.bodies import BodyGuard
from ldprecover_server.http.cors import Cors
from ldprecover_server.http.routes import analysis, operation, reference, results, rounds
from ldprecover_server.http.routes.submissions import Submissions
from ldprecover_server.http.watch import Watch
from ldprecover_server.service import Service
from ldprecover_server.settings import Settings
from ldprecover_server.store import Store

__all__ = ["create_api", "create_app"]


def create_app(settings: Settings, store: Store) -> ASGIApp:
    """Return the application over a prepared store; its lifespan runs the writer and closes the store."""
    service = Service(store, settings)
    api = create_api(service)
    submissions = Submissions(service)

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and submissions.takes(scope["path"]):
            await submissions(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "HEAD":
            await _head(api, scope, receive, send)
        else:
            await api(scope, receive, send)

    app: ASGIApp = BodyGuard(
        dispatch, settings.max_body_bytes, settings.max_decoded_bytes, settings.queue_bytes, settings.body_seconds
    )
    if settings.cors_origins:
        app = Cors(app, settings.cors_origins)
    return Watch(app, service)


async def _head(api: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer as GET would, without the body; the framework would answer 405."""
    as_get = {**scope, "method": "GET"}

    async def send_head(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    try:
        await api(as_get, receive, send_head)
    finally:
        scope.update(as_get, method="HEAD")  # whoever watches sees which route took it


def create_api(service: Service) -> FastAPI:
    """Return everything but the submissions: rounds, results, operation and the API reference."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.ingest.start(get_running_loop())
        housekeeping = create_task(Housekeeping(service.store, service.refusals).run())
        try:
            yield
        finally:
            housekeeping.cancel()
            await wait([housekeeping])  # however it ended
            await run_in_threadpool(service.close)

    api = FastAPI(
        title="LDPRecover",
        version=version("ldprecover"),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    api.state.service = service
    api.state.analysis = Analysis(service)
    problems.install(api)
    openapi.install(api)
    # Under /rounds/{round} the round that the path names; at the root the current one.
    api.include_router(results.router, prefix="/rounds/{round}")
    api.include_router(results.router)
    api.include_router(analysis.router, prefix="/rounds/{round}")
    api.include_router(rounds.router)
    api.include_router(operation.router)
    reference.install(api)
    return api
