"""Runs the server: its socket, its processes, and its first lines of output."""

from __future__ import annotations

import contextlib
import errno
import functools
import gc
import logging
import multiprocessing
import os
import platform
import resource
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.supervisors import Multiprocess

from ldprecover import PluginError, counting, plugins
from ldprecover_server import logs
from ldprecover_server.access.access import Access
from ldprecover_server.errors import ConfigurationError
from ldprecover_server.http.protocol import HttpProtocol
from ldprecover_server.metrics import shared_by_processes
from ldprecover_server.secrets import hidden_variables, without_secrets
from ldprecover_server.settings import Settings
from ldprecover_server.storage import Storage

if TYPE_CHECKING:  # workers of analyses import this module, and need no FastAPI
    from fastapi import FastAPI

_log = logging.getLogger(__name__)

_HEALTHCHECK_SECONDS = 30
"""Seconds without an answer after which uvicorn replaces a server process. One that starts does not
answer, and on a busy machine that takes longer than uvicorn's default of 5 seconds."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_CLOSE_SECONDS = 5
"""Seconds to close the storage after the requests in progress, before the process ends anyway."""

_TERMINATE_SECONDS = 1.0

_KEEP_ALIVE_SECONDS = 60
"""Seconds after which an idle connection is closed: longer than in the proxy, which must close it
first."""

_OPEN_FILES = 65_536
"""Open files that the process asks for: each connection is one."""


_BACKLOG = 4096
"""Connections that wait to be accepted: as many as Linux allows unless told otherwise."""

_UNSENT_BYTES = 1 << 16
"""Bytes that the kernel buffers per connection beyond those in transit."""


def serve(settings: Settings, open_page: Callable[[str], object] | None = None) -> None:
    """Serve until SIGINT or SIGTERM, finish the requests in progress, and raise the signal again.

    The caller's handlers of the two decide how the process ends; by default SIGTERM kills it, and
    SIGINT raises KeyboardInterrupt. They also apply until the server runs.

    `open_page` is called with a link to the page as soon as the port is open. The link's fragment,
    which browsers do not send, has an admin key. The key is random, in the memory of this process
    alone, and ends with it.

    Raises ConfigurationError for settings that cannot work.
    """
    _load_plugins(settings)
    raise_file_limit()
    is_single = settings.workers == 1
    if open_page and not settings.is_local:
        raise ConfigurationError(
            f"--open is for a loopback address, such as 127.0.0.1, not {settings.host}: "
            "its link has an admin key"
        )
    if open_page and not is_single:
        raise ConfigurationError(
            f"--open needs --workers 1, not {settings.workers}: its key is in one process"
        )
    link_key = f"ldp-{secrets.token_urlsafe(32)}" if open_page else None
    with (
        listen(settings.host, settings.port) as listener,
        contextlib.closing(_storage(settings)) as storage,
    ):
        if not is_single and storage.database.dialect == "sqlite":
            raise ConfigurationError("a SQLite file serves one process; more workers need Postgres")
        counting.warm_up()  # compiled once, for all server processes
        # Claimed until the end, so that no other server opens it.
        storage.prepare_when_available(
            functools.partial(print, flush=True), threading.Event(), claim=is_single
        )
        key = Access(storage, settings.secret_key).ensure_admin_key()
        url = _url(listener)
        print(f"LDPRecover serves {url} from {storage.database.name}", flush=True)
        if key is not None:
            print(f"Admin key, shown this once: {key}", flush=True)
        if not settings.is_local:
            print(
                "Clients of other machines need a proxy in front, such as that of deploy/nginx",
                flush=True,
            )
        print(f"API reference: {url}/docs", flush=True)
        if open_page:
            open_page(f"{url}/#/rounds?key={link_key}")
        _warn_of_slow_cookies()
        config = uvicorn.Config(
            functools.partial(_make_app, settings, storage, link_key),
            factory=True,
            workers=settings.workers,
            http=HttpProtocol,
            ws="none",
            log_config=None,  # its loggers use the handler of `logs`
            access_log=False,  # it would log the addresses of reporters
            log_level="warning",
            server_header=False,
            backlog=_BACKLOG,
            proxy_headers=False,  # addresses are not used
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=settings.shutdown_seconds,
            timeout_worker_healthcheck=_HEALTHCHECK_SECONDS,
        )
        if is_single:
            _Server(config).run(sockets=[listener])
        else:
            storage.close()
            logs.configure(settings.log_format)
            with hidden_variables() as hidden:
                # Pickled: the processes receive it through a pipe.
                config.app = functools.partial(_make_worker_app, settings, hidden)
                _Supervisor(config, sockets=[listener]).run()


def _warn_of_slow_cookies() -> None:
    """Warn if this Python parses cookies in quadratic time (CVE-2024-7592)."""
    if sys.version_info < (3, 11, 10) or (3, 12) <= sys.version_info < (3, 12, 6):
        print(
            f"Warning: Python {platform.python_version()} parses cookies in quadratic time "
            "(CVE-2024-7592). A proxy should drop them; update to 3.11.10, 3.12.6 or 3.13 anyway",
            flush=True,
        )


def raise_file_limit() -> None:
    """Raise the soft limit on open files as far as necessary and allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        # macOS rejects a soft limit above OPEN_MAX although its hard limit is infinite.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def create_app(settings: Settings | None = None, *, practice: bool = False) -> FastAPI:
    """Return the application with these settings, by default the environment's.

        uvicorn --factory ldprecover_server:create_app

    With `app = create_app()` in a file, `fastapi run FILE` serves it too. An application that
    mounts it must run its lifespan, which claims the database, upgrades a SQLite file, runs the
    service, and closes the database. `ldprecover serve` adds the first admin key, several
    processes, the log format, limits on open files and unsent bytes, and a shutdown in time. Here
    the admin key is that of the settings, or one of `ldprecover admin key create`. With `practice`
    it opens practice rounds too, which may be answered over plain http. uvicorn's access log is
    turned off.

    Raises ConfigurationError for settings that cannot work; the lifespan does for a database that
    cannot be served.
    """
    settings = Settings() if settings is None else settings
    logging.getLogger("uvicorn.access").disabled = True  # it has the addresses of reporters
    return _compose(settings, _storage(settings), practice=practice)


def _make_worker_app(settings: Settings, variables: dict[str, str]) -> FastAPI:
    """Return the application of one of several server processes."""
    os.environ.update(variables)  # libpq reads PGPASSWORD; /proc shows the environment of the start
    if (supervisor := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_exit_with, args=(supervisor,), daemon=True).start()
    storage = _storage(settings)
    storage.is_checked = True  # by the supervisor; a lock on a table would delay the process
    return _make_app(settings, storage)


def _make_app(settings: Settings, storage: Storage, link_key: str | None = None) -> FastAPI:
    """Return the application of a process that serves nothing else."""
    logs.configure(settings.log_format)
    app = _compose(settings, storage, link_key)
    # Objects of the start live as long as the process. Without this, each full collection would
    # walk them and stop all requests for tens of milliseconds.
    gc.collect()
    gc.freeze()
    return app


def _compose(
    settings: Settings, storage: Storage, link_key: str | None = None, practice: bool = False
) -> FastAPI:
    _load_plugins(settings)
    counting.warm_up()
    # After plugins are loaded: the routes are made from the registered protocols.
    from ldprecover_server.app import make_app

    return make_app(settings, storage, link_key, practice)


def _storage(settings: Settings) -> Storage:
    return Storage(settings.database_url, statement_seconds=settings.request_seconds)


def _load_plugins(settings: Settings) -> None:
    try:
        plugins.load(settings.plugins)
    except PluginError as error:
        raise ConfigurationError(f"plugins: {error}") from error


class _Server(uvicorn.Server):
    """uvicorn's server, which prints that it stops, and ends in time."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            _print_stopping()
            signal.signal(signal.SIGALRM, functools.partial(_end, sig))
            signal.alarm(_stop_seconds(self.config))
        super().handle_exit(sig, frame)


class _Supervisor(Multiprocess):
    """uvicorn's supervisor, which waits neither for a process that starts nor for one that hangs.

    uvicorn's own looks at a signal only after it has pinged each process. Only a signal ends this
    one, or a process whose settings cannot work: one without a database waits for it.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        self._handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        super().__init__(config, sockets)

    def run(self) -> None:
        captured: list[int] = []

        def interrupt(number: int, frame: FrameType | None) -> None:
            for ignored in _SIGNALS:
                signal.signal(ignored, signal.SIG_IGN)
            captured.append(number)
            raise KeyboardInterrupt

        for number in _SIGNALS:
            signal.signal(number, interrupt)
        with contextlib.suppress(KeyboardInterrupt), shared_by_processes():
            try:
                super().run()
            except KeyboardInterrupt:
                self.terminate_all()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for each in captured:
            signal.raise_signal(each)
        if not captured:
            raise ConfigurationError("a server process cannot start; the log has its error")

    def keep_subprocess_alive(self) -> None:
        """Replace processes that have ended; try again later if the system starts none."""
        for process in self.processes:
            process.child_conn.close()  # a ping of an ended process would not end while it is open
        try:
            super().keep_subprocess_alive()
        except OSError as error:
            _log.warning("no server process can be started: %s", error)

    def terminate_all(self) -> None:
        """Stop listening, and end every process within the time to stop."""
        _print_stopping()
        # The server processes close their copies; with this one the port rejects new clients.
        for listener in self.sockets:
            listener.close()
        ends_at = time.monotonic() + _stop_seconds(self.config)
        while (processes := multiprocessing.active_children()) and time.monotonic() < ends_at:
            for process in processes:
                process.terminate()  # again and again: one that starts may miss the first
            processes[0].join(_TERMINATE_SECONDS)
        for process in processes:
            process.kill()
            process.join()


def _stop_seconds(config: uvicorn.Config) -> int:
    return (config.timeout_graceful_shutdown or 0) + _CLOSE_SECONDS


def _end(stopped_by: int, number: int, frame: FrameType | None) -> None:
    """End the process although a thread or a callback of the event loop still runs.

    Nothing that was answered is lost.
    """
    signal.signal(stopped_by, signal.SIG_DFL)
    signal.raise_signal(stopped_by)
    os._exit(128 + stopped_by)  # process 1 of a container, which its own signals do not end


def _exit_with(supervisor: BaseProcess) -> None:
    """Stop this process when its supervisor has died, which alone could have stopped it."""
    supervisor.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _print_stopping() -> None:
    """Write without a buffer: the signal may have interrupted a `print`."""
    with contextlib.suppress(OSError):
        os.write(1, b"Stopping: requests in progress finish first.\n")


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens with the server's limits. Raises ConfigurationError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    takes_both = host == "::" and socket.has_dualstack_ipv6()
    try:
        listener = socket.create_server(
            (host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=takes_both
        )
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while")[0]  # asyncio adds the address
        if error.errno == errno.EADDRINUSE:
            hint = "try --port 0, which takes a free one, or use the running server"
        elif error.errno == errno.EACCES:  # a port below 1024
            hint = "try --port 0, which takes a free one"
        else:
            hint = "--host names an address of this machine, or 0.0.0.0 for all of them"
        raise ConfigurationError(
            f"cannot listen on {without_secrets(host)} port {port}: {reason}; {hint}"
        ) from None

    # Connections inherit the option. Without it, the kernel would buffer megabytes of each unread
    # response, and writing them would keep the server busy for seconds.
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
