"""What routes share: the service, the round a path means, answers in JSON."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from ldprecover_server.analysis.analyses import Analyses
from ldprecover_server.http.models import ProblemDetails
from ldprecover_server.http.problems import MEDIA_TYPE
from ldprecover_server.service import Service
from ldprecover_server.store import CURRENT

__all__ = ["Admin", "BearerKey", "analyses_of", "json", "problems", "round_in_path", "service_of"]

_bearer = HTTPBearer(auto_error=False, description="A key, of the scope that the call needs.")


def service_of(request: Request) -> Service:
    """Return the service this app serves."""
    service: Service = request.app.state.service
    return service


def analyses_of(request: Request) -> Analyses:
    """Return what analyses the rounds of this app."""
    analyses: Analyses = request.app.state.analyses
    return analyses


def round_in_path(request: Request) -> str:
    """Return the round a request means: the one in its path, else the current one."""
    identifier: str = request.path_params.get("round", CURRENT)
    return identifier


async def _bearer_key(
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> str | None:
    return credentials.credentials if credentials else None


BearerKey = Annotated[str | None, Depends(_bearer_key)]
"""The key a request came with; None for none."""


async def _require_admin(request: Request, key: BearerKey) -> None:
    await run_in_threadpool(service_of(request).access.require, key, "admin")


Admin = Depends(_require_admin)


def json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON answer; floats are written so that they read back exactly."""
    return Response(
        msgspec.json.encode(body), status_code=status, media_type="application/json", headers=dict(headers or {})
    )


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI of problem answers with these statuses."""
    schema = {"schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}}
    return {status: {"description": "Problem", "content": {MEDIA_TYPE: schema}} for status in statuses}
