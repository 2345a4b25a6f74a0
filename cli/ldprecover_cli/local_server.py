"""A server in a thread of this process, with temporary files and a link with a token."""

import logging
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import compare_digest
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, Depends, Header
from pydantic import SecretStr

from ldprecover.plugins import GROUPS, loaded
from ldprecover_cli.errors import CommandError
from ldprecover_cli.output import note, opened_in_browser
from ldprecover_server import Settings
from ldprecover_server.errors import ForbiddenError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOP_SECONDS = 5
_POLL_SECONDS = 0.01
_WAKE_SECONDS = 1


def local_settings(key: str, database: Path) -> Settings:
    """Return the settings of a server with this admin key and SQLite file.

    It has the plugins' protocols and methods that this process has loaded. The environment is not
    read: its settings are for another server.
    """
    return Settings.model_construct(
        admin_key=SecretStr(key),
        database_url=f"sqlite:///{database}",
        plugins=tuple(loaded(GROUPS[:2])),
    )


def token_router(token: str) -> APIRouter:
    """Return a router whose calls need the token in the header X-Page-Token."""

    def require_token(x_page_token: Annotated[str | None, Header()] = None) -> None:
        if x_page_token is None or not compare_digest(x_page_token.encode(), token.encode()):
            raise ForbiddenError("the call needs the token of the printed link")

    return APIRouter(include_in_schema=False, dependencies=[Depends(require_token)])


@contextmanager
def server_thread(app: Any, *listeners: socket.socket) -> Iterator[Future[None]]:
    """Serve an application; yield the future of the server's end.

    The end of the block stops the server, also by SIGINT, SIGTERM or SIGHUP.
    """
    config = uvicorn.Config(
        app,
        http="h11",  # httptools reads the head of a request without a limit
        ws="none",
        log_config=None,
        access_log=False,
        log_level="error",  # anybody can cause warnings
        proxy_headers=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    server = uvicorn.Server(config)
    with ThreadPoolExecutor(1) as executor:
        try:
            running = executor.submit(server.run, list(listeners))
            while not server.started:
                if wait([running], _POLL_SECONDS).done:
                    raise CommandError("the server did not start")
            yield running
        finally:
            with delayed_signals():
                # It would report calls that last longer than the stop, which are cancelled.
                logging.getLogger("uvicorn.error").setLevel("CRITICAL")
                server.should_exit = True
                executor.shutdown()  # never interrupted: the thread would be taken for ended


def serve_until_interrupted(running: "Future[None]", link: str, *lines: str) -> None:
    """Print lines, open the link in a browser, on a terminal, and wait for Ctrl-C.

    Raises CommandError if the server ends by itself.
    """
    with suppress(KeyboardInterrupt), opened_in_browser(link):
        for line in lines:
            note(line)
        # The system may give a signal to another thread, which does not wake this one.
        while not wait([running], _WAKE_SECONDS).done:
            pass
        raise CommandError("the server ended")
    note("Stopped.")


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a temporary folder, which SIGINT, SIGTERM and SIGHUP do not leave behind."""
    with ExitStack() as stack:
        with delayed_signals():
            folder = stack.enter_context(TemporaryDirectory(prefix="ldprecover-"))
        try:
            yield Path(folder)
        finally:
            with delayed_signals():
                stack.close()


@contextmanager
def delayed_signals() -> Iterator[None]:
    """Delay SIGINT, SIGTERM and SIGHUP until the end of the block, then raise the first one."""
    received: list[int] = []

    def delay(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, delay) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])
