"""The API reference and the errors page; every asset is served from here."""

import html
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles

from ldprecover_server.errors import every_refusal
from ldprecover_server.http import paths

__all__ = ["install"]

_STATIC = Path(__file__).parent.parent / "static"
_SWAGGER = f"{paths.STATIC}/swagger-ui"

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


def install(app: FastAPI) -> None:
    """Add the pages and their assets."""
    app.include_router(router)
    app.mount(paths.STATIC, StaticFiles(directory=_STATIC), name="static")
