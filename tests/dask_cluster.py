"""A Dask cluster of real processes on loopback, started by Dask's own commands."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest


class DaskCluster:
    """A scheduler and workers of one thread each; all processes end with `close`.

    `tls` are the files of a CA, a certificate and its key: with them all use TLS. `command` are the
    scheduler's words after `dask`, and `environment` is added to the test's.
    """

    def __init__(
        self,
        folder: Path,
        tls: tuple[str, str, str] | None = None,
        *,
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self._options = ["--no-dashboard", "--host", "tls://127.0.0.1" if tls else "127.0.0.1"]
        names = ("--tls-ca-file", "--tls-cert", "--tls-key")
        for name, file in zip(names, tls or (), strict=False):
            self._options += [name, file]
        self._open = contextlib.ExitStack()
        # If the tests are killed, the scheduler ends without them, and its workers with it.
        default = ["scheduler", "--port", "0", "--idle-timeout", "3600", *self._options]
        self.scheduler = self.start("Scheduler at:", *(command or default), environment=environment)
        self.url = self._line.split()[-1]
        self.workers: list[subprocess.Popen[str]] = []

    def start_worker(self) -> subprocess.Popen[str]:
        """Start a worker below a nanny; return the nanny once the worker has registered."""
        options = ["--nworkers", "1", "--nthreads", "1", "--local-directory", str(self.folder)]
        options += ["--memory-limit", "512MiB", *self._options]
        worker = self.start("Registered to:", "worker", self.url, *options)
        self.workers.append(worker)
        return worker

    def start(
        self, until: str, *command: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Return a process once it has printed `until`; its later output is read and dropped."""
        path = os.pathsep.join(filter(None, sys.path))
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._open.callback(_kill, process)
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if until in line:
                self._line = line.strip()
                break
        else:
            pytest.fail(
                f"dask {command[0]} did not start (exit {process.wait()}):\n{''.join(lines)}"
            )
        reader = threading.Thread(target=_drain, args=(process,), daemon=True)
        reader.start()
        self._open.callback(reader.join)
        self._open.callback(_kill, process)
        return process

    def close(self) -> None:
        """Kill all processes."""
        self._open.close()


def certificates(folder: Path) -> tuple[str, str, str]:
    """Make a CA and a certificate; return the files of the CA, the certificate and its key."""
    new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    for options in (
        "-subj /CN=ca -out ca.pem -keyout ca-key.pem",
        "-subj /CN=own -CA ca.pem -CAkey ca-key.pem -out own.pem -keyout own-key.pem",
    ):
        subprocess.run(
            [*new.split(), *options.split()], cwd=folder, check=True, capture_output=True
        )
    return str(folder / "ca.pem"), str(folder / "own.pem"), str(folder / "own-key.pem")


def _kill(process: "subprocess.Popen[str]") -> None:
    """Kill a process and those that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _drain(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    with process.stderr:
        for _ in process.stderr:
            pass
