"""For whoever runs the server: is it alive, is it ready, what is it."""

from importlib.metadata import version

from anyio import fail_after
from fastapi import APIRouter, Request
from starlette.responses import Response

from ldprecover import counting
from ldprecover_interface import paths
from ldprecover_server.errors import (
    BusyError,
    DatabaseGoneError,
    QueueFullError,
    StorageFullError,
    StoreUnavailableError,
)
from ldprecover_server.http.dependencies import described, get_services
from ldprecover_server.http.messages import Status, Version
from ldprecover_server.http.responses import json
from ldprecover_server.metrics import MEDIA_TYPE

router = APIRouter(tags=["operation"])

_READY_SECONDS = 5.0


@router.get(paths.HEALTHZ, **described(Status))
async def get_health() -> Response:
    """The process answers."""
    return json(Status("ok"))


@router.get(
    paths.READYZ,
    **described(
        Status,
        BusyError,
        QueueFullError,
        StoreUnavailableError,
        DatabaseGoneError,
        StorageFullError,
    ),
)
async def get_readiness(request: Request) -> Response:
    """The database can be written, the queue has room, and so has the disk."""
    services = get_services(request)
    try:
        with fail_after(_READY_SECONDS):
            await services.operating.run(services.submissions.check_ready)
    except TimeoutError:
        raise StoreUnavailableError(
            f"the database has not answered for {_READY_SECONDS:g} seconds"
        ) from None
    return json(Status("ready"))


@router.get(
    paths.METRICS,
    **described(None, BusyError),
    response_class=Response,
)
async def get_metrics(request: Request) -> Response:
    """What Prometheus scrapes: the counts of every process of this server."""
    services = get_services(request)
    return Response(await services.operating.run(services.metrics.render), media_type=MEDIA_TYPE)


@router.get(paths.VERSION, **described(Version))
async def get_version() -> Response:
    """Version of the server, and the kernels it counts with."""
    return json(Version(version("ldprecover"), counting.backend()))
