"""The page at the root, and its files."""

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import Response

from ldprecover_interface import paths
from ldprecover_server import page

router = APIRouter(include_in_schema=False)

_FILES = page.files()


@router.get(paths.ROOT)
async def root(request: Request) -> Response:
    """Return the page."""
    return _respond(request, page.INDEX)


@router.get(paths.PAGE + "/{name:path}")
async def file(request: Request, name: str) -> Response:
    """Return a file of the page."""
    return _respond(request, name)


def _respond(request: Request, name: str) -> Response:
    if name not in _FILES:
        raise HTTPException(404)
    accept_encoding = request.headers.get("accept-encoding", "")
    if_none_match = request.headers.get("if-none-match", "")
    status, headers, body = _FILES[name].response(accept_encoding, if_none_match)
    return Response(body, status, headers)
