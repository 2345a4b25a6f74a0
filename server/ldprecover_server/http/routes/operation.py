"""Health, readiness, metrics, version and the scope of a key, for operators."""

from importlib.metadata import version

from anyio import fail_after
from fastapi import APIRouter, Request
from starlette.responses import Response

from ldprecover import counting
from ldprecover_interface import paths
from ldprecover_interface.operation import KeyScope, Status, Version
from ldprecover_server.errors import (
    BusyError,
    DatabaseGoneError,
    InvalidRequestError,
    StorageFullError,
    StoreUnavailableError,
    UnauthorizedError,
)
from ldprecover_server.http.dependencies import Reader, get_services
from ldprecover_server.http.problems import SECURITY_HEADERS, problems
from ldprecover_server.metrics import MEDIA_TYPE

router = APIRouter(tags=["operation"])

_READY_SECONDS = 5.0
_VERSION = version("ldprecover")  # reading it takes milliseconds


HEALTH = Response(
    Status(status="ok").to_json(), headers=SECURITY_HEADERS, media_type="application/json"
)
"""The response to a health check."""


@router.get(paths.HEALTHZ)
async def get_health() -> Status:
    """Return `ok`: the process answers."""
    return Status(status="ok")


@router.get(
    paths.READYZ,
    responses=problems(BusyError, StoreUnavailableError, DatabaseGoneError, StorageFullError),
)
async def get_readiness(request: Request) -> Status:
    """Return `ready`: the database took a write within the last second, and there is room."""
    try:
        with fail_after(_READY_SECONDS):
            error = await get_services(request).submissions.readiness.result()
    except TimeoutError:
        raise StoreUnavailableError(
            f"the database has not answered for {_READY_SECONDS:g} seconds"
        ) from None
    if error is not None:
        # A new error for each caller: a shared one would collect tracebacks.
        raise type(error)(str(error))
    return Status(status="ready")


@router.get(paths.METRICS, response_class=Response)
async def get_metrics(request: Request) -> Response:
    """Return the metrics of all processes of this server for Prometheus."""
    return Response(await request.app.state.scrape.result(), media_type=MEDIA_TYPE)


@router.get(paths.VERSION)
async def get_version(request: Request) -> Version:
    """Return the version of the server, its counting kernels, and its limit of verdicts."""
    return Version(
        version=_VERSION,
        kernels=counting.backend(),
        verdict_reports=get_services(request).limits.verdict_reports,
    )


@router.get(
    paths.KEY, responses=problems(UnauthorizedError, StoreUnavailableError, InvalidRequestError)
)
async def get_key(caller: Reader) -> KeyScope:
    """Return name and scope of the key in the header Authorization."""
    key = await caller.run(caller.services.access.require, caller.key)
    return KeyScope(name=key.name, scope=key.scope)
