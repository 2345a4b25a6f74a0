"""Health, readiness, metrics and version, for operators."""

from importlib.metadata import version

from anyio import fail_after
from fastapi import APIRouter, Request
from starlette.responses import Response

from ldprecover import counting
from ldprecover_interface import paths
from ldprecover_interface.operation import Status, Version
from ldprecover_server.errors import (
    BusyError,
    DatabaseGoneError,
    QueueFullError,
    StorageFullError,
    StoreUnavailableError,
)
from ldprecover_server.http.dependencies import get_services
from ldprecover_server.http.problems import problems
from ldprecover_server.metrics import MEDIA_TYPE

router = APIRouter(tags=["operation"])

_READY_SECONDS = 5.0
_VERSION = version("ldprecover")  # reading it takes milliseconds


@router.get(paths.HEALTHZ)
async def get_health() -> Status:
    """Return `ok`: the process answers."""
    return Status(status="ok")


@router.get(
    paths.READYZ,
    responses=problems(
        BusyError,
        QueueFullError,
        StoreUnavailableError,
        DatabaseGoneError,
        StorageFullError,
    ),
)
async def get_readiness(request: Request) -> Status:
    """Return `ready`: the database accepts writes, and queue and disk have room."""
    services = get_services(request)
    try:
        with fail_after(_READY_SECONDS):
            await services.operating.run(services.submissions.check_ready)
    except TimeoutError:
        raise StoreUnavailableError(
            f"the database has not answered for {_READY_SECONDS:g} seconds"
        ) from None
    return Status(status="ready")


@router.get(
    paths.METRICS,
    responses=problems(BusyError),
    response_class=Response,
)
async def get_metrics(request: Request) -> Response:
    """Return the metrics of all processes of this server for Prometheus."""
    services = get_services(request)
    return Response(await services.operating.run(services.metrics.render), media_type=MEDIA_TYPE)


@router.get(paths.VERSION)
async def get_version() -> Version:
    """Return the version of the server and its counting kernels."""
    return Version(version=_VERSION, kernels=counting.backend())
