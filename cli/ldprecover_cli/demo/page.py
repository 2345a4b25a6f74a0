"""`demo --page`: the demo's server in this process, whose page plays attacks."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from threading import Event, Thread
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, Header
from pydantic import SecretStr

from ldprecover.plugins import GROUPS, loaded
from ldprecover_cli.demo.local_server import delayed_signals, temporary_folder
from ldprecover_cli.demo.plays import Plays, play_router
from ldprecover_cli.errors import CommandError
from ldprecover_experiments import DemoSettings
from ldprecover_server import Settings, create_app
from ldprecover_server.errors import ForbiddenError

_STOP_SECONDS = 5
_POLL_SECONDS = 0.01
_WAKE_SECONDS = 1


@dataclass(frozen=True)
class PageServer:
    """A server in a thread: its URL, its admin key, and its plays.

    `link` opens the page with the panel of the plays.
    """

    url: str
    key: str
    link: str
    plays: Plays
    ended: Event

    def wait(self) -> None:
        """Wait for an unexpected end of the server. Raises CommandError then."""
        # The system may give a signal to another thread, which does not wake this one.
        while not self.ended.wait(_WAKE_SECONDS):
            pass
        raise CommandError("the server ended")


@contextmanager
def page_server(settings: DemoSettings) -> Iterator[PageServer]:
    """Run a server on a free port of this machine alone, with a temporary SQLite database.

    The calls of the plays need the token of the link, so no other user, program or site makes them.
    At the end of the block the server stops and its files are removed.
    """
    key, token = token_urlsafe(24), token_urlsafe(24)
    with temporary_folder() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Plays(url, key, settings) as plays:
            config = uvicorn.Config(
                _application(folder, key, token, plays),
                ws="none",
                log_config=None,
                access_log=False,
                log_level="error",  # anybody can cause warnings
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
            server, ended = uvicorn.Server(config), Event()

            def serve() -> None:
                try:
                    server.run([listener])
                finally:
                    ended.set()

            thread = Thread(target=serve)
            link = f"{url}/#/rounds/demo?demo={token}"
            thread.start()
            try:
                while not server.started:
                    if ended.wait(_POLL_SECONDS):
                        raise CommandError("the server did not start")
                yield PageServer(url, key, link, plays, ended)
            finally:
                with delayed_signals():
                    plays.stop()  # its calls would delay the end of the server
                    server.should_exit = True
                    thread.join()  # never interrupted: Python 3.11 would take it for ended


def _application(folder: Path, key: str, token: str, plays: Plays) -> FastAPI:
    """Return the server's application with the router of the plays."""

    def require_token(x_demo_token: Annotated[str | None, Header()] = None) -> None:
        if x_demo_token is None or not compare_digest(x_demo_token.encode(), token.encode()):
            raise ForbiddenError("the call needs the token of the link that the demo printed")

    # Without the environment, whose settings are for another server.
    settings = Settings.model_construct(
        admin_key=SecretStr(key),
        database_url=f"sqlite:///{folder}/demo.db",
        plugins=tuple(loaded(GROUPS[:2])),
    )
    app = create_app(settings)
    app.include_router(play_router(plays), dependencies=[Depends(require_token)])
    return app
