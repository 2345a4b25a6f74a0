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

from ldprecover_client.http import server_url
from ldprecover_experiments.demo_settings import DemoSettings
from ldprecover_experiments.drill.app import DrillApplication
from ldprecover_experiments.drill.form import FormChoices
from ldprecover_experiments.errors import ExperimentError

_STOP_SECONDS = 5


class DrillServer:
    """A drill that listens, and serves during `run`. `address` contains its token."""

    def __init__(self, listener: socket.socket, application: DrillApplication, token: str) -> None:
        host, port = listener.getsockname()[:2]
        if (
            ip_address(host).is_unspecified
        ):  # it listens on all interfaces, but the guard accepts names of this machine alone
            host = "::1" if ":" in host else "127.0.0.1"
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self.address = f"{self.url}/#/drill?token={token}"
        self._listener = listener
        config = uvicorn.Config(
            application,
            ws="none",
            log_config=None,
            access_log=False,
            log_level="error",  # warnings come from anonymous requests
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or SIGHUP, and raise the signal again."""
        hung_up = []

        def end(number: int, frame: FrameType | None) -> None:
            hung_up.append(number)
            self._server.handle_exit(number, frame)

        before = signal.signal(
            signal.SIGHUP, end
        )  # the server takes the other two itself, and raises them again
        try:
            self._server.run(sockets=[self._listener])
        finally:
            signal.signal(signal.SIGHUP, before)
        if hung_up:
            signal.raise_signal(signal.SIGHUP)


@contextmanager
def drill_server(
    url: str, key: str, settings: DemoSettings, *, host: str, port: int
) -> Iterator[DrillServer]:
    """Yield a drill in front of the server at `url` with its admin key.

    `settings` are the defaults of its form; port 0 is a free port. Raises ExperimentError if it
    cannot listen, DatasetError for an unreadable data set, and ArgumentError for an invalid URL.
    """
    choices = FormChoices(settings)
    choices.as_json()  # raises now for a data set that cannot be read
    token = secrets.token_urlsafe(32)
    application = DrillApplication(server_url(url), key, token, choices)
    with _listen(host, port) as listener:
        yield DrillServer(listener, application, token)


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
