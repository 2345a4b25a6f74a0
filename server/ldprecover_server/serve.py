"""Running the server: one process, one socket, its own first lines."""

import contextlib
import ctypes
import errno
import functools
import gc
import multiprocessing
import os
import signal
import socket
import threading
from multiprocessing.process import BaseProcess
from types import FrameType

import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from ldprecover import PluginError, counting, plugins
from ldprecover_server import logs
from ldprecover_server.access.access import Access
from ldprecover_server.errors import ConfigurationError
from ldprecover_server.file_limits import max_connections
from ldprecover_server.http.edge import EdgeProtocol
from ldprecover_server.metrics import shared_by_processes
from ldprecover_server.settings import Settings
from ldprecover_server.storage import Store

# A worker that gives no sign of life for so long is killed and replaced. It gives none while it
# starts, and on a busy machine that takes longer than uvicorn's 5 seconds: none would ever come up.
_WORKER_SECONDS = 30

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of <malloc.h>

# New connections that one turn of the event loop takes. uvloop takes one of each listening socket:
# behind a thousand strangers who come again and again, whoever comes next would wait for a thousand
# turns.
_ACCEPTED = 16
_UNSENT_BYTES = 1 << 16  # of a connection that the system takes beside what is on its way


def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM, then commit and answer what is under way.

    Raises ConfigurationError when the settings cannot work, OSError where the system allows too few
    open files.
    """
    try:
        plugins.load(settings.plugins)
    except PluginError as error:
        raise ConfigurationError(f"plugins: {error}") from error
    max_connections(settings.connections, settings.analyses)
    with _listen(settings.host, settings.port) as listener, contextlib.ExitStack() as held:
        store = Store(settings.database_url)
        if settings.workers > 1 and store.database.dialect == "sqlite":
            raise ConfigurationError("a SQLite file serves one process; more workers need Postgres")
        # From here to the end: another server that starts meanwhile finds the place taken.
        served = (
            held.enter_context(contextlib.closing(_claimed(settings)))
            if settings.workers == 1
            else None
        )
        with contextlib.closing(store):
            store.prepare()
            key = Access(store, settings.secret_key).ensure_admin_key()
        counting.warm_up()  # compiled here once, for every worker
        url = _url(listener)
        print(f"LDPRecover serves {url} from {store.database.name}", flush=True)
        if key is not None:
            print(f"Admin key, shown this once: {key}", flush=True)
        print(f"API reference: {url}/docs", flush=True)
        # Workers are processes of their own and find their settings where this one did, or here.
        os.environ.update(settings.environment())
        config = uvicorn.Config(
            "ldprecover_server.serve:worker"
            if served is None
            else functools.partial(_application, settings, served),
            factory=True,
            workers=settings.workers,
            http=EdgeProtocol,
            ws="none",
            log_config=None,  # its loggers write where ours do
            access_log=False,  # it prints the addresses of those who report
            log_level="warning",
            server_header=False,
            proxy_headers=False,  # nobody's address is looked at
            timeout_graceful_shutdown=settings.shutdown_seconds,
            timeout_worker_healthcheck=_WORKER_SECONDS,
        )
        if settings.workers > 1:
            logs.configure(settings.log_format)
            with shared_by_processes():
                _Supervisor(config, sockets=[listener]).run()
            return
        server = _Server(config)
        # From the first line on: uvicorn takes signals only once its loop runs, and raises them
        # again at the end.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, server.handle_exit)
        server.run(sockets=[listener, *(listener.dup() for _ in range(_ACCEPTED - 1))])


def _give_back_memory() -> None:
    """Have glibc give blocks of a megabyte and more back to the system when they are freed.

    It would keep as many as it ever had to give at one time, for each thread: large answers and
    bodies would seem to be held long after they are gone. Other C libraries have no such call, and
    no such habit.
    """
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 1 << 20)
        mallopt(_M_TRIM_THRESHOLD, 16 << 20)
        mallopt(_M_ARENA_MAX, 2)


def worker() -> ASGIApp:
    """Return the application of one server process, over a store of its own."""
    settings = Settings()
    plugins.load(settings.plugins)
    if (supervisor := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_follow, args=(supervisor,), daemon=True).start()
    return _application(settings, _claimed(settings))


def _claimed(settings: Settings) -> Store:
    """Return a store that has its place among those that serve the database."""
    store = Store(settings.database_url, answer_seconds=settings.request_seconds)
    store.database.claim()
    return store


def _application(settings: Settings, store: Store) -> ASGIApp:
    """Return the application over a store that has its place; its lifespan closes the store."""
    # Not before plugins are loaded: what the application takes and answers is made from the
    # protocols there are.
    from ldprecover_server.app import Application

    _give_back_memory()
    logs.configure(settings.log_format)
    store.prepare()
    counting.warm_up()
    app = Application(settings, store)
    # What start-up made lives as long as the process: full collections need not walk it, which
    # would stop every request for tens of milliseconds each time.
    gc.collect()
    gc.freeze()
    return app


class _Server(uvicorn.Server):
    """The server of one process, which says that it ends."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            _say_stopping()
        super().handle_exit(sig, frame)


class _Supervisor(Multiprocess):
    """Starts the workers, and others in the place of those that die."""

    def handle_int(self) -> None:
        _say_stopping()
        super().handle_int()

    def handle_term(self) -> None:
        _say_stopping()
        super().handle_term()

    def terminate_all(self) -> None:
        # The workers close their ends: with this one nobody listens any more, and new clients are
        # turned away.
        for listener in self.sockets:
            listener.close()
        super().terminate_all()


def _follow(supervisor: BaseProcess) -> None:
    """End this worker in order when its supervisor is gone, who alone could have ended it."""
    supervisor.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _say_stopping() -> None:
    """Say it past every buffer: a signal's handler may have interrupted somebody who prints."""
    with contextlib.suppress(OSError):
        os.write(1, b"Stopping: what is under way is answered first.\n")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while")[0]  # the address is named once
        there = (
            ", or use the server that is there already" if error.errno == errno.EADDRINUSE else ""
        )
        raise ConfigurationError(
            f"cannot listen on {host} port {port}: {reason}; try --port 0, which takes a free "
            f"one{there}"
        ) from error

    # Connections inherit it. Else writing megabytes of each answer that nobody reads into the
    # system's memory keeps the server busy for seconds.
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
