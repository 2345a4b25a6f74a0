"""The drill as an ASGI application: its calls under /drill/, and all other paths of a server."""

import json
import mimetypes
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
from anyio import to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ldprecover import LDPRecoverError
from ldprecover_client import ClientError
from ldprecover_experiments.drill.form import FormChoices
from ldprecover_experiments.drill.guard import PATH, Guard
from ldprecover_experiments.drill.jobs import BusyError, Job, Jobs
from ldprecover_experiments.drill.proxy import TIMEOUT, Proxy, bad_gateway
from ldprecover_experiments.drill.responses import HEADERS, json_answer, problem

HEAD = (
    f'<link rel="stylesheet" href="{PATH}static/drill.css"><script type="module" '
    f'src="{PATH}static/drill.js"></script>'
)
"""Added to the head of the server's page, which otherwise knows nothing of the drill."""

_MAX_FORM_BYTES = 1 << 16
_STATIC = Path(__file__).parent / "static"


class DrillApplication:
    """A drill on a server; `token` opens the drill's own calls.

    `server` is the server's application, which is mounted with its lifespan; None stands for a
    server elsewhere, reached by a proxy. Simulated users report to `url`, with the server's admin
    `key`.
    """

    def __init__(
        self, server: ASGIApp | None, url: str, key: str, token: str, choices: FormChoices
    ) -> None:
        self._url = url
        self._key = key
        self.token = token
        self._choices = choices
        self.jobs = Jobs()
        transport = None if server is None else httpx.ASGITransport(server)
        self.client = httpx.AsyncClient(
            base_url=url, transport=transport, trust_env=False, timeout=TIMEOUT
        )
        self._files = {path.name: path.read_bytes() for path in _STATIC.iterdir() if path.is_file()}
        own_calls = [
            Route("/options", self._options),
            Route("/run", self._run, methods=["GET"]),
            Route("/run", self._begin, methods=["POST"]),
            Route("/run", self._cancel, methods=["DELETE"]),
            Route("/static/{name}", self._file),
        ]
        self._app = Starlette(
            routes=[
                Route("/", self._page),
                Mount(PATH, Router(own_calls, redirect_slashes=False)),
                Mount("", server or Proxy(self.client)),
            ],
            middleware=[Middleware(Guard, token=token)],
            exception_handlers={404: _not_found, 405: _not_allowed},
        )
        self._lifespan = server or self._app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._lifespan if scope["type"] == "lifespan" else self._app
        await app(scope, receive, send)

    async def _page(self, request: Request) -> Response:
        """Return the server's page with the drill in its head."""
        try:
            answer = await self.client.get("/")
        except httpx.HTTPError as error:
            return bad_gateway(error)
        html = answer.text.replace("<head>", f"<head>{HEAD}", 1)
        return Response(html, answer.status_code, HEADERS, answer.headers.get("content-type"))

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
            self.jobs.begin(Job("map", heat_map.settings, heat_map.steps), heat_map.play)
            return
        drill_round = self._choices.round(form)
        self.jobs.begin(
            Job("round", drill_round.settings, drill_round.steps),
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
