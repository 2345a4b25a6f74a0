"""Servers forked from a process that has imported the server: they are there a second sooner, else as any other."""

import multiprocessing
import os
import subprocess
from multiprocessing.connection import Connection
from pathlib import Path

__all__ = ["ForkedServer"]

# What no plugin changes: the application's messages are made of the protocols there are when it is imported.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["ldprecover_server.app", "anyio._backends._asyncio", "uvloop"])


class ForkedServer:
    """A server in a session of its own, as `subprocess.Popen` would give it; its settings are in the environment."""

    def __init__(self, folder: Path, environment: dict[str, str], log: Path) -> None:
        printed, stdout = _context.Pipe(duplex=False)
        with printed, stdout:
            self._process = _context.Process(target=_serve, args=(folder, environment, stdout, log))
            self._process.start()
            self.stdout = os.fdopen(os.dup(printed.fileno()))
        assert self._process.pid is not None
        self.pid = self._process.pid

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self._process.is_alive():
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit status. Raises TimeoutExpired."""
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(__name__, timeout)
        return status


def _serve(folder: Path, environment: dict[str, str], stdout: Connection, log: Path) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with Path(os.devnull).open() as stdin, stdout, log.open("a") as stderr:
        for number, descriptor in enumerate((stdin.fileno(), stdout.fileno(), stderr.fileno())):
            os.dup2(descriptor, number)

    from ldprecover_server import Settings, serve

    serve(Settings())
