"""The API reference and the errors page; every asset is served from here."""

import html
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles

from ldprecover_server.http.problems import DOCS_PATH, PROBLEMS, STANDARD_PROBLEMS

__all__ = ["install"]

_STATIC = Path(__file__).parent.parent / "static"

router = APIRouter(include_in_schema=False)


@router.get("/")
async def root() -> RedirectResponse:
    return RedirectResponse("/docs")


@router.get("/docs")
async def reference() -> HTMLResponse:
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="LDPRecover API",
        swagger_js_url="/static/swagger-ui/swagger-ui-bundle.js",
        swagger_css_url="/static/swagger-ui/swagger-ui.css",
        swagger_favicon_url="/static/swagger-ui/favicon-32x32.png",
    )


@router.get(DOCS_PATH)
async def errors_page() -> HTMLResponse:
    sections = "".join(
        f'<h2 id="{p.slug}">{html.escape(p.title)}</h2><p><code>{p.slug}</code>, status {p.status}</p>'
        f"<p>{html.escape(p.help)}</p>"
        for p in (*PROBLEMS.values(), *STANDARD_PROBLEMS)
    )
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Errors - LDPRecover</title>'
        "<style>body{font:16px/1.5 system-ui;max-width:42rem;margin:2rem auto;padding:0 1rem}</style>"
        f"<h1>Errors</h1><p>Every error is an RFC 9457 problem whose type is a heading here.</p>{sections}</html>"
    )


def install(app: FastAPI) -> None:
    """Add the pages and their assets."""
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=_STATIC), name="static")
