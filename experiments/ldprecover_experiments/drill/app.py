"""The drill as an ASGI application: its calls under /drill/, and a proxy to the server."""

import json
import mimetypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ldprecover import LDPRecoverError
from ldprecover_client import ClientError
from ldprecover_experiments.drill.form import FormChoices
from ldprecover_experiments.drill.guard import PATH, Guard
from ldprecover_experiments.drill.jobs import BusyError, Job, Jobs
from ldprecover_experiments.drill.proxy import Proxy
from ldprecover_experiments.drill.responses import HEADERS, json_answer, problem

HEAD = (
    f'<link rel="stylesheet" href="{PATH}static/drill.css"><script type="module" '
    f'src="{PATH}static/drill.js"></script>'
)
"""Added to the head of the server's page, which otherwise knows nothing of the drill."""

_MAX_FORM_BYTES = 1 << 16
_STATIC = Path(__file__).parent / "static"


class DrillApplication:
    """A drill in front of the server at `url` with its admin key; `token` opens its own calls."""

    def __init__(self, url: str, key: str, token: str, choices: FormChoices) -> None:
        self._url = url
        self._key = key
        self._choices = choices
        self.jobs = Jobs()
        self._proxy = Proxy(url, HEAD)
        self._files = {path.name: path.read_bytes() for path in _STATIC.iterdir() if path.is_file()}
        routes = [
            Route(f"{PATH}options", self._options),
            Route(f"{PATH}run", self._run, methods=["GET"]),
            Route(f"{PATH}run", self._begin, methods=["POST"]),
            Route(f"{PATH}run", self._cancel, methods=["DELETE"]),
            Route(f"{PATH}static/{{name}}", self._file),
        ]
        self._own = Starlette(
            routes=routes, exception_handlers={404: _not_found, 405: _not_allowed}
        )
        self._own.router.redirect_slashes = False
        self._lifespan = Starlette(lifespan=self._life)
        self._guard = Guard(self._dispatch, token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = self._lifespan if scope["type"] == "lifespan" else self._guard
        await app(scope, receive, send)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = self._own if scope["path"].startswith(PATH) else self._proxy
        await app(scope, receive, send)

    @asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await to_thread.run_sync(self.jobs.end)
            await self._proxy.close()

    async def _options(self, request: Request) -> Response:
        return json_answer(await to_thread.run_sync(self._choices.as_json))

    async def _run(self, request: Request) -> Response:
        return self._shown(HTTPStatus.OK)

    async def _begin(self, request: Request) -> Response:
        if (
            request.headers.get("content-type", "").partition(";")[0].strip().lower()
            != "application/json"
        ):
            return problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The form must be application/json.")
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > _MAX_FORM_BYTES:
                return problem(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"A form has at most {_MAX_FORM_BYTES:,} bytes.",
                )
        try:
            form = json.loads(body)
        except (ValueError, RecursionError):
            return problem(HTTPStatus.BAD_REQUEST, "The body must be JSON.")
        try:
            await to_thread.run_sync(self._start, form)
        except (LDPRecoverError, ClientError) as error:
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, " ".join(str(error).split()))
        except BusyError:
            return problem(
                HTTPStatus.CONFLICT, "A drill is under way: wait until it is over, or cancel it."
            )
        return self._shown(HTTPStatus.ACCEPTED)

    def _start(self, form: Any) -> None:
        if isinstance(form, dict) and form.get("kind") == "map":
            heat_map = self._choices.map(form)
            self.jobs.begin(Job("map", heat_map.settings), heat_map.play)
            return
        drill_round = self._choices.round(form)
        self.jobs.begin(
            Job("round", drill_round.settings),
            lambda run: drill_round.on(self._url, self._key, run),
        )

    async def _cancel(self, request: Request) -> Response:
        if self.jobs.last is not None:
            self.jobs.last.cancel()
        return self._shown(HTTPStatus.OK)

    def _shown(self, status: HTTPStatus) -> Response:
        last = self.jobs.last
        return json_answer({"state": "idle"} if last is None else last.as_json(), status)

    async def _file(self, request: Request) -> Response:
        body = self._files.get(name := request.path_params["name"])
        if body is None:
            return problem(HTTPStatus.NOT_FOUND, "There is no such file.")
        return Response(body, headers=HEADERS, media_type=mimetypes.guess_type(name)[0])


async def _not_found(request: Request, error: Exception) -> Response:
    return problem(HTTPStatus.NOT_FOUND, f"The drill has nothing at {request.url.path[:200]}.")


async def _not_allowed(request: Request, error: Exception) -> Response:
    return problem(HTTPStatus.METHOD_NOT_ALLOWED, f"The drill takes no {request.method} there.")
