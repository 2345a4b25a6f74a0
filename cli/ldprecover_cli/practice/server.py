"""The practice server: a thread, a temporary folder, and a link with a token."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Header
from pydantic import SecretStr

from ldprecover.plugins import GROUPS, loaded
from ldprecover_cli.errors import CommandError
from ldprecover_cli.output import note, opened_in_browser
from ldprecover_cli.practice.connections import Connection
from ldprecover_cli.practice.network import LOOPBACK, Network
from ldprecover_cli.signals import delayed_signals
from ldprecover_server import Settings, create_app
from ldprecover_server.errors import ForbiddenError
from ldprecover_server.serve import listen, raise_file_limit

_REQUEST_SECONDS = 10
_STOP_SECONDS = 5
_POLL_SECONDS = 0.01
_WAKE_SECONDS = 1


@dataclass(frozen=True)
class PracticeServer:
    """A server in a thread: its application, its URL on this machine, and its admin key.

    `public` is its URL on the network, if it has one. `link` opens the page on this machine with
    the key and with the token of the calls that `add_call` adds.
    """

    app: FastAPI
    url: str
    public: str
    key: str
    _: KW_ONLY
    token: str
    link: str
    running: Future[None]

    def add_call(self, path: str, function: Callable[..., Any], method: str = "GET") -> None:
        """Add a call that needs the token in the header X-Page-Token.

        So no other user, program or site makes it.
        """
        needed = [Depends(self._require_token)]
        self.app.add_api_route(
            path, function, methods=[method], dependencies=needed, include_in_schema=False
        )

    def _require_token(self, x_page_token: Annotated[str, Header()] = "") -> None:
        if not compare_digest(x_page_token.encode(), self.token.encode()):
            raise ForbiddenError("the call needs the token of the printed link")

    def wait(self, *lines: str) -> None:
        """Print lines, open the link in a browser, on a terminal, and wait for Ctrl-C.

        Raises CommandError if the server ends by itself.
        """
        with suppress(KeyboardInterrupt), opened_in_browser(self.link):
            for line in lines:
                note(line)
            # The system may give a signal to another thread, which does not wake this one.
            while not wait([self.running], _WAKE_SECONDS).done:
                pass
            raise CommandError("the server ended")
        note("Stopped.")


@contextmanager
def practice_server(
    name: str,
    *,
    practice: bool = False,
    database: Path | None = None,
    address: str | None = None,
    port: int = 0,
    request_seconds: int = _REQUEST_SECONDS,
) -> Iterator[PracticeServer]:
    """Serve on a port of this machine, 0 for a free one, and of its address on a network, if any.

    Its page shows the round `name`. With `practice` it opens practice rounds too. Without a
    database it has a temporary one. A request must arrive within `request_seconds`. At the end of
    the block, also by SIGINT, SIGTERM or SIGHUP, the server stops and its temporary files are
    removed.

    Raises ConfigurationError if the port is not free.
    """
    key, token = token_urlsafe(24), token_urlsafe(24)
    stack = ExitStack()
    try:
        with delayed_signals():
            folder = stack.enter_context(TemporaryDirectory(prefix="ldprecover-"))
        raise_file_limit()
        listeners = [stack.enter_context(listen(LOOPBACK, port))]
        port = listeners[0].getsockname()[1]
        if address is not None:
            listeners.append(stack.enter_context(listen(address, port)))
        # Without the environment, whose settings are for another server.
        settings = Settings.model_construct(
            admin_key=SecretStr(key),
            database_url=f"sqlite:///{database or Path(folder) / 'rounds.db'}",
            plugins=tuple(loaded(GROUPS[:2])),  # those that this process has loaded
        )
        app = create_app(settings, practice=practice)
        config = uvicorn.Config(
            Network(app),
            http=Connection,
            ws="none",
            log_config=None,
            access_log=False,
            log_level="error",  # anybody can cause warnings
            proxy_headers=False,
            timeout_keep_alive=request_seconds,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        server = uvicorn.Server(config)
        executor = stack.enter_context(ThreadPoolExecutor(1))
        stack.callback(setattr, server, "should_exit", True)
        running = executor.submit(server.run, listeners)
        while not server.started:
            if wait([running], _POLL_SECONDS).done:
                raise CommandError("the server did not start")
        url = f"http://{LOOPBACK}:{port}"
        public = f"http://{address or LOOPBACK}:{port}"
        link = f"{url}/#/rounds/{name}?{name}={token}&key={key}"
        yield PracticeServer(app, url, public, key, token=token, link=link, running=running)
    finally:
        # It would report calls that last longer than the stop, which are cancelled.
        logging.getLogger("uvicorn.error").setLevel("CRITICAL")
        with delayed_signals():
            stack.close()
