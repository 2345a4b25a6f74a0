"""The API reference and the errors page; every asset is served from here."""

import base64
import functools
import hashlib
import html
import mimetypes
import re
from pathlib import Path

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ldprecover_interface import paths
from ldprecover_server.errors import service_errors

_STATIC = Path(__file__).parent.parent / "static"
_SWAGGER = f"{paths.STATIC[1:]}/swagger-ui"

_PIECE = 1 << 15

router = APIRouter(include_in_schema=False)

_DOCS = get_swagger_ui_html(
    openapi_url=paths.OPENAPI[1:],  # relative: a proxy may serve all of it below a path
    title="LDPRecover API",
    swagger_js_url=f"{_SWAGGER}/swagger-ui-bundle.js",
    swagger_css_url=f"{_SWAGGER}/swagger-ui.css",
    swagger_favicon_url=f"{_SWAGGER}/favicon-32x32.png",
).body


def _page(body: bytes) -> HTMLResponse:
    """Return a page that runs the server's files and its own scripts, and no other."""
    hashes = "".join(
        f" 'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
        for script in re.findall(rb"<script>(.*?)</script>", body, re.DOTALL)
    )
    policy = (
        f"default-src 'none'; script-src 'self'{hashes}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return HTMLResponse(body, headers={"Content-Security-Policy": policy})


class _Asset(Response):
    """A file in memory, sent in pieces of 32 KiB.

    Reading it from the disk would keep a file and a thread for as long as the client reads.
    """

    def __init__(self, path: Path) -> None:
        body = path.read_bytes()
        self._pieces = [body[start : start + _PIECE] for start in range(0, len(body), _PIECE)]
        self.etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        super().__init__(
            None, headers={"Content-Length": str(len(body)), "ETag": self.etag}, media_type=kind
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = list(self.raw_headers)
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


_ASSETS = {
    path.relative_to(_STATIC).as_posix(): _Asset(path)
    for path in _STATIC.rglob("*")
    if path.is_file()
}


@router.get(paths.DOCS)
async def reference() -> HTMLResponse:
    """Return the reference of the API."""
    return _page(bytes(_DOCS))


@router.get(paths.ERRORS)
async def errors_page() -> HTMLResponse:
    """Return the page of all problem types."""
    sections = "".join(
        f'<h2 id="{error.type.slug}">{html.escape(error.type.title)}</h2>'
        f"<p><code>{error.type.slug}</code>, status "
        f"{error.type.status}</p><p>{html.escape(error.help())}</p>"
        for error in service_errors()
    )
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Errors - LDPRecover</title>'
        "<style>body{font:16px/1.5 system-ui;max-width:42rem;margin:2rem auto;padding:0 "
        "1rem}</style>"
        "<h1>Errors</h1><p>Every error is an RFC 9457 problem whose type is a heading "
        f"here.</p>{sections}</html>"
    )
    return _page(page.encode())


@router.get(paths.STATIC + "/{name:path}")
async def asset(request: Request, name: str) -> Response:
    """Return a file of the reference. Raises HTTPException 404 for another name."""
    if name not in _ASSETS:
        raise HTTPException(404)
    file = _ASSETS[name]
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"ETag": file.etag})
    return file


def install(app: FastAPI) -> None:
    """Add the pages and their assets."""
    app.include_router(router)

    @functools.cache  # writing it takes milliseconds
    def document() -> Response:
        return JSONResponse(app.openapi())

    @app.get(paths.OPENAPI, include_in_schema=False)
    async def openapi() -> Response:
        return document()
