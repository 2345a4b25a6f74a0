"""The command line, run in this process against a real server."""

import contextlib
import json
import os
import pty
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.forked import start_python

from ldprecover_cli import app
from ldprecover_client import Retries


@dataclass(frozen=True)
class Result:
    """What one command line did."""

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
    def error(self) -> str:
        """The one line that says what went wrong."""
        assert self.code != 0
        assert self.out == ""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: ")
        return lines[0].removeprefix("error: ")


Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the tester's own environment, ledger or database is read or written."""
    for name in ("URL", "ADMIN_KEY", "DATABASE_URL", "HOST", "PORT", "WORKERS"):
        monkeypatch.delenv(f"LDPRECOVER_{name}", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries of one request is a tenth of the time, but what the server asks for."""
    delay = Retries.delay
    monkeypatch.setattr(
        Retries, "delay", lambda self, retry, asked, draw: delay(self, retry, asked, draw / 10)
    )


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run one command line in this process, whose answer to Ctrl-C `serve` would change for the
    tests that follow.
    """

    def run_one(*arguments: str) -> Result:
        capfd.readouterr()
        code = app.run(list(arguments))
        return Result(code, *capfd.readouterr())

    before = signal.getsignal(signal.SIGINT)
    yield run_one
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def on_server(run: Run, server: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command line with the server and its admin key in the environment, as an operator has
    them.
    """
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", server.admin_key)
    return run


class Watched:
    """A command line in a process of its own whose standard error is a terminal."""

    def __init__(self, *arguments: str) -> None:
        self._terminal, theirs = pty.openpty()
        self.shown = ""
        self.process = start_python(
            *("-m", "ldprecover_cli", *arguments),
            folder=Path.cwd(),
            environment=os.environ,
            stderr=theirs,
        )
        os.close(theirs)

    def watch(self, until: str = "") -> bool:
        """Read the terminal until a text is on it; without one, until the end. Tell whether it
        came.
        """
        while not until or until not in self.shown:
            try:
                piece = os.read(self._terminal, 65536)
            except OSError:  # nobody has the terminal open any more
                return False
            self.shown += piece.decode(errors="replace")
        return True

    def ended(self) -> tuple[int, str]:
        """Wait for the end and return the exit code and standard output."""
        self.watch()
        out, _ = self.process.communicate()
        return self.process.wait(), out

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._terminal)


@pytest.fixture
def watched(forking: None) -> Iterator[Callable[..., Watched]]:
    """Start command lines on a terminal; whatever still runs at the end is killed."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: str) -> Watched:
            command = Watched(*arguments)
            stack.callback(command.close)
            return command

        yield start


@pytest.fixture
def nowhere() -> Iterator[str]:
    """A URL at which nothing listens: its port is bound, so that nobody else takes it, and refuses
    callers.
    """
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
