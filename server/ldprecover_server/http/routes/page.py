"""The page at the root, and its files."""

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import Response

from ldprecover_interface import paths
from ldprecover_server import page

router = APIRouter(include_in_schema=False)

_FILES = page.files()


@router.get(paths.ROOT)
async def root(request: Request) -> Response:
    return _answer(request, page.INDEX)


@router.get(paths.PAGE + "/{name:path}")
async def file(request: Request, name: str) -> Response:
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    found = _FILES.get(name)
    if found is None:
        raise HTTPException(404)
    headers = request.headers
    status, given, body = found.response(
        headers.get("accept-encoding", ""), headers.get("if-none-match", "")
    )
    return Response(body, status, given)
