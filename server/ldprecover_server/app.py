"""The ASGI application."""

import contextlib
from asyncio import get_running_loop
from collections.abc import AsyncIterator
from importlib.metadata import version

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from ldprecover_server import openapi, problems
from ldprecover_server.bodies import BodyGuard
from ldprecover_server.routes import operation, reference, results, rounds
from ldprecover_server.routes.submissions import submit
from ldprecover_server.service import Service
from ldprecover_server.settings import Settings
from ldprecover_server.store import Store

__all__ = ["create_app"]


def create_app(settings: Settings, store: Store) -> FastAPI:
    """Return the application over a prepared store; its lifespan runs the writer and closes the store."""
    service = Service(store, settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.ingest.start(get_running_loop())
        try:
            yield
        finally:
            await run_in_threadpool(service.ingest.stop)
            store.close()

    app = FastAPI(title="LDPRecover", version=version("ldprecover"), docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service = service
    problems.install(app)
    openapi.install(app)
    for path in ("/rounds/{round}/reports", "/reports"):
        app.router.routes.append(Route(path, submit, methods=["POST"]))
    # Under /rounds/{round} the one the path names; at the root the current round.
    app.include_router(results.router, prefix="/rounds/{round}")
    app.include_router(results.router)
    app.include_router(rounds.router)
    app.include_router(operation.router)
    reference.install(app)
    app.add_middleware(
        BodyGuard,
        max_body_bytes=settings.max_body_bytes,
        max_decoded_bytes=settings.max_decoded_bytes,
        max_held_bytes=settings.queue_bytes,
    )
    return app
