"""Running the server: one process, one socket, its own first lines."""

import gc
import logging
import signal
import socket
import sys
from typing import NoReturn

import uvicorn

from ldprecover import kernels
from ldprecover_server.app import create_app
from ldprecover_server.connection import Connection
from ldprecover_server.errors import ConfigurationError
from ldprecover_server.service import Service
from ldprecover_server.settings import Settings
from ldprecover_server.store import Store

__all__ = ["create_key", "serve"]


def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM, then commit and answer what is under way.

    Raises ConfigurationError when the settings cannot work.
    """
    if settings.workers > 1:
        raise ConfigurationError("a SQLite database serves one process: workers must be 1")
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    listener = _listen(settings.host, settings.port)
    with listener:
        store = Store(settings.database_url)
        store.database.lock()
        store.prepare()
        kernels.warm_up()
        key = Service(store, settings).ensure_admin_key()
        url = _url(listener)
        print(f"LDPRecover serves {url} from {store.database.path}", flush=True)
        if key is not None:
            print(f"Admin key, shown this once: {key}", flush=True)
        print(f"API reference: {url}/docs", flush=True)
        config = uvicorn.Config(
            create_app(settings, store),
            http=Connection,
            access_log=False,  # it prints the addresses of those who report
            log_level="warning",
            server_header=False,
            proxy_headers=False,  # nobody's address is looked at
            timeout_graceful_shutdown=settings.shutdown_seconds,
        )
        # What start-up made lives as long as the process: full collections need not walk it, which would
        # stop every request for tens of milliseconds each time.
        gc.collect()
        gc.freeze()
        # uvicorn answers what is under way, then raises the signal that stopped it again: an end like any other.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _end)
        uvicorn.Server(config).run(sockets=[listener])


def create_key(settings: Settings) -> str:
    """Make another admin key on the database and return it, this once."""
    store = Store(settings.database_url)
    try:
        store.prepare()
        return Service(store, settings).create_admin_key()
    finally:
        store.close()


def _end(number: int, frame: object) -> NoReturn:
    sys.exit(0)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host} port {port}: {error.strerror}; try --port 0") from error


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
