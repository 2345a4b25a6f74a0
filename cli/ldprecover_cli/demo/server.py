"""The demo's server: in this process, with a temporary database; its page plays attacks."""

import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Header
from pydantic import SecretStr

from ldprecover.plugins import GROUPS, loaded
from ldprecover_cli.demo.plays import Plays
from ldprecover_cli.errors import CommandError
from ldprecover_experiments import DemoSettings
from ldprecover_server import Settings, create_app
from ldprecover_server.errors import ForbiddenError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOP_SECONDS = 5
_POLL_SECONDS = 0.01
_WAKE_SECONDS = 1


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

    def wait(self) -> None:
        """Wait for an unexpected end of the server. Raises CommandError then."""
        # The system may give a signal to another thread, which does not wake this one.
        while not wait([self.running], _WAKE_SECONDS).done:
            pass
        raise CommandError("the server ended")


@contextmanager
def demo_server(settings: DemoSettings) -> Iterator[DemoServer]:
    """Run a server on a free port of this machine alone, with a temporary SQLite database.

    It has the plugins' protocols and methods that this process has loaded. The calls of the plays
    need the token of the link, so no other user, program or site makes them. At the end of the
    block, also by SIGINT, SIGTERM or SIGHUP, the server stops and its files are removed.
    """
    key, token = token_urlsafe(24), token_urlsafe(24)
    with (
        _temporary_folder() as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
        ThreadPoolExecutor(1) as executor,
    ):
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        link = f"{url}/#/rounds/demo?demo={token}&key={key}"
        with Plays(url, key, settings) as plays:
            config = uvicorn.Config(
                _application(folder, key, token, plays),
                ws="none",
                log_config=None,
                access_log=False,
                log_level="error",  # anybody can cause warnings
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
            server = uvicorn.Server(config)
            try:
                running = executor.submit(server.run, [listener])
                while not server.started:
                    if wait([running], _POLL_SECONDS).done:
                        raise CommandError("the server did not start")
                yield DemoServer(url, key, link, plays, running)
            finally:
                with delayed_signals():
                    plays.stop()  # its calls would delay the end of the server
                    server.should_exit = True
                    executor.shutdown()  # never interrupted: the thread would be taken for ended


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Yield a temporary folder, which SIGINT, SIGTERM and SIGHUP do not leave behind."""
    with ExitStack() as stack:
        with delayed_signals():
            folder = stack.enter_context(TemporaryDirectory(prefix="ldprecover-demo-"))
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


def _application(folder: Path, key: str, token: str, plays: Plays) -> FastAPI:
    """Return the server's application with the two calls of the plays."""

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
    router = APIRouter(include_in_schema=False, dependencies=[Depends(require_token)])

    @router.post("/attack", status_code=202)
    def attack(attack: str, beta: float, targets: int) -> dict[str, str]:
        return {"round": plays.start(attack, beta, targets)}

    @router.get("/truth")
    def truth(round: str) -> dict[str, Any]:
        return plays.state(round)

    app.include_router(router)
    return app
