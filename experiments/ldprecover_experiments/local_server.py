"""A real server for one experiment: a process of its own, a database that goes with it."""

import fcntl
import os
import re
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ldprecover.plugins import GROUPS, loaded
from ldprecover_experiments.errors import ExperimentError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_START_SECONDS = 120.0
_STOP_SECONDS = 10.0
_PREFIX = "ldprecover-demo-"


@dataclass(frozen=True)
class LocalServer:
    """A server that runs: where it is, the key of its administrator, its process."""

    url: str
    key: str
    process: subprocess.Popen[bytes]

    def wait(self) -> None:
        """Wait until the server ends by itself, which it should not. Raises ExperimentError."""
        raise ExperimentError(f"the server ended with exit code {self.process.wait()}")


@contextmanager
def local_server() -> Iterator[LocalServer]:
    """Run `ldprecover serve` on a free port with a temporary SQLite database and a fresh admin key.

    It loads the protocols and methods that this process has of plugins.

    When the block ends, however it ends, by SIGINT, SIGTERM and SIGHUP too, the process and the
    folder are gone. Where this process is killed, its server ends by itself, and the next one to
    start removes its folder. Raises ExperimentError when the server does not start.
    """
    key = secrets.token_urlsafe(24)
    folder: Path | None = None
    handle: int | None = None
    process: subprocess.Popen[bytes] | None = None
    try:
        # Between the making of a process or folder and its being known here nothing may interrupt.
        with _held_back():
            _remove_left()
            folder, handle = _own_folder()
            process = _start(folder, key)
        yield LocalServer(_wait_for_url(process, folder), key, process)
    finally:
        with _held_back():
            if process is not None:
                _stop(process)
            if folder is not None:
                shutil.rmtree(folder)
            if handle is not None:
                os.close(handle)


def _remove_left() -> None:
    """Remove the folders of those who were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if (handle := _locked(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(handle)


def _own_folder() -> tuple[Path, int]:
    """Return a new folder and what holds its lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        if (handle := _locked(folder)) is not None:
            if folder.exists():  # else another who starts has taken it for one that was left
                return folder, handle
            os.close(handle)


def _locked(folder: Path) -> int | None:
    """Lock a folder of this user's that nobody who lives has locked; the lock ends with what is
    returned.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_uid == os.geteuid():
            return handle
    except OSError:
        pass
    os.close(handle)
    return None


def _start(folder: Path, key: str) -> subprocess.Popen[bytes]:
    # Settings in the environment are for another server; the choice of kernels is not a setting.
    kept = (
        name
        for name in os.environ
        if not name.startswith("LDPRECOVER_") or name == "LDPRECOVER_KERNELS"
    )
    environment = {name: os.environ[name] for name in kept}
    plugins = ",".join(loaded(GROUPS[:2]))
    command = ["serve", "--host", "127.0.0.1", "--port", "0", "--database-url", "sqlite:///demo.db"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603  our own command, with nothing of a stranger's in it
            [sys.executable, "-m", "ldprecover_experiments.parent_death_guard", *command],
            cwd=folder,
            env=environment | {"LDPRECOVER_ADMIN_KEY": key, "LDPRECOVER_PLUGINS": plugins},
            stdin=subprocess.PIPE,  # which ends with this process
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the demo, which then ends its server
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _wait_for_url(process: subprocess.Popen[bytes], folder: Path) -> str:
    """Return the URL in the server's first line."""
    assert process.stdout is not None
    output, line = process.stdout.fileno(), b""
    deadline = time.monotonic() + _START_SECONDS
    while b"\n" not in line:
        ready, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(output, 4096) if ready else b""
        if not piece:
            why = (folder / "log").read_text(errors="replace").strip().splitlines()
            raise ExperimentError(
                f"the demo's server did not start: {why[-1] if why else 'it says nothing'}"
            )
        line += piece
    found = re.search(rb"http://\S+", line)
    if found is None:
        raise ExperimentError(f"the demo's server does not say where it is: {line[:200]!r}")
    return found.group().decode()


@contextmanager
def _held_back() -> Iterator[None]:
    """Hold signals that end a program back until the block is done, then let the first one
    through.
    """
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)

    before = {number: signal.signal(number, hold) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])
