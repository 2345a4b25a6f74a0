"""One worker process, seen from the server."""

import contextlib
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from ldprecover import plugins
from ldprecover.errors import ParameterError
from ldprecover_server.analysis import __name__ as package
from ldprecover_server.analysis import framing
from ldprecover_server.analysis.tasks import RecoverTask, Task
from ldprecover_server.analysis.worker import TaskLimits
from ldprecover_server.errors import AnalysisFailedError, AnalysisTooLargeError

_log = logging.getLogger(package)

_PIECE_BYTES = 1 << 20
"""Bytes of reports in one message."""

# With OpenBLAS's variables a worker takes the same kernels as the server, and gives the same bits.
_INHERITED = (
    "HOME",
    "LANG",
    "LD_LIBRARY_PATH",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "PATH",
    "PYTHONHOME",
    "PYTHONPATH",
    "TMPDIR",
)
_ONE_THREAD = {"MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def environment(server: Mapping[str, str]) -> dict[str, str]:
    """Return a worker's environment: without the server's settings, keys and database."""
    # Importing numba takes 1 s and 90 MB. numpy counts to the same bits, so a worker loads numba
    # only for many reports ("late"), unless the server does without.
    kernels = "numpy" if server.get("LDPRECOVER_KERNELS") == "numpy" else "late"
    inherited = {name: server[name] for name in _INHERITED if name in server}
    return inherited | _ONE_THREAD | {"LDPRECOVER_KERNELS": kernels}


class WorkerProcess:
    """A process that runs tasks, one at a time. `kill` may be called from any thread."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603  no argument comes from a caller
            [
                sys.executable,
                "-P",
                str(Path(__file__).with_name("__main__.py")),
                *plugins.loaded(plugins.GROUPS[:2]),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(os.environ),
            process_group=0,  # Ctrl-C is for the server
        )
        self._in = cast(BinaryIO, self._process.stdin)
        self._out = cast(BinaryIO, self._process.stdout)
        self._is_killed = False
        self._is_in_step = True
        """Whether no message of an earlier task is left in the pipes."""

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """Whether it takes no further task: it has one, was killed, died, or its last one failed.

        A rejected task has not failed.
        """
        return self._is_killed or not self._is_in_step or self._process.poll() is not None

    def run(self, task: Task, limits: TaskLimits, reports: Iterable[bytes] | None) -> bytes:
        """Return the packed result of a task, sending the packed reports if the worker asks.

        Raises ParameterError if the worker rejects the task. The process is over after all other
        errors: AnalysisTooLargeError, AnalysisFailedError, and those of `reports`.
        """
        if self.is_over:
            raise AnalysisFailedError("its worker process has ended")
        self._is_in_step = False
        try:
            framing.write(self._in, framing.TASK, pickle.dumps((task, limits)))
            kind, body = self._converse(reports or ())
        except (EOFError, BrokenPipeError) as error:
            self.kill()  # without effect on the exit status of a process that has closed its pipes
            if self._process.wait() == framing.OUT_OF_MEMORY:
                raise AnalysisTooLargeError(
                    f"it needs more than {limits.memory_bytes} bytes of memory"
                ) from error
            raise AnalysisFailedError("its worker process has ended") from error
        if kind == framing.TOO_LARGE:
            raise AnalysisTooLargeError(body.decode())
        if kind == framing.FAILED:
            message, _, trace = body.decode().partition("\n")
            method = f" by {task.request.method}" if isinstance(task, RecoverTask) else ""
            _log.error("an analysis of %s%s failed:\n%s", task.oracle.protocol, method, trace)
            raise AnalysisFailedError(message or "the server's log says why")
        self._is_in_step = True
        if kind == framing.REJECTED:
            raise ParameterError(body.decode())
        return body

    def _converse(self, reports: Iterable[bytes]) -> tuple[bytes, bytes]:
        """Return the final message of a task."""
        while True:
            kind, body = framing.read(self._out)
            if kind == framing.SEND_REPORTS:
                self._send(reports)
            elif kind in framing.FINAL:
                return kind, body
            else:
                raise EOFError(f"a message of the unknown kind {kind!r}")

    def _send(self, reports: Iterable[bytes]) -> None:
        # A pipe holds 64 KiB and the worker reads no faster than its disk writes, so this process
        # holds one item of `reports` at a time.
        for piece in reports:
            view = memoryview(piece)
            for start in range(0, len(view), _PIECE_BYTES):
                framing.write(self._in, framing.REPORTS, view[start : start + _PIECE_BYTES])
        framing.write(self._in, framing.END_OF_REPORTS)

    def kill(self) -> None:
        """Kill the process. Any thread may call it.

        A `run` in progress raises AnalysisFailedError, unless the result has arrived.
        """
        self._is_killed = True
        self._process.kill()

    def close(self) -> None:
        """Kill the process, wait for its end, and close its pipes."""
        self.kill()
        self._process.wait()
        for stream in (self._in, self._out):
            with contextlib.suppress(OSError):  # a flush of what the worker did not read fails
                stream.close()
