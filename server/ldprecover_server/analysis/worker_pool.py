"""The worker processes of a server process: their queue, limits and ends."""

import asyncio
import contextlib
import logging
import math
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pipe
from multiprocessing.reduction import send_handle
from pathlib import Path
from typing import Any

from ldprecover import plugins
from ldprecover.errors import ParameterError
from ldprecover_server.analysis.tasks import Task
from ldprecover_server.analysis.worker import (
    NICE,
    OUT_OF_MEMORY,
    OWN_NICE,
    REJECTED,
    RESULT,
    SEND_REPORTS,
    TaskLimits,
)
from ldprecover_server.errors import (
    AnalysesBusyError,
    AnalysisFailedError,
    AnalysisTimeoutError,
    AnalysisTooLargeError,
)
from ldprecover_server.metrics import Metrics

_log = logging.getLogger(__name__)

Prepare = Callable[[], tuple[Task, Iterable[bytes] | None]]
"""Returns a task, and the packed reports of the same moment if it reads them; may block."""

Check = Callable[[float], None]
"""Called about once a second with the seconds that a task runs; raises an error to end it."""

_MAX_REMEMBERED = 1000
"""Groups whose last turn is remembered."""
_QUIET_SECONDS = 2.0

CONTENDED = 1 / 6
"""The share of its seconds that an anonymous analysis has while others wait."""

_STOP_SECONDS = 1.0
"""Seconds that `stop` waits for threads that wait for the database."""

_MAX_BYTES = 1 << 28
"""The longest message of a worker in bytes."""

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


class _Worker:
    """A process that runs tasks, one at a time, and starts with the first.

    `kill` and `close` may be called from any thread.
    """

    def __init__(self, nice: int = NICE) -> None:
        self.nice = nice
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        """Held to start and to kill the process."""
        self._is_killed = False
        self._is_in_step = True
        """Whether no message of an earlier task is left in the connection."""
        self.memory_bytes = 0
        """The largest limit of a task so far: the process may still hold as much."""

    @property
    def is_over(self) -> bool:
        """Whether it takes no further task: it has one, was killed, died, or its last one failed.

        A rejected task has not failed.
        """
        has_ended = self._process is not None and self._process.poll() is not None
        return self._is_killed or not self._is_in_step or has_ended

    def run(self, task: Task, limits: TaskLimits, reports: Iterable[bytes]) -> bytes:
        """Return the packed result of a task, whose packed reports the worker may request.

        Raises ParameterError if the worker rejects the task. The process is over after all other
        errors: AnalysisTooLargeError, AnalysisFailedError, and those of `reports`.
        """
        process = self._start()
        self._is_in_step = False
        self.memory_bytes = max(self.memory_bytes, limits.memory_bytes)
        try:
            self._connection.send_bytes(pickle.dumps((task, limits)))
            if (kind := self._connection.recv_bytes(1)) == SEND_REPORTS:
                self._send(reports, limits.disk_bytes)
                kind = self._connection.recv_bytes(1)
            body = self._connection.recv_bytes(_MAX_BYTES)
        except (EOFError, OSError) as error:
            self.kill()  # without effect on the exit status of a process that has ended
            if process.wait() == OUT_OF_MEMORY:
                raise AnalysisTooLargeError(
                    f"it needs more than {limits.memory_bytes >> 20:,} MiB of memory, the limit "
                    "by LDPRECOVER_ANALYSIS_BYTES"
                ) from error
            raise AnalysisFailedError("its worker process has ended") from error
        if kind == RESULT:
            self._is_in_step = True
            return body
        if kind == REJECTED:
            self._is_in_step = True
            raise ParameterError(body.decode())
        _log.error("an analysis of %s failed:\n%s", task.oracle.protocol, body.decode())
        raise AnalysisFailedError("the server's log says why")

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_killed:
                raise AnalysisFailedError("its worker process has ended")
            if self._process is None:
                try:
                    self._process = self._popen()
                except OSError as error:
                    self._is_killed = True
                    raise AnalysisFailedError(f"no worker process could start: {error}") from error
            return self._process

    def _popen(self) -> subprocess.Popen[bytes]:
        self._connection, theirs = Pipe()
        program = str(Path(__file__).with_name("__main__.py"))
        names = plugins.loaded(plugins.GROUPS[:2])
        with theirs:
            return subprocess.Popen(  # noqa: S603  no argument comes from a caller
                [sys.executable, "-P", program, str(theirs.fileno()), str(self.nice), *names],
                stdin=subprocess.DEVNULL,
                stdout=2,  # a `print` in a plugin
                pass_fds=[theirs.fileno()],
                env=environment(os.environ),
                process_group=0,  # Ctrl-C is for the server
            )

    def _send(self, reports: Iterable[bytes], max_bytes: int) -> None:
        """Send the reports in an unnamed file, one item of `reports` in memory at a time."""
        size = 0
        try:
            with tempfile.TemporaryFile(prefix="ldprecover-") as file:
                for piece in reports:
                    size += len(piece)
                    if size > max_bytes:
                        raise AnalysisTooLargeError(
                            f"the round's reports are more than {max_bytes >> 20:,} MiB, the "
                            "limit by LDPRECOVER_ANALYSIS_DISK_BYTES"
                        )
                    if self._is_killed:
                        raise EOFError
                    file.write(piece)
                file.flush()
                self._connection.send_bytes(b"")
                send_handle(self._connection, file.fileno(), None)
        except ConnectionError:
            raise
        except OSError as error:
            raise AnalysisTooLargeError(
                f"the round's reports do not fit into a temporary file: {error.strerror}"
            ) from error

    def kill(self) -> None:
        """Kill the process.

        A `run` in progress raises AnalysisFailedError, unless the result has arrived.
        """
        with self._lock:
            self._is_killed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Kill the process, wait for its end, and close the connection."""
        self.kill()
        if self._process is not None:
            self._process.wait()
            self._connection.close()


@dataclass(eq=False)
class _Waiter:
    keyed: bool
    group: Hashable
    is_admitted: "asyncio.Future[bool]" = field(default_factory=asyncio.Future)
    """False for a waiter that made room for another."""


class AdmissionQueue:
    """A fixed number of places, and a queue of at most `waiting` callers; for one event loop.

    Callers without a key take all places but one, if there is more than one, and half the queue. So
    they delay a caller with a key by one of their analyses at most.

    The group that was served longest ago, or never, is next. Of its callers with a key the first is
    next, of those without one the last. If their half of the queue is full, the oldest of the
    largest group makes room. Otherwise one anonymous caller could queue for all places, and nothing
    distinguishes that caller from the others.

    The server's own work takes a place that no caller could take, and releases it when a caller
    `needs_place`. It takes the last free place only `quiet_seconds` after the last caller who could
    take it again, because a release costs a process.
    """

    def __init__(self, places: int, waiting: int, quiet_seconds: float = _QUIET_SECONDS) -> None:
        self._places = places
        # By whether the caller has a key.
        self._max_running = {True: places, False: max(1, places - 1)}
        self._max_waiting = {True: waiting, False: max(1, waiting // 2)}
        self._running = {True: 0, False: 0}
        self._running_own = 0
        self._quiet_seconds = quiet_seconds
        self._released_at = -math.inf
        """When a caller released a place that another such caller could take."""
        self._changed = asyncio.Event()
        """Set when a place was released, or a caller left the queue."""
        self.preempted = asyncio.Event()
        """Set when a caller needs the place of the server's own work."""
        self._queues: dict[bool, list[_Waiter]] = {True: [], False: []}
        self._served: dict[Hashable, int] = {}
        """The number of the turn in which a group was served last."""

    @property
    def running(self) -> int:
        """The number of places taken."""
        return sum(self._running.values()) + self._running_own

    @property
    def waiting(self) -> int:
        """The number of callers in the queue."""
        return sum(map(len, self._queues.values()))

    @property
    def needs_place(self) -> bool:
        """Whether a caller waits for nothing but a free place."""
        return any(
            queue and self._running[kind] < self._max_running[kind]
            for kind, queue in self._queues.items()
        )

    async def acquire_own(self) -> None:
        """Take a place for the server's own work, when no caller could take it."""
        loop = asyncio.get_running_loop()
        while True:
            seconds: float | None = None
            is_blocked = self.needs_place or self._running_own
            if not is_blocked and self.running < self._places:
                is_last = self.running + 1 == self._places
                seconds = self._released_at + self._quiet_seconds - loop.time()
                if seconds <= 0 or not is_last:
                    break
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
        self._running_own += 1
        self.preempted.clear()

    def release_own(self) -> None:
        """Release the place of the server's own work, and admit the next caller."""
        self._running_own -= 1
        self._admit()

    async def acquire(self, *, keyed: bool, seconds: float, group: Hashable = None) -> None:
        """Take a place. Raises AnalysesBusyError if the queue is full, or after `seconds`."""
        queue = self._queues[keyed]
        if not queue and self._is_free(keyed) and (keyed or not self._queues[True]):
            self._take(keyed, group)
            return
        if not keyed and len(queue) >= self._max_waiting[False]:
            sizes = Counter(waiter.group for waiter in queue)
            oldest = max(queue, key=lambda waiter: sizes[waiter.group])  # the first of them
            queue.remove(oldest)
            oldest.is_admitted.set_result(False)
        if len(queue) >= self._max_waiting[keyed] or self.waiting >= self._max_waiting[True]:
            raise AnalysesBusyError(f"{self.waiting} analyses are queued, which is the limit")
        waiter = _Waiter(keyed, group)
        queue.append(waiter)
        if self.needs_place:
            self.preempted.set()
        try:
            await asyncio.wait([waiter.is_admitted], timeout=seconds)
            if not waiter.is_admitted.done():
                raise AnalysesBusyError(f"no worker was free in {seconds:g} seconds")
        except BaseException:
            if waiter in queue:
                queue.remove(waiter)
                self._changed.set()
            elif waiter.is_admitted.result():  # the place and the cancellation arrived together
                self.release(keyed=keyed)
            raise
        if not waiter.is_admitted.result():
            raise AnalysesBusyError("too many newer analyses of this kind are queued")

    def release(self, *, keyed: bool) -> None:
        """Release the place of such a caller, and admit the next one."""
        self._running[keyed] -= 1
        self._admit()
        if self._running[keyed] < self._max_running[keyed]:
            self._released_at = asyncio.get_running_loop().time()

    def _admit(self) -> None:
        for kind, queue in self._queues.items():
            while queue and self._is_free(kind):
                order = queue if kind else queue[::-1]
                waiter = min(order, key=lambda waiter: self._served.get(waiter.group, 0))
                queue.remove(waiter)
                self._take(kind, waiter.group)
                waiter.is_admitted.set_result(True)
        self._changed.set()

    def _is_free(self, keyed: bool) -> bool:
        return self.running < self._places and self._running[keyed] < self._max_running[keyed]

    def _take(self, keyed: bool, group: Hashable) -> None:
        self._running[keyed] += 1
        if len(self._served) >= _MAX_REMEMBERED:
            self._served.clear()
        turn = max(self._served.values(), default=0) + 1
        self._served[group] = turn


class WorkerPool:
    """A fixed number of worker processes behind an admission queue; for one event loop.

    An analysis may run for `seconds`, of a caller with a key for `key_seconds`; it waits for
    admission as long at most. While others wait, one without a key has a sixth of its seconds.
    `memory_bytes` limits its memory above that of an idle worker, without a key `anonymous_bytes`,
    and `disk_bytes` its reports in a temporary file.

    The server's own tasks have the limits of a caller with a key. They wait for as long as callers
    need the places, and fail when a caller needs theirs.
    """

    def __init__(
        self,
        count: int,
        *,
        waiting: int,
        seconds: float,
        key_seconds: float,
        memory_bytes: int,
        anonymous_bytes: int | None = None,
        disk_bytes: int,
        metrics: Metrics,
    ) -> None:
        self._admission = AdmissionQueue(count, waiting)
        # By whether the caller has a key.
        self._limits = {
            False: TaskLimits(seconds, anonymous_bytes or memory_bytes, disk_bytes),
            True: TaskLimits(key_seconds, memory_bytes, disk_bytes),
        }
        # How often a running analysis is checked for others that wait.
        self._check_seconds = min(1.0, seconds * CONTENDED)
        self._metrics = metrics
        self._idle = [_Worker(OWN_NICE), *(_Worker() for _ in range(count))]
        """One worker per free place, and in front of them that of the server's own tasks."""
        self._runs: dict[asyncio.Future[bytes], _Worker] = {}
        """The workers of the tasks in progress, by their results."""
        self._is_idle = asyncio.Event()
        self._is_stopped = True

    @property
    def waiting(self) -> int:
        """The number of analyses that wait for admission."""
        return self._admission.waiting

    def start(self) -> None:
        """Accept tasks. A process starts with the first task for it, and then stays."""
        self._is_idle.set()
        self._is_stopped = False

    def close(self) -> None:
        """Fail the tasks in progress, those in the queue and later ones, and kill the workers."""
        self._is_stopped = True
        for result, worker in self._runs.items():
            worker.kill()
            if not result.done():
                result.set_exception(_stopping())

    async def stop(self) -> None:
        """Close, and wait for the threads and processes."""
        self.close()
        try:
            await asyncio.wait_for(self._is_idle.wait(), _STOP_SECONDS)
        except TimeoutError:
            _log.warning("an analysis still waits for the database")
        while self._idle:
            self._idle.pop().close()

    async def run(
        self,
        prepare: Prepare,
        *,
        keyed: bool = False,
        group: Hashable = None,
        on_start: Callable[[], None] = lambda: None,
    ) -> bytes:
        """Return the packed result of a task; a cancellation kills its worker.

        After admission, for which the groups take turns, `on_start` is called and the task is
        prepared. Raises AnalysesBusyError if the queue is full, AnalysisTimeoutError,
        AnalysisTooLargeError, AnalysisFailedError, ParameterError, and the errors of `prepare`.
        """
        self._check_running()
        limits, admission = self._limits[keyed], self._admission
        with self._metrics.analyses_waiting.track_inprogress():
            await admission.acquire(keyed=keyed, seconds=limits.seconds, group=group)
        on_start()

        def check(seconds: float) -> None:
            if not keyed and seconds >= limits.seconds * CONTENDED and admission.waiting:
                raise AnalysisTimeoutError(
                    f"it did not finish within {limits.seconds * CONTENDED:g} seconds, which is "
                    "the time without a key while others wait"
                )

        release = partial(admission.release, keyed=keyed)
        return await self._run(prepare, limits, release, check)

    async def run_own(self, prepare: Prepare) -> bytes:
        """Return the packed result of a task of the server itself, which no caller waits for.

        Raises as `run` does; AnalysesBusyError if a caller needs the worker.
        """
        self._check_running()
        admission = self._admission
        await admission.acquire_own()

        def check(seconds: float) -> None:
            if admission.preempted.is_set():
                raise AnalysesBusyError("a caller needs the worker")

        preempted = asyncio.create_task(admission.preempted.wait())
        try:
            return await self._run(
                prepare, self._limits[True], admission.release_own, check, preempted
            )
        finally:
            preempted.cancel()

    async def _run(
        self,
        prepare: Prepare,
        limits: TaskLimits,
        release: Callable[[], None],
        check: Check,
        preempted: asyncio.Task[Any] | None = None,
    ) -> bytes:
        """Return the packed result of an admitted task. Raises what `check` raises too.

        With `preempted`, at whose end it checks, it is a task of the server itself.
        """
        own = [] if preempted is None else [preempted]
        try:
            self._check_running()
            result = self._begin(prepare, limits, release, is_own=bool(own))
        except BaseException:
            release()
            raise
        now = began = time.monotonic()
        self._metrics.analyses_running.inc()
        try:
            while not result.done():
                if (remaining := began + limits.seconds - now) <= 0:
                    raise AnalysisTimeoutError(
                        f"it did not finish within {limits.seconds:g} seconds"
                    )
                check(now - began)
                await asyncio.wait(
                    [result, *own],
                    timeout=min(remaining, self._check_seconds),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                now = time.monotonic()
            return result.result()
        finally:
            if not result.done():
                self._runs[result].kill()
                result.cancel()
            elif not result.cancelled():
                result.exception()  # asyncio would log an error that nobody retrieves
            self._metrics.analyses_running.dec()
            self._metrics.analysis_seconds.observe(time.monotonic() - began)

    def _check_running(self) -> None:
        if self._is_stopped:
            raise _stopping()

    def _begin(
        self,
        prepare: Prepare,
        limits: TaskLimits,
        release: Callable[[], None],
        *,
        is_own: bool,
    ) -> "asyncio.Future[bytes]":
        """Start a thread for the task, which frees its place; return the future result."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[bytes] = loop.create_future()
        worker = self._idle.pop(0 if is_own else -1)
        # It died while it was idle, or memory that it has freed would be beyond the limit.
        if worker.is_over or worker.memory_bytes > limits.memory_bytes:
            worker.close()
            worker = _Worker(worker.nice)

        def work() -> None:
            try:
                task, reports = prepare()
                outcome: bytes | BaseException = worker.run(task, limits, reports or ())
            except BaseException as error:  # noqa: BLE001  raised again by `run`
                outcome = error
            if worker.is_over:
                worker.close()
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
                loop.call_soon_threadsafe(self._end, result, outcome, release)

        try:
            # A daemon thread, so that a database that hangs does not keep the server from exiting.
            threading.Thread(target=work, name="analysis", daemon=True).start()
        except RuntimeError as error:
            self._put_back(worker)
            raise AnalysisFailedError(f"no thread could start: {error}") from error
        self._runs[result] = worker
        self._is_idle.clear()
        return result

    def _end(
        self,
        result: "asyncio.Future[bytes]",
        outcome: bytes | BaseException,
        release: Callable[[], None],
    ) -> None:
        worker = self._runs.pop(result)
        if not result.done():
            if isinstance(outcome, bytes):
                result.set_result(outcome)
            else:
                result.set_exception(outcome)
        if self._is_stopped:
            worker.close()
        self._put_back(_Worker(worker.nice) if worker.is_over else worker)
        release()
        if not self._runs:
            self._is_idle.set()

    def _put_back(self, worker: _Worker) -> None:
        position = 0 if worker.nice == OWN_NICE else len(self._idle)
        self._idle.insert(position, worker)


def _stopping() -> AnalysesBusyError:
    return AnalysesBusyError("the server stops")
