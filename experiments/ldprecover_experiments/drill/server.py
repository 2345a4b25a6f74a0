"""A drill that listens on a port of this process."""

import errno
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from types import FrameType

import uvicorn
from anyio import to_thread
from starlette.types import ASGIApp

from ldprecover_client.http import server_url
from ldprecover_experiments.demo_settings import DemoSettings
from ldprecover_experiments.drill.app import DrillApplication
from ldprecover_experiments.drill.form import FormChoices
from ldprecover_experiments.errors import ExperimentError

_STOP_SECONDS = 5


class DrillServer(uvicorn.Server):
    """A drill at `url`, which serves during `run`. `address` contains its token."""

    def __init__(self, listener: socket.socket, url: str, application: DrillApplication) -> None:
        self.url = url
        self.address = f"{url}/#/drill?token={application.token}"
        self.application = application
        self.listener = listener
        super().__init__(
            uvicorn.Config(
                application,
                ws="none",
                log_config=None,
                access_log=False,
                log_level="error",  # warnings come from anonymous requests
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
        )

    def run_until_signal(self) -> None:
        """Serve until SIGINT, SIGTERM or SIGHUP, and raise the signal again."""
        hung_up = []

        def end(number: int, frame: FrameType | None) -> None:
            hung_up.append(number)
            self.handle_exit(number, frame)

        # uvicorn takes the other two itself, and raises them again.
        before = signal.signal(signal.SIGHUP, end)
        try:
            self.run([self.listener])
        finally:
            signal.signal(signal.SIGHUP, before)
        if hung_up:
            signal.raise_signal(signal.SIGHUP)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the job first, which deletes its round, while the server still answers."""
        await to_thread.run_sync(self.application.jobs.end)
        await super().shutdown(sockets)
        await self.application.client.aclose()


@contextmanager
def drill_server(
    server: ASGIApp | str, key: str, settings: DemoSettings, *, host: str, port: int
) -> Iterator[DrillServer]:
    """Yield a drill on a server with this admin key: its application, or its URL if it runs.

    `settings` are the defaults of its form; port 0 is a free port. Raises ExperimentError if it
    cannot listen, DatasetError for an unreadable data set, and ArgumentError for an invalid URL.
    """
    choices = FormChoices(settings)
    choices.as_json()  # raises now for a data set that cannot be read
    token = secrets.token_urlsafe(32)
    with _listen(host, port) as listener:
        url = _own_url(listener)
        if isinstance(server, str):
            application = DrillApplication(None, server_url(server), key, token, choices)
        else:
            application = DrillApplication(server, url, key, token, choices)
        yield DrillServer(listener, url, application)


def _own_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if ip_address(host).is_unspecified:
        # It listens on all interfaces, but the guard accepts names of this machine alone.
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        hint = "; --port 0 takes a free one" if error.errno == errno.EADDRINUSE else ""
        reason = str(error.strerror or error).partition(" (while")[0]
        raise ExperimentError(
            f"the drill cannot listen on {host} port {port}: {reason}{hint}"
        ) from error
