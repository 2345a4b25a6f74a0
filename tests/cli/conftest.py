"""The command line, run in this process against a real server."""

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ldprecover_cli import app


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


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run one command line in this process."""

    def run_one(*arguments: str) -> Result:
        capfd.readouterr()
        code = app.run(list(arguments))
        return Result(code, *capfd.readouterr())

    return run_one


@pytest.fixture
def on_server(run: Run, server: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command line with the server and its admin key in the environment, as an operator has them."""
    monkeypatch.setenv("LDPRECOVER_URL", server.url)
    monkeypatch.setenv("LDPRECOVER_ADMIN_KEY", server.admin_key)
    return run


@pytest.fixture
def nowhere() -> Iterator[str]:
    """A URL at which nothing listens: its port is bound, so that nobody else takes it, and refuses callers."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
