"""The page at the root, and its files."""

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import Response

from ldprecover_interface import paths
from ldprecover_server import page
from ldprecover_server.http.responses import accepts_gzip, not_modified

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
    file, is_zipped = _FILES[name], accepts_gzip(request)
    headers = {**page.HEADERS, "ETag": f'"{file.digest}{"-gzip" if is_zipped else ""}"'}
    if unchanged := not_modified(request, headers):
        return unchanged
    if is_zipped:
        headers["Content-Encoding"] = "gzip"
    body = file.gzip_body if is_zipped else file.body
    return Response(body, headers=headers, media_type=file.media_type)
