"""For whoever runs the server: is it alive, is it ready, what is it."""

from importlib.metadata import version

from fastapi import APIRouter, Request
from starlette.responses import Response

from ldprecover import kernels
from ldprecover_server.models import Version
from ldprecover_server.routes.common import json, problems, service_of

__all__ = ["router"]

router = APIRouter(tags=["operation"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz", responses=problems(503, 507))
def readyz(request: Request) -> dict[str, str]:
    """The database can be written and the queue has room."""
    service_of(request).check_ready()
    return {"status": "ready"}


@router.get("/version", response_model=Version)
async def get_version() -> Response:
    """Version of the server, and the kernels it counts with."""
    return json({"version": version("ldprecover"), "kernels": kernels.backend()})
