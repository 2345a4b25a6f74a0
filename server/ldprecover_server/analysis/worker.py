"""A worker: runs one task after another within limits, and ends with the server.

It knows neither database nor keys. The server writes the reports of a round into an unnamed
temporary file and passes its descriptor; the file is gone with the task.
"""

import contextlib
import errno
import os
import pickle
import queue
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from pathlib import Path

import numpy as np

from ldprecover import counting, plugins
from ldprecover.certificate.results import certificate_result
from ldprecover.errors import ParameterError
from ldprecover.reports import ReportSource
from ldprecover.types import Reports
from ldprecover_server.analysis.tasks import Task, pack

NICE = 10
"""The niceness of a worker, so that the server comes first when both want the processor."""
OWN_NICE = 19
"""The niceness of the worker of the server's own tasks, which takes the processor from nobody."""

SEND_REPORTS, RESULT, REJECTED, FAILED = b"W", b"A", b"N", b"F"
"""What a worker sends: a request for the reports, at most once per task; or the end of the task.
The packed result, the message of a ParameterError, or a traceback is the next message."""

OUT_OF_MEMORY = errno.ENOMEM
"""The exit status of a worker that exceeds its limit of memory. It may happen in a message."""

_NUMBA_HASHES = 1 << 30
"""Hashes of a pass over the reports from which on numba is loaded: numpy takes 1.7 s for them,
numba 0.3 s and less than 1 s to load."""
_READ_BYTES = 1 << 20
"""Bytes read from the file in one step."""
_SPARE_SECONDS = 5
"""Processor time beyond the timeout, after which the system ends a worker the server did not."""

Inbox = queue.Queue[bytes | int]
"""What the server sends: a pickle of a Task and its TaskLimits, then perhaps a file descriptor."""


@dataclass(frozen=True)
class TaskLimits:
    """Limits of one task: seconds, bytes of memory above those of an idle worker, and of disk."""

    seconds: float
    memory_bytes: int
    disk_bytes: int


def main() -> None:
    """Run tasks of the connection whose file descriptor is the command's first argument.

    The second is its niceness, the others are the plugins that the server has loaded.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would contain reports
    os.nice(int(sys.argv[2]))
    connection = Connection(int(sys.argv[1]))
    inbox: Inbox = queue.Queue()
    threading.Thread(target=_receive, args=(connection, inbox), daemon=True).start()
    if names := sys.argv[3:]:
        plugins.load(names)
    idle_bytes = _data_bytes()
    try:
        while True:
            idle_bytes = _run_next(inbox, connection, idle_bytes)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _receive(connection: Connection, inbox: Inbox) -> None:
    """Put messages into the inbox. At their end the server is gone, and the process exits."""
    try:
        while True:
            # An empty message announces a file.
            inbox.put(connection.recv_bytes() or recv_handle(connection))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    finally:
        os._exit(0)


def _run_next(inbox: Inbox, connection: Connection, idle_bytes: int | None) -> int | None:
    """Run the next task; return the memory of the idle worker after it."""
    message = inbox.get()
    # The server, which sends it, is trusted.
    task, limits = pickle.loads(message)  # type: ignore[arg-type]  # noqa: S301
    if len(message) > limits.memory_bytes:  # type: ignore[arg-type]
        raise MemoryError  # it was received and unpickled without a limit
    del message
    if task.reads and task.tally.n * task.oracle.hash_tests >= _NUMBA_HASHES:
        idle_bytes = _load(counting.load_fast_kernels, idle_bytes)
    if task.reads and task.compute.func is certificate_result:
        idle_bytes = _load(_import_scipy, idle_bytes)
    _set_limits(limits, idle_bytes)
    kind, body = _run(task, inbox, connection)
    _lift_memory_limit()  # the next task may have a higher one, and is received without
    connection.send_bytes(kind)
    connection.send_bytes(body)
    return idle_bytes


def _run(task: Task, inbox: Inbox, connection: Connection) -> tuple[bytes, bytes]:
    """Return the end of the task. Raises MemoryError."""
    with contextlib.closing(_ReportFile(task, inbox, connection)) as file:
        try:
            return RESULT, pack(task.run(_report_source(task, file)))
        except MemoryError:
            raise
        except ParameterError as error:
            return REJECTED, str(error).encode()
        except BaseException:  # noqa: BLE001  the server logs the traceback
            return FAILED, traceback.format_exc().encode()


class _ReportFile:
    """A round's reports in a file: requested at the first read, then read in pieces per pass."""

    def __init__(self, task: Task, inbox: Inbox, connection: Connection) -> None:
        self._dtype = task.oracle.wire.dtype
        self._inbox = inbox
        self._connection = connection
        self._file: int | None = None

    def arrays(self) -> Iterator[Reports]:
        """Yield the reports."""
        if self._file is None:
            self._connection.send_bytes(SEND_REPORTS)
            self._file = int(self._inbox.get())
        step = max(1, _READ_BYTES // self._dtype.itemsize) * self._dtype.itemsize
        for start in range(0, os.fstat(self._file).st_size, step):
            yield np.frombuffer(os.pread(self._file, step, start), self._dtype)

    def close(self) -> None:
        """Delete the file."""
        if self._file is not None:
            os.close(self._file)


def _report_source(task: Task, file: _ReportFile) -> ReportSource | None:
    """Return the source of the task's reports, or None if it reads none.

    Where the tally is the histogram of the reports, it is their source.
    """
    if not task.reads:
        return None
    if task.oracle.traits.histogram:
        return ReportSource.of_tally(task.oracle, task.tally)
    return ReportSource(task.oracle, file.arrays)


def _data_bytes() -> int | None:
    """Return the memory of this process that counts against RLIMIT_DATA; None outside Linux."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return 1024 * next(
        int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:")
    )


def _load(load: Callable[[], object], idle_bytes: int | None) -> int | None:
    """Import a library without a limit of memory; return the memory of the idle worker with it."""
    before = _data_bytes()
    load()
    after = _data_bytes()
    if idle_bytes is None or before is None or after is None:
        return None
    return idle_bytes + after - before


def _lift_memory_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _import_scipy() -> None:
    import scipy.optimize  # noqa: F401


def _set_limits(limits: TaskLimits, idle_bytes: int | None) -> None:
    """Set the soft limits of this process for one task."""
    used_seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    soft_limits = {
        resource.RLIMIT_CPU: int(used_seconds + limits.seconds) + _SPARE_SECONDS,
        resource.RLIMIT_FSIZE: limits.disk_bytes,
    }
    if idle_bytes is not None:
        soft_limits[resource.RLIMIT_DATA] = idle_bytes + limits.memory_bytes
    for limit, soft in soft_limits.items():
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(
            limit, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
        )
