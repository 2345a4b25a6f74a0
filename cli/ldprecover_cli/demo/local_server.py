"""A temporary server for a demo: a separate process with a temporary database."""

import os
import re
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from ldprecover.plugins import GROUPS, loaded
from ldprecover_experiments.errors import ExperimentError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_START_SECONDS = 120.0
_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class LocalServer:
    """A running server: its URL and its admin key."""

    url: str
    key: str


@contextmanager
def local_server() -> Iterator[LocalServer]:
    """Run `ldprecover serve` on a free port with a temporary SQLite database and a fresh admin key.

    The server loads the plugins' protocols and methods that this process has loaded. At the end of
    the block, also by SIGINT, SIGTERM or SIGHUP, process and folder are removed. If this process is
    killed, its server ends by itself. Raises ExperimentError if the server does not start.
    """
    key = secrets.token_urlsafe(24)
    with temporary_folder() as folder:
        process: subprocess.Popen[bytes] | None = None
        try:
            # A signal between the creation of a process and its assignment would leak it.
            with delayed_signals():
                process = _start(folder, key)
            yield LocalServer(_wait_for_url(process, folder), key)
        finally:
            if process is not None:
                with delayed_signals():
                    _stop(process)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a temporary folder, which SIGINT, SIGTERM and SIGHUP do not leave behind."""
    with ExitStack() as stack:
        with delayed_signals():
            folder = stack.enter_context(TemporaryDirectory(prefix="ldprecover-demo-"))
        try:
            yield Path(folder)
        finally:
            with delayed_signals():
                stack.close()


def _start(folder: Path, key: str) -> subprocess.Popen[bytes]:
    # Settings in the environment are for another server; the choice of kernels is not a setting.
    names = (
        name
        for name in os.environ
        if not name.startswith("LDPRECOVER_") or name == "LDPRECOVER_KERNELS"
    )
    environment = {name: os.environ[name] for name in names}
    plugins = ",".join(loaded(GROUPS[:2]))
    command = ["serve", "--host", "127.0.0.1", "--port", "0", "--database-url", "sqlite:///demo.db"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603  our own command without untrusted input
            [sys.executable, "-m", "ldprecover_cli.demo.parent_death_guard", *command],
            cwd=folder,
            env=environment | {"LDPRECOVER_ADMIN_KEY": key, "LDPRECOVER_PLUGINS": plugins},
            stdin=subprocess.PIPE,  # the parent-death guard reads its end
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C reaches the demo alone, which then stops the server
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
    """Return the URL in the first line of the server's output."""
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
    match = re.search(rb"http://\S+", line)
    if match is None:
        raise ExperimentError(f"the demo's server printed no URL: {line[:200]!r}")
    return match.group().decode()


@contextmanager
def delayed_signals() -> Iterator[None]:
    """Delay SIGINT, SIGTERM and SIGHUP until the end of the block, then raise the first one."""
    received: list[int] = []

    def delay(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, delay) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])
