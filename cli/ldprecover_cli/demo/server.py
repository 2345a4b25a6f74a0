"""The demo's server: in this process, with a temporary database; its page plays attacks."""

import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Any

from fastapi import FastAPI

from ldprecover_cli.demo.plays import Plays
from ldprecover_cli.local_server import (
    local_settings,
    server_thread,
    temporary_folder,
    token_router,
)
from ldprecover_experiments import DemoSettings
from ldprecover_server import Settings, create_app


@dataclass(frozen=True)
class DemoServer:
    """A server in a thread: its URL, its admin key, and its plays.

    `link` opens the page with the key and the panel of the plays.
    """

    url: str
    key: str
    link: str
    plays: Plays
    running: Future[None]


@contextmanager
def demo_server(settings: DemoSettings) -> Iterator[DemoServer]:
    """Run a server on a free port of this machine alone, with a temporary SQLite database.

    The calls of the plays need the token of the link, so no other user, program or site makes them.
    At the end of the block, also by SIGINT, SIGTERM or SIGHUP, the server stops and its files are
    removed.
    """
    key, token = token_urlsafe(24), token_urlsafe(24)
    with (
        temporary_folder() as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        link = f"{url}/#/rounds/demo?demo={token}&key={key}"
        with (
            Plays(url, key, settings) as plays,
            server_thread(
                _application(local_settings(key, folder / "demo.db"), token, plays), listener
            ) as running,
        ):
            try:
                yield DemoServer(url, key, link, plays, running)
            finally:
                plays.stop()  # its calls would delay the end of the server


def _application(settings: Settings, token: str, plays: Plays) -> FastAPI:
    """Return the server's application with the two calls of the plays."""
    app = create_app(settings)
    router = token_router(token)

    @router.post("/attack", status_code=202)
    def attack(attack: str, beta: float, targets: int) -> dict[str, str]:
        return {"round": plays.start(attack, beta, targets)}

    @router.get("/truth")
    def truth(round: str) -> dict[str, Any]:
        return plays.state(round)

    app.include_router(router)
    return app
