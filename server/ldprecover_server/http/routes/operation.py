"""For whoever runs the server: is it alive, is it ready, what is it."""

from importlib.metadata import version

from anyio import fail_after, to_thread
from fastapi import APIRouter, Request
from starlette.responses import Response

from ldprecover import kernels
from ldprecover_server.errors import StoreUnavailableError
from ldprecover_server.http.models import Version
from ldprecover_server.http.routes.common import json, problems, service_of
from ldprecover_server.metrics import MEDIA_TYPE

__all__ = ["router"]

router = APIRouter(tags=["operation"])

_READY_SECONDS = 5.0


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz", responses=problems(503, 507))
async def readyz(request: Request) -> dict[str, str]:
    """The database can be written, the queue has room, and so has the disk."""
    try:
        with fail_after(_READY_SECONDS):
            await to_thread.run_sync(service_of(request).check_ready, abandon_on_cancel=True)
    except TimeoutError:
        raise StoreUnavailableError(f"the database has not answered for {_READY_SECONDS:g} seconds") from None
    return {"status": "ready"}


@router.get("/metrics", response_class=Response, responses={200: {"content": {MEDIA_TYPE: {}}}})
def get_metrics(request: Request) -> Response:
    """What Prometheus scrapes: the counts of every process of this server."""
    return Response(service_of(request).metrics.render(), media_type=MEDIA_TYPE)


@router.get("/version", response_model=Version)
async def get_version() -> Response:
    """Version of the server, and the kernels it counts with."""
    return json({"version": version("ldprecover"), "kernels": kernels.backend()})
