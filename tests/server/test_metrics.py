"""The folder in which the processes of a server add up what they count."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldprecover_server.metrics import shared_by_processes

_SHARE = """
import os
from ldprecover_server.metrics import shared_by_processes
with shared_by_processes():
    print(os.environ["PROMETHEUS_MULTIPROC_DIR"], flush=True)
    input()
"""


class Server:
    """A process that has such a folder until it is told to end."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SHARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.folder = Path(self.process.stdout.readline().strip())
        assert self.folder.is_dir()

    def end(self, number: signal.Signals | None = None) -> None:
        if number is not None:
            self.process.send_signal(number)
        self.process.communicate("\n" if number is None else None)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, of the processes that are started as well."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture
def two(temporary: Path) -> Iterator[tuple[Server, Server]]:
    started = Server(), Server()
    yield started
    for server in started:
        server.end(signal.SIGKILL)


def test_ended_server_leaves_no_folder(temporary: Path) -> None:
    with shared_by_processes():
        (folder,) = temporary.iterdir()
        assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(folder)
        (folder / "counter_1.db").touch()
    assert list(temporary.iterdir()) == []
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


def test_next_server_deletes_folder_of_a_killed_one(
    two: tuple[Server, Server], temporary: Path
) -> None:
    """Those of servers that live stay, and so does what is not ours."""
    killed, alive = two
    (killed.folder / "counter_1.db").touch()
    killed.end(signal.SIGKILL)
    assert killed.folder.is_dir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (temporary / "ldprecover-metrics-link").symlink_to(elsewhere)
    (temporary / "ldprecover-metrics-file").touch()
    with shared_by_processes():
        assert not killed.folder.exists()
        remaining = {path.name for path in temporary.iterdir()} - {
            Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).name
        }
        assert remaining == {
            alive.folder.name,
            "elsewhere",
            "ldprecover-metrics-link",
            "ldprecover-metrics-file",
        }
