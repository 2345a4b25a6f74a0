"""The API reference and the errors page; every asset is served from here, out of memory."""

import hashlib
import html
import mimetypes
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ldprecover_server.errors import NotFoundError, every_refusal
from ldprecover_server.http import paths

__all__ = ["install"]

_STATIC = Path(__file__).parent.parent / "static"
_SWAGGER = f"{paths.STATIC}/swagger-ui"
# A file that is open for each client that reads slowly would use up what the process may have open.
_ASSETS = {f"{path.relative_to(_STATIC)}": path.read_bytes() for path in _STATIC.rglob("*") if path.is_file()}

router = APIRouter(include_in_schema=False)


@router.get(paths.ROOT)
async def root() -> RedirectResponse:
    return RedirectResponse(paths.DOCS)


@router.get(paths.DOCS)
async def reference() -> HTMLResponse:
    return get_swagger_ui_html(
        openapi_url=paths.OPENAPI,
        title="LDPRecover API",
        swagger_js_url=f"{_SWAGGER}/swagger-ui-bundle.js",
        swagger_css_url=f"{_SWAGGER}/swagger-ui.css",
        swagger_favicon_url=f"{_SWAGGER}/favicon-32x32.png",
    )


@router.get(paths.ERRORS)
async def errors_page() -> HTMLResponse:
    sections = "".join(
        f'<h2 id="{refusal.slug}">{html.escape(refusal.title)}</h2>'
        f"<p><code>{refusal.slug}</code>, status {refusal.status}</p><p>{html.escape(refusal.help)}</p>"
        for refusal in every_refusal()
    )
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Errors - LDPRecover</title>'
        "<style>body{font:16px/1.5 system-ui;max-width:42rem;margin:2rem auto;padding:0 1rem}</style>"
        f"<h1>Errors</h1><p>Every error is an RFC 9457 problem whose type is a heading here.</p>{sections}</html>"
    )


@router.get(paths.STATIC + "/{path:path}")
async def asset(request: Request, path: str) -> Response:
    found = _ASSETS.get(path)
    if found is None:
        raise NotFoundError(f"GET {paths.STATIC}/{path[:200]}")
    headers = {"ETag": f'"{hashlib.sha256(found).hexdigest()[:32]}"', "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(found, media_type=mimetypes.guess_type(path)[0], headers=headers)


def install(app: FastAPI) -> None:
    """Add the pages and their assets."""
    app.include_router(router)
