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
    """A scheduler and workers of one thread each; every process of them ends with `close`.

    `tls` are the files of a CA, a certificate and its key: with them all speak TLS. The scheduler's
    `command` is what stands behind `dask`, and `environment` is its own, beside the test's.
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
        self._options = [
            "--no-dashboard",
            "--host",
            "127.0.0.1" if tls is None else "tls://127.0.0.1",
        ]
        if tls is not None:
            self._options += [
                *("--tls-ca-file", tls[0]),
                *("--tls-cert", tls[1]),
                *("--tls-key", tls[2]),
            ]
        self._open = contextlib.ExitStack()
        # Should the tests be killed, it ends by itself, and workers with it.
        usual = ["scheduler", "--port", "0", "--idle-timeout", "3600", *self._options]
        self.scheduler = self.start("Scheduler at:", *(command or usual), environment=environment)
        self.url = self._said.split()[-1]
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
        """Return a process once it has said `until`; what it says later is read and dropped."""
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                **(environment or {}),
            },
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
            pytest.fail(
                f"dask {command[0]} did not start (exit {process.wait()}):\n{''.join(lines)}"
            )
        reader = threading.Thread(target=_drained, args=(process,), daemon=True)
        reader.start()
        self._open.callback(reader.join)
        self._open.callback(ended, process)
        return process

    def close(self) -> None:
        """Kill all that is left."""
        self._open.close()


def certificates(folder: Path) -> tuple[str, str, str]:
    """Make a CA and a certificate of its, and return the files of the CA, the certificate and its
    key.
    """
    new = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    ca = [str(folder / "ca.pem"), str(folder / "ca-key.pem")]
    own = [str(folder / "own.pem"), str(folder / "own-key.pem")]
    subprocess.run(
        [*new, "-subj", "/CN=ca", "-out", ca[0], "-keyout", ca[1]], check=True, capture_output=True
    )
    signed = [
        *new,
        "-subj",
        "/CN=own",
        "-CA",
        ca[0],
        "-CAkey",
        ca[1],
        "-out",
        own[0],
        "-keyout",
        own[1],
    ]
    subprocess.run(signed, check=True, capture_output=True)
    return ca[0], own[0], own[1]


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
