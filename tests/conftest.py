"""Real server processes for every test that speaks HTTP."""

import contextlib
import gc
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Generator, Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import settings
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from tests.forked import Process, start_python
from tests.memory import memory_folder

from ldprecover.plugins import LOADED
from ldprecover.recovery import METHODS
from ldprecover_attacker import ATTACKS
from ldprecover_client._httpx import httpx
from ldprecover_server.storage import Storage

if TYPE_CHECKING:
    from tests.postgres import Cluster

ADMIN_KEY = "an-admin-key-for-tests"
DIALECTS = {"sqlite": ["sqlite"], "postgres": ["postgres"], "both": ["sqlite", "postgres"]}
"""The databases of a test with each mark."""
PACKED = {"Content-Type": "application/vnd.ldprecover.reports"}

_SERVE = """
import signal
from ldprecover_server import Settings, serve
signal.signal(signal.SIGINT, signal.SIG_DFL)
serve(Settings())
"""


class Calls:
    """Calls of a server; a subclass sends them."""

    admin: ClassVar[dict[str, str]] = {"Authorization": f"Bearer {ADMIN_KEY}"}

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        raise NotImplementedError

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def try_open(
        self, protocol: str = "grr", epsilon: float = 1.0, **fields: Any
    ) -> httpx.Response:
        """Open a round, over four items unless told otherwise."""
        if "items" not in fields:
            fields.setdefault("domain_size", 4)
        body = {"protocol": protocol, "epsilon": epsilon, **fields}
        return self.post("/rounds", json=body, headers=self.admin)

    def close_round(self, round: str) -> httpx.Response:
        return self.post(f"/rounds/{round}/close", headers=self.admin)

    def delete_round(self, round: str) -> httpx.Response:
        return self.request("DELETE", f"/rounds/{round}", headers=self.admin)

    def mint(self, path: str, count: int) -> list[str]:
        """Return new tickets of the round or form at a path."""
        answer = self.post(f"{path}/tickets", json={"count": count}, headers=self.admin)
        return answer.text.split()

    def submit(
        self, round: str, packed: bytes | np.ndarray, key: str | None = None
    ) -> httpx.Response:
        """Post packed reports with the admin key."""
        headers = {**PACKED, **self.admin} | ({} if key is None else {"Idempotency-Key": key})
        return self.post(f"/rounds/{round}/reports", content=bytes(packed), headers=headers)

    def frequencies(self, round: str) -> dict[str, Any]:
        """Return the round's frequencies."""
        response = self.get(f"/rounds/{round}/frequencies")
        assert response.status_code == 200, response.text
        return response.json()


def samples_of(metrics: str) -> list[Sample]:
    """Return the samples of an answer of /metrics."""
    families = text_string_to_metric_families(metrics)
    return [sample for family in families for sample in family.samples]


def limited(name: str, value: int) -> str:
    """Return Python for the `first` of a server that changes one of its limits."""
    return f"from ldprecover_server import limits\nlimits.{name} = {value}\n"


class ServerProcess(Calls):
    """A server on a free port, over a database that outlives it: it can be killed and started
    again.
    """

    def __init__(
        self, folder: Path, database_url: str | None = None, *, first: str = "", **settings: Any
    ) -> None:
        self.folder = folder
        self.first = first
        """Python that its process runs before it serves."""
        self.database = folder / "ldprecover.db"
        """Its file, when it is SQLite."""
        self.database_url = database_url or f"sqlite:///{self.database}"
        self.admin_key = ADMIN_KEY
        self.lines: list[str] = []
        self._settings = {
            "database_url": self.database_url,
            "admin_key": ADMIN_KEY,
            "port": "0",
            "allowed_hosts": "test,x",  # in requests that tests write byte by byte
            "kernels": os.environ.get("LDPRECOVER_KERNELS"),
            **settings,
        }
        self._process: Process | None = None
        self._open = contextlib.ExitStack()

    def start(self) -> None:
        """Start on the database and wait for the lines that say where it listens."""
        settings = {
            f"LDPRECOVER_{name.upper()}": str(value)
            for name, value in self._settings.items()
            if value
        }
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("LDPRECOVER_")
        }
        self._process = self._begun(inherited | settings)
        assert self._process.stdout is not None
        self._open.enter_context(self._process.stdout)
        self.lines = []
        for line in self._process.stdout:
            self.lines.append(line)
            if line.startswith("API reference"):
                break
        else:
            pytest.fail(
                f"the server did not start (exit {self._process.wait()}):\n{self.log.read_text()}"
            )
        words = " ".join(self.lines).split()
        self.url = next(word for word in words if word.startswith("http://"))
        # It listens before it prints: connections wait for it, nothing has to be polled. Without
        # TLS there is nothing to verify, and reading the authorities' certificates takes 20 ms.
        http = httpx.Client(base_url=self.url, timeout=60, trust_env=False, verify=False)
        self.http = self._open.enter_context(http)

    def _begun(self, environment: dict[str, str]) -> Process:
        """Return its process: a separate interpreter if its behaviour depends on the start."""
        starts_workers = (
            "workers" in self._settings
        )  # which know where they come from by their parent's command
        code = self.first + _SERVE
        with self.log.open("a") as log:
            if not (self._settings.get("plugins") or starts_workers):
                return start_python(
                    *("-c", code),
                    folder=self.folder,
                    environment=environment,
                    stderr=log.fileno(),
                    start_new_session=True,
                )
            return subprocess.Popen(
                [sys.executable, "-c", code],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> Path:
        """What it and all its predecessors wrote to stderr."""
        return self.folder / "stderr.log"

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def exit_status(self, seconds: float) -> int | None:
        """Wait so long for its end, and return the exit status; None while it runs on."""
        assert self._process is not None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def wait(self) -> int:
        """Wait for its end and return the exit status."""
        assert self._process is not None
        assert self._process.stdout is not None
        status = self._process.wait()
        self.lines += self._process.stdout.readlines()
        self._open.close()
        self._process = None
        return status

    def kill(self) -> None:
        """Kill it and its workers as a power cut would: no handler runs."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.wait()

    close = kill

    def keep_port(self) -> None:
        """Have those that are started after it listen where this one does."""
        self._settings["port"] = self.url.rpartition(":")[2]

    def restart(self) -> None:
        """Kill it and start another on the same database."""
        self.kill()
        self.start()

    @contextlib.contextmanager
    def sql(self) -> Iterator[sa.Connection]:
        """A transaction on its database, past the server."""
        engine = sa.create_engine(self.database_url, poolclass=sa.NullPool)
        with engine.begin() as connection:
            yield connection
        engine.dispose()

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.http.request(method, path, **options)

    def connect(self) -> socket.socket:
        """Return a new connection."""
        return socket.create_connection((self.http.base_url.host, self.http.base_url.port), 30)

    def talk(self, sent: bytes, *, half_close: bool = False) -> bytes:
        """Send bytes over a new connection; return all that is received until its end."""
        with self.connect() as connection:
            connection.sendall(sent)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def open_round(
        self, protocol: str = "grr", epsilon: float = 1.0, **fields: Any
    ) -> dict[str, Any]:
        """Open a round, over four items unless told otherwise, and return the server's answer."""
        response = self.try_open(protocol, epsilon, **{"name": f"r{uuid.uuid4().hex}", **fields})
        assert response.status_code == 201, response.text
        return response.json()


StartServer = Callable[..., ServerProcess]

# How long an example takes says nothing on a shared machine.
settings.register_profile("ldprecover", deadline=None, max_examples=50)
settings.load_profile("ldprecover")


def pytest_configure(config: pytest.Config) -> None:
    # On a disk each commit to SQLite waits milliseconds; a file in memory survives kill -9 as well.
    if memory := memory_folder():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    # Without bytecode, every process that a test starts would compile the project again.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Whoever was started in the background of a shell ignores Ctrl-C, and so does every process it
    # starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, dialects in DIALECTS.items():
        config.addinivalue_line("markers", f"{name}: a test that runs on {' and '.join(dialects)}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker more than processors: tests often wait for servers, browsers and databases.

    With `-n logical` there is no further one, for tests that wait for nothing.
    """
    return (os.cpu_count() or 1) + int(config.option.numprocesses == "auto")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector half a million objects of modules and tests, which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


def on_both_databases(metafunc: pytest.Metafunc) -> None:
    """Run each test that has a database on both, or on those of the nearest mark of DIALECTS.

    A module whose code is the same for both databases has the mark `sqlite`.
    """
    if "dialect" in metafunc.fixturenames:
        names = [mark.name for mark in metafunc.definition.iter_markers()]
        dialects = next((DIALECTS[name] for name in names if name in DIALECTS), DIALECTS["both"])
        metafunc.parametrize("dialect", dialects, indirect=True, scope="session")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of tests with the mark `anyio`."""
    return "asyncio"


@pytest.fixture(scope="session")
def dialect(request: pytest.FixtureRequest) -> str:
    """`sqlite`, or what the folder's tests ask for."""
    return getattr(request, "param", "sqlite")


@pytest.fixture(scope="session")
def cluster() -> "Iterator[Cluster]":
    """A Postgres for all the tests that leave it alive."""
    from tests.postgres import Cluster  # the tests of `make quick` run without it

    with Cluster() as cluster:
        yield cluster


NewDatabase = Callable[[Path], contextlib.AbstractContextManager[str]]


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the schema and nothing else, to be copied."""
    file = tmp_path_factory.mktemp("migrated") / "ldprecover.db"
    with contextlib.closing(Storage(f"sqlite:///{file}")) as storage:
        storage.prepare()
    return file


@pytest.fixture(scope="session")
def new_database(dialect: str, request: pytest.FixtureRequest) -> NewDatabase:
    """Make a migrated database for a while, in that folder if it is a file; `with` gives its
    URL.
    """

    @contextlib.contextmanager
    def create(folder: Path) -> Iterator[str]:
        if dialect == "sqlite":
            shutil.copy(request.getfixturevalue("migrated_file"), folder)
            yield f"sqlite:///{folder / 'ldprecover.db'}"
        else:
            cluster = request.getfixturevalue("cluster")
            with cluster.database() as name:
                yield cluster.url(name)

    return create


@pytest.fixture(scope="session")
def forking() -> None:
    """Have the process from which others are forked before a test changes the environment that it
    inherits.
    """
    forkserver.ensure_running()


@pytest.fixture(scope="module")
def many_sockets() -> Iterator[None]:
    """Let this process, and those that it starts, have thousands of sockets, if the system may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 20_000 if hard == resource.RLIM_INFINITY else min(20_000, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def forgets_modules() -> Iterator[None]:
    """Take attacks and methods by "module:name" out of the tables after the test."""
    path = sys.path.copy()
    yield
    sys.path[:] = path
    for table in (ATTACKS, METHODS):
        for name in [name for name in table if ":" in name]:
            del table[name]
    for key in [key for key in LOADED if ":" in key[1]]:
        sys.modules.pop(LOADED.pop(key), None)


@pytest.fixture(scope="session")
def server(
    forking: None, tmp_path_factory: pytest.TempPathFactory, new_database: NewDatabase
) -> Iterator[ServerProcess]:
    """One server for all the tests that only talk to it."""
    folder = tmp_path_factory.mktemp("server")
    with new_database(folder) as url, contextlib.closing(ServerProcess(folder, url)) as process:
        process.start()
        yield process


@pytest.fixture
def start_server(
    forking: None, tmp_path_factory: pytest.TempPathFactory, new_database: NewDatabase
) -> Iterator[StartServer]:
    """Start servers of this test's own, with settings by name; all are gone when it ends.

    They count with numpy, to the same bits, and need not import numba; one child works on their
    analyses, not two.
    """
    with contextlib.ExitStack() as stack:

        def start(database_url: str | None = None, **settings: Any) -> ServerProcess:
            folder = tmp_path_factory.mktemp("server")
            url = database_url or stack.enter_context(new_database(folder))
            process = ServerProcess(folder, url, **{"kernels": "numpy", "analyses": 1, **settings})
            stack.callback(process.kill)
            process.start()
            return process

        yield start
