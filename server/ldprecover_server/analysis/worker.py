"""A worker: runs one task after another within limits, and ends with the server.

It knows neither database nor keys. The server sends it the reports of a round, which it keeps in an
unnamed temporary file; the file is gone with the process.
"""

import contextlib
import os
import pickle
import queue
import resource
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ldprecover import counting, plugins
from ldprecover.errors import ParameterError
from ldprecover.recovery import ReportSource
from ldprecover.types import Reports
from ldprecover_server.analysis import framing
from ldprecover_server.analysis.tasks import CertificateTask, Task, pack

NICE = 10
"""The niceness of a worker, so that the server comes first when both want the processor."""

_NUMBA_HASHES = 1 << 30
"""Hashes of a pass over the reports from which on numba is loaded: numpy takes 1.7 s for them,
numba 0.3 s and less than 1 s to load."""
_READ_BYTES = 1 << 20
"""Bytes read from the file in one step."""
_SPARE_SECONDS = 5
"""Processor time beyond the timeout, after which the system ends a worker the server did not."""

Inbox = queue.Queue[tuple[bytes, bytes]]


@dataclass(frozen=True)
class TaskLimits:
    """Limits of one task: seconds, bytes of memory above those of an idle worker, and of disk."""

    seconds: float
    memory_bytes: int
    disk_bytes: int


class _NoSpaceError(Exception):
    """The reports exceed the limit of disk, or the disk is full."""


def main() -> None:
    """Run tasks from standard input, with results on standard output, until the input ends.

    The command's arguments are the plugins that the server has loaded.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    os.nice(NICE)
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a `print` in a plugin must not corrupt the messages
    inbox: Inbox = queue.Queue(maxsize=2)
    threading.Thread(target=_receive, args=(source, inbox), daemon=True).start()
    if names := sys.argv[1:]:
        plugins.load(names)
    idle_bytes = _data_bytes()
    try:
        while True:
            idle_bytes = _run_next(inbox, sink, idle_bytes)
    except MemoryError:
        os._exit(framing.OUT_OF_MEMORY)


def _receive(source: BinaryIO, inbox: Inbox) -> None:
    """Put messages into the inbox. At their end the server is gone, and the process exits."""
    try:
        while True:
            inbox.put(framing.read(source))
    except MemoryError:
        os._exit(framing.OUT_OF_MEMORY)
    finally:
        os._exit(0)


def _run_next(inbox: Inbox, sink: BinaryIO, idle_bytes: int | None) -> int | None:
    """Run the next task; return the memory of the idle worker after it."""
    kind, body = inbox.get()
    if kind != framing.TASK:
        raise ValueError(f"expected a task, got a message of kind {kind!r}")
    task, limits = pickle.loads(body)  # noqa: S301  from the server, which is trusted
    del body
    if task.reads and task.tally.n * task.oracle.hash_tests >= _NUMBA_HASHES:
        idle_bytes = _load(counting.hasten, idle_bytes)
    if task.reads and isinstance(task, CertificateTask):
        idle_bytes = _load(_import_scipy, idle_bytes)
    _set_limits(limits, idle_bytes)
    kind, body = _run(task, limits, inbox, sink)
    _lift_memory_limit()  # the next task may have a higher one, and is received without
    framing.write(sink, kind, body)
    return idle_bytes


def _run(task: Task, limits: TaskLimits, inbox: Inbox, sink: BinaryIO) -> tuple[bytes, bytes]:
    """Return the final message of the task. Raises MemoryError."""
    with contextlib.closing(_ReportFile(task, limits.disk_bytes, inbox, sink)) as file:
        try:
            source = _report_source(task, file)
            return framing.RESULT, pack(task.run(source))
        except MemoryError:
            raise
        except ParameterError as error:
            reply = framing.REJECTED, str(error)
        except _NoSpaceError as error:
            reply = framing.TOO_LARGE, str(error)
        except BaseException:  # noqa: BLE001  the server logs the traceback
            reply = framing.FAILED, f"\n{traceback.format_exc()}"
    return reply[0], reply[1].encode()


class _ReportFile:
    """A round's reports in a file: requested at the first read, then read in pieces per pass."""

    def __init__(self, task: Task, max_bytes: int, inbox: Inbox, sink: BinaryIO) -> None:
        self.dtype = task.oracle.wire.dtype
        self._max_bytes = max_bytes
        self._inbox = inbox
        self._sink = sink
        self._file: BinaryIO | None = None
        self._bytes = 0

    def arrays(self) -> Iterator[Reports]:
        """Yield the reports."""
        if self._file is None:
            self._fetch()
        assert self._file is not None
        step = max(1, _READ_BYTES // self.dtype.itemsize) * self.dtype.itemsize
        for start in range(0, self._bytes, step):
            data = os.pread(self._file.fileno(), min(step, self._bytes - start), start)
            yield np.frombuffer(data, self.dtype)

    def _fetch(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="ldprecover-")  # noqa: SIM115  closed by `close`
        framing.write(self._sink, framing.SEND_REPORTS)
        failure: _NoSpaceError | None = None
        while True:
            kind, piece = self._inbox.get()
            if kind == framing.END_OF_REPORTS:
                break
            if failure is not None:
                continue  # the server writes until the end, and only then reads the failure
            self._bytes += len(piece)
            if self._bytes > self._max_bytes:
                failure = _NoSpaceError(
                    f"the round's reports are more than {self._max_bytes} bytes"
                )
                continue
            try:
                self._file.write(piece)
                self._file.flush()
            except OSError as error:
                failure = _NoSpaceError(
                    f"the round's reports do not fit into a temporary file: {error.strerror}"
                )
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Delete the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # `close` flushes again what could not be written
                self._file.close()


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
        resource.RLIMIT_CORE: 0,  # a core dump would contain reports
    }
    if idle_bytes is not None:
        soft_limits[resource.RLIMIT_DATA] = idle_bytes + limits.memory_bytes
    for limit, soft in soft_limits.items():
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(
            limit, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
        )
