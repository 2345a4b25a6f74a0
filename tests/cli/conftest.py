"""The command line, run in this process against a real server."""

import contextlib
import io
import json
import os
import pty
import shlex
import socket
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.conftest import ServerProcess
from tests.forked import start_python

from ldprecover_cli import app
from ldprecover_client import Retries, load_dataset


@dataclass(frozen=True)
class Result:
    """Exit code and output of one command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one line of JSON and nothing else."""
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    @property
    def words(self) -> str:
        """Standard output without line ends and columns."""
        return " ".join(self.out.split())

    @property
    def error(self) -> str:
        """The one line that says what went wrong."""
        assert self.code != 0
        assert self.out == ""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: ")
        return lines[0].removeprefix("error: ")

    def fails(self, code: int) -> str:
        """Return the one line of an error with this exit code."""
        assert self.code == code, self.err
        return self.error

    def succeeds(self) -> "Result":
        """Return itself; the command must not have failed."""
        assert self.code == 0, self.err
        return self


Run = Callable[..., Result]


class Terminal(io.StringIO):
    """Standard input of somebody who can be asked."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Read and write nothing of the tester's own environment, ledger and database."""
    for name in ("URL", "ADMIN_KEY", "DATABASE_URL", "HOST", "PORT", "WORKERS"):
        monkeypatch.delenv(f"LDPRECOVER_{name}", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait a tenth of the time between two attempts, except for what the server requires."""
    delay = Retries.delay
    monkeypatch.setattr(
        Retries,
        "delay",
        lambda self, retry, required, draw: delay(self, retry, required, draw / 10),
    )


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run one command line in this process, written as in a shell; more words follow unparsed."""

    def run_one(line: str, *words: str) -> Result:
        capfd.readouterr()
        code = app.run([*shlex.split(line), *words])
        return Result(code, *capfd.readouterr())

    return run_one


@pytest.fixture
def on_server(run: Run, server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command line with the server and its admin key in the environment."""
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", server.admin_key)
    return run


class Watched:
    """A command line in a separate process, of which one stream is read as it is written.

    The stream is standard error, or with `stdout` standard output; it is a terminal or a pipe.
    """

    def __init__(self, line: str, *words: str, stdout: bool = False, terminal: bool = True) -> None:
        self._stream, child = pty.openpty() if terminal else os.pipe()
        self.shown = ""
        self.process = start_python(
            *("-m", "ldprecover_cli", *shlex.split(line), *words),
            folder=Path.cwd(),
            environment=os.environ,
            stdout=child if stdout else None,
            stderr=None if stdout else child,
        )
        os.close(child)

    def watch(self, until: str = "") -> bool:
        """Read until this text was written, or without one until the end; return whether it was."""
        while not until or until not in self.shown:
            try:
                piece = os.read(self._stream, 65536)
            except OSError:  # no process has the terminal open
                return False
            if not piece:
                return False
            self.shown += piece.decode(errors="replace")
        return True

    def ended(self) -> tuple[int, str]:
        """Wait for the end and return the exit code and the other stream."""
        self.watch()
        other = "".join(filter(None, self.process.communicate()))
        return self.process.wait(), other

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self._stream)


@pytest.fixture
def watched(forking: None) -> Iterator[Callable[..., Watched]]:
    """Start command lines in processes; those that still run at the end are killed."""
    with contextlib.ExitStack() as stack:
        yield lambda *words, **options: stack.enter_context(
            contextlib.closing(Watched(*words, **options))
        )


@pytest.fixture
def temporary(forking: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files. Its name is in the environment of every process below.

    They count with numpy, to the same bits, and need not import numba.
    """
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("LDPRECOVER_KERNELS", "numpy")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def assert_nothing_remains(temporary: Path) -> None:
    """Neither files nor processes that were started with this temporary folder remain."""
    processes = psutil.process_iter(["environ"])
    folders = [(process.info["environ"] or {}).get("TMPDIR") for process in processes]
    assert list(temporary.iterdir()) == []
    assert str(temporary) not in folders


@pytest.fixture
def nowhere() -> Iterator[str]:
    """A URL at which nothing listens: its port is bound, so that no other process takes it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def name() -> str:
    """A name that no round has."""
    return f"r{uuid.uuid4().hex}"


@pytest.fixture
def lunch(server: ServerProcess) -> dict[str, Any]:
    """A small round."""
    return server.open_round("grr", 1.0, items=["soup", "salad", "fish [and] chips"])


@pytest.fixture
def cities(server: ServerProcess) -> dict[str, Any]:
    """A round over the items of the data set cities."""
    return server.open_round("grr", 0.5, items=list(load_dataset("cities").items))
