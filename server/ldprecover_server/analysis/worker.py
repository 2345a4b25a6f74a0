"""A child process: answers one question after another, within limits, and ends when the server is
gone.

It knows neither database nor keys. What it reads of a round the server sends it; it keeps that in a
temporary file without a name, which is gone with the process, however that ends.
"""

import contextlib
import math
import os
import pickle
import queue
import resource
import signal
import struct
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ldprecover import counting, plugins
from ldprecover.errors import ContractError, ParameterError
from ldprecover.recovery import ReportSource
from ldprecover.types import Reports
from ldprecover_cluster import CarriedPart, EngineError, Scheduler, engine
from ldprecover_server.analysis import framing
from ldprecover_server.analysis.tasks import Task, pack

BETWEEN = 0.1
"""Seconds from one word about progress to the next."""
FETCHED = 0.1
"""Progress when the child has all reports. Until then the server tells it: it hears nothing while
it sends.
"""

NICE = 10
"""By how much a child gives way to the server when both want the processor."""

_MANY = 1 << 30
"""Hashes in a pass over the reports: numpy takes 1.7 seconds for them, numba 0.3 and less than one
to load.
"""
_PIECE = 1 << 20  # bytes read of the file at a time
_SENT = 1 << 21  # bytes of reports that a worker of a cluster is sent at a time, at most
_SENT_CELLS = 1 << 28  # (report, item) pairs of them: some tenths of a second of counting
# of what is sent to one worker, as far as they are here: two tasks ahead, pickled and on their way,
# or so
_COPIES = 16
_NEARLY = 0.99  # progress before the answer is there
_SPARE_SECONDS = (
    5  # of processor time beyond the deadline, after which the system ends what the server did not
)


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster whose workers read what has so many (report, item) pairs or more."""

    scheduler: Scheduler
    cells: int


@dataclass(frozen=True)
class Limits:
    """What answering one question may take: seconds, bytes of memory above what a child holds at
    rest, and of disk.

    With a `cluster` its workers read the reports, where there are many; the limits are of the
    child.
    """

    seconds: float
    memory_bytes: int
    disk_bytes: int
    cluster: Cluster | None = None


class _NoRoomError(Exception):
    """The temporary file takes no more."""


def main() -> None:
    """Answer questions from standard input on standard output until the input ends.

    The arguments of the command are the plugins that the server has loaded.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what prints disturbs no message
    inbox: queue.Queue[tuple[bytes, bytes]] = queue.Queue(maxsize=2)
    threading.Thread(target=_receive, args=(source, inbox), daemon=True).start()
    if names := sys.argv[1:]:
        plugins.load(names)
    at_rest = _data_bytes()
    while True:
        kind, body = inbox.get()
        if kind != framing.QUESTION:
            raise ValueError(f"a question was due, not {kind!r}")
        question, limits = pickle.loads(body)  # noqa: S301  the server's own
        del body
        if _elsewhere(question, limits) is not None:
            at_rest = _with(_import_dask, at_rest)
        elif question.reads and question.tally.n * question.oracle.hash_tests >= _MANY:
            at_rest = _with(counting.hasten, at_rest)
        _limit(limits, at_rest)
        _answer(question, limits, inbox, sink)
        del question


def _receive(source: BinaryIO, inbox: "queue.Queue[tuple[bytes, bytes]]") -> None:
    """Pass messages on. The end of them is the end of the server, or its wish: nothing is finished
    then.
    """
    try:
        while True:
            inbox.put(framing.read(source))
    finally:
        os._exit(0)


def _answer(
    question: Task, limits: Limits, inbox: "queue.Queue[tuple[bytes, bytes]]", sink: BinaryIO
) -> None:
    with contextlib.closing(_Kept(question, limits, inbox, sink)) as kept:
        try:
            with kept.source() as source:
                answer = pack(question.answer(source, kept.tell_share))
        except ParameterError as error:
            reply = framing.REFUSED, str(error)
        except MemoryError:
            reply = framing.TOO_LARGE, f"it needs more than {limits.memory_bytes} bytes of memory"
        except _NoRoomError as error:
            reply = framing.TOO_LARGE, str(error)
        except ContractError as error:
            reply = framing.FAILED, f"{' '.join(str(error).split())}\n{traceback.format_exc()}"
        except EngineError:  # the log says where the cluster is, and nobody else
            reply = (
                framing.FAILED,
                f"the cluster that works on it was lost, or not found\n{traceback.format_exc()}",
            )
        except Exception:  # noqa: BLE001  the server logs it and answers for it
            reply = framing.FAILED, f"\n{traceback.format_exc()}"
        else:
            framing.write(sink, framing.ANSWER, answer)
            return
    framing.write(sink, reply[0], reply[1].encode())


class _Kept:
    """A round's reports in a file: asked for when they are first read, then read in pieces for
    every pass.
    """

    def __init__(
        self,
        question: Task,
        limits: Limits,
        inbox: "queue.Queue[tuple[bytes, bytes]]",
        sink: BinaryIO,
    ) -> None:
        self._question = question
        self._dtype = question.oracle.report_dtype
        self._limits = limits
        self._inbox = inbox
        self._sink = sink
        self._file: BinaryIO | None = None
        self._bytes = 0
        self._n = question.tally.n
        self._progress = 0.0
        self._after_reading: float | None = None
        self._told = -math.inf

    @contextlib.contextmanager
    def source(self) -> Iterator[ReportSource | None]:
        """Yield what the question reads, or None: here, or where a cluster is to read it. Raises
        EngineError.
        """
        question, scheduler = self._question, _elsewhere(self._question, self._limits)
        if not question.reads:
            yield None
        elif scheduler is None:
            yield ReportSource(question.oracle, self._arrays, progress=self.tell_passes)
        else:
            step = max(
                1, min(_SENT // self._dtype.itemsize, _SENT_CELLS // question.oracle.domain_size)
            )
            most = max(1, self._limits.memory_bytes // (_COPIES * step * self._dtype.itemsize))
            with engine(scheduler=scheduler, most=most) as executor:
                yield ReportSource.of_parts(
                    question.oracle,
                    _Sent(self, step),
                    executor=executor,
                    progress=self.tell_passes,
                    apart=True,
                )

    def _arrays(self) -> Iterator[Reports]:
        return (part.rows for part in self.parts(max(1, _PIECE // self._dtype.itemsize)))

    def parts(self, step: int) -> Iterator[CarriedPart]:
        """Yield the reports, so many at a time."""
        if self._file is None:
            self._fetch()
        assert self._file is not None
        step *= self._dtype.itemsize
        for start in range(0, self._bytes, step):
            data = os.pread(self._file.fileno(), min(step, self._bytes - start), start)
            yield CarriedPart(data, self._dtype)

    def tell_passes(self, passes: int, reports: int) -> None:
        """Tell the server that so many passes are done, and so many reports of the next.

        Not every pass reads the reports anew, and how many a method makes is not known beforehand:
        each brings it nearer to the end.
        """
        self._tell(FETCHED + (1 - FETCHED) * (1 - 1 / (1 + passes + reports / self._n)))

    def tell_share(self, share: float) -> None:
        """Tell the server that this share is done of what comes after the reports are read."""
        if self._after_reading is None:
            self._after_reading = self._progress
        self._tell(self._after_reading + (_NEARLY - self._after_reading) * share)

    def _fetch(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="ldprecover-")  # noqa: SIM115  closed by `close`
        framing.write(self._sink, framing.WANTED)
        refusal: _NoRoomError | None = None
        while True:
            kind, piece = self._inbox.get()
            if kind == framing.ENOUGH:
                break
            if refusal is not None:
                continue  # what is under way must be read, or the server could not hear the refusal
            self._bytes += len(piece)
            try:
                if self._bytes > self._limits.disk_bytes:
                    raise _NoRoomError(
                        f"the round's reports are more than {self._limits.disk_bytes} bytes"
                    )
                self._file.write(piece)
                self._file.flush()
            except OSError as error:
                refusal = _NoRoomError(
                    f"the round's reports do not fit into a temporary file: {error.strerror}"
                )
            except _NoRoomError as error:
                refusal = error
        if refusal is not None:
            raise refusal

    def _tell(self, progress: float) -> None:
        now = time.monotonic()
        if progress > self._progress and now - self._told >= BETWEEN:
            self._progress, self._told = progress, now
            framing.write(self._sink, framing.PROGRESS, struct.pack("<d", progress))

    def close(self) -> None:
        """Drop the file."""
        if self._file is not None:
            with contextlib.suppress(
                OSError
            ):  # what could not be written is tried once more, to no avail
                self._file.close()


@dataclass(frozen=True)
class _Sent:
    """A round's reports in parts that hold them, read from the file for each pass."""

    kept: _Kept
    step: int

    def __iter__(self) -> Iterator[CarriedPart]:
        return self.kept.parts(self.step)


def _data_bytes() -> int | None:
    """Return the private memory of this process that counts against RLIMIT_DATA; None where it
    cannot be told.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return 1024 * next(
        int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:")
    )


def _elsewhere(question: Task, limits: Limits) -> Scheduler | None:
    """Return whose workers are to read what a question reads; None where the child does."""
    cluster = limits.cluster
    few = cluster is None or question.tally.n * question.oracle.domain_size < cluster.cells
    return None if cluster is None or few or not question.reads else cluster.scheduler


def _with(load: Callable[[], object], at_rest: int | None) -> int | None:
    """Load what is needed from here on; return what this process then holds at rest."""
    resource.setrlimit(resource.RLIMIT_DATA, (resource.getrlimit(resource.RLIMIT_DATA)[1],) * 2)
    before = _data_bytes()
    load()
    after = _data_bytes()
    return None if at_rest is None or before is None or after is None else at_rest + after - before


def _import_dask() -> None:
    with contextlib.suppress(ImportError):  # the engine says so in words
        import distributed  # noqa: F401


def _limit(limits: Limits, at_rest: int | None) -> None:
    """Set the soft limits of this process for one question."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    wanted = {
        resource.RLIMIT_CPU: int(used + limits.seconds) + _SPARE_SECONDS,
        resource.RLIMIT_FSIZE: limits.disk_bytes,
        resource.RLIMIT_CORE: 0,  # it would hold a round's reports
    }
    if at_rest is not None:
        wanted[resource.RLIMIT_DATA] = at_rest + limits.memory_bytes
    for which, soft in wanted.items():
        hard = resource.getrlimit(which)[1]
        resource.setrlimit(
            which, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
        )
