"""Demos as separate processes, and what they leave behind."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.forked import Process, start_python

StartDemo = Callable[..., Process]


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


@pytest.fixture
def start_demo(temporary: Path) -> Iterator[StartDemo]:
    """Start `ldprecover demo`; kill what remains of it at the end."""
    started: list[Process] = []

    def start(*options: str, **environment: str) -> Process:
        process = start_python(
            *("-m", "ldprecover_cli", *options),
            folder=Path.cwd(),
            environment=os.environ | environment,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
    for pid in processes_of(temporary):
        os.kill(pid, signal.SIGKILL)


def processes_of(temporary: Path) -> list[int]:
    """Return the processes, but this one, that were started with this temporary folder."""
    pids = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            marked = f"TMPDIR={temporary}\0".encode() in environment.read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended, or belongs to another user
        if marked and int(environment.parent.name) != os.getpid():
            pids.append(int(environment.parent.name))
    return pids


def assert_nothing_remains(temporary: Path) -> None:
    """Neither files nor processes."""
    assert list(temporary.iterdir()) == []
    assert processes_of(temporary) == []


def token_of(link: str) -> str:
    """Return the token of the link that `demo --page` prints."""
    (token,) = parse_qs(urlsplit(link).fragment.partition("?")[2])["demo"]
    return token


def wait_for_line(process: Process, start: str) -> str:
    """Read standard error up to the line that begins so, and return it."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(start):
            return line
    raise AssertionError(f"no line begins with {start!r}")
