"""A Dask cluster of real processes on loopback, started by Dask's own commands."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

__all__ = ["DaskCluster", "ended"]


class DaskCluster:
    """A scheduler and workers of one thread each; every process of them ends with `close`.

    `tls` are the files of a CA, a certificate and its key: with them all speak TLS. A task may end
    `allowed_failures` workers before it is given up; Dask's own number is 3.
    """

    def __init__(
        self, folder: Path, tls: tuple[str, str, str] | None = None, *, allowed_failures: int | None = None
    ) -> None:
        self.folder = folder
        self.tls = tls
        self._options = ["--no-dashboard"]
        if tls is not None:
            self._options += [*("--tls-ca-file", tls[0]), *("--tls-cert", tls[1]), *("--tls-key", tls[2])]
        self._open = contextlib.ExitStack()
        name = "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"
        set = {} if allowed_failures is None else {name: str(allowed_failures)}
        host = "127.0.0.1" if tls is None else "tls://127.0.0.1"
        self.scheduler = self._started(
            "scheduler", "--host", host, "--port", "0", until="Scheduler at:", environment=set
        )
        self.url = self._said.split()[-1]
        self.workers: list[subprocess.Popen[str]] = []

    def start_worker(self) -> subprocess.Popen[str]:
        """Start a worker below a nanny of its own, and return the nanny when the worker has registered."""
        options = ["--nworkers", "1", "--nthreads", "1", "--local-directory", str(self.folder)]
        options += ["--memory-limit", "512MiB", "--host", "127.0.0.1" if self.tls is None else "tls://127.0.0.1"]
        worker = self._started("worker", self.url, *options, until="Registered to:")
        self.workers.append(worker)
        return worker

    def _started(
        self, what: str, *options: str, until: str, environment: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Return a process once it has said `until`; what it says later is read and dropped."""
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", what, *options, *self._options],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._open.callback(ended, process)
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if until in line:
                self._said = line.strip()
                break
        else:
            pytest.fail(f"dask {what} did not start (exit {process.wait()}):\n{''.join(lines)}")
        reader = threading.Thread(target=_drained, args=(process,), daemon=True)
        reader.start()
        self._open.callback(reader.join)
        self._open.callback(ended, process)
        return process

    def close(self) -> None:
        """Kill all that is left."""
        self._open.close()


def ended(process: "subprocess.Popen[str]") -> None:
    """Kill a process and those that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _drained(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    with process.stderr:
        for _ in process.stderr:
            pass
