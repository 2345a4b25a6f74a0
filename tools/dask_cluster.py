"""A Dask cluster of real processes on loopback, started by the project's own commands."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from ldprecover_cluster import Scheduler


class DaskCluster:
    """A scheduler and workers of one thread each; all processes end with `close`.

    `tls` are the files of a CA, a certificate and its key, by default new ones. `command` are the
    scheduler's words after `ldprecover`.
    """

    def __init__(
        self,
        folder: Path,
        tls: tuple[str, str, str] | None = None,
        *,
        command: Sequence[str] | None = None,
    ) -> None:
        self.folder = folder
        self.tls = tls or certificates(folder)
        names = ("--tls-ca", "--tls-cert", "--tls-key")
        self._files = [word for pair in zip(names, self.tls, strict=True) for word in pair]
        self._open = contextlib.ExitStack()
        self.log: list[str] = []
        """Lines that the processes have printed since they started, whole after `close`."""
        default = ["admin", "cluster", "scheduler", "--port", "0", *self._files]
        self.scheduler = self.start("Scheduler at ", *(command or default))
        self.url = self._line.split()[-1]
        self.address = Scheduler(self.url, *self.tls)
        self.options = " ".join(["--scheduler", self.url, *self._files])
        """Options of a command that uses the cluster."""
        self.workers: list[subprocess.Popen[str]] = []

    def start_worker(self) -> subprocess.Popen[str]:
        """Start a worker below a nanny; return the nanny once the worker has registered."""
        command = ["admin", "cluster", "worker", self.url, "--jobs", "1", *self._files]
        worker = self.start("1 worker process of ", *command)
        self.workers.append(worker)
        return worker

    def start(self, until: str, *command: str) -> subprocess.Popen[str]:
        """Return a process once it has printed `until`; its later output goes to the log."""
        path = os.pathsep.join(filter(None, sys.path))
        # If the tests are killed, the scheduler ends without them, and its workers with it.
        idle = {"DASK_DISTRIBUTED__SCHEDULER__IDLE_TIMEOUT": "1 hour"}
        process = subprocess.Popen(
            [sys.executable, "-m", "ldprecover_cli", *command],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path, **idle},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,  # of this session: systems share processors among sessions first
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
            process.stderr.close()
            raise RuntimeError(
                f"{' '.join(command)} did not start (exit {process.wait()}):\n{''.join(lines)}"
            )
        reader = threading.Thread(target=self._drain, args=(process,), daemon=True)
        reader.start()
        self._open.callback(reader.join)
        self._open.callback(_kill, process)
        return process

    def _drain(self, process: "subprocess.Popen[str]") -> None:
        assert process.stderr is not None
        with process.stderr:
            self.log += process.stderr

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
