"""The worker processes of a server process: their number, timeouts and replacement."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial

from ldprecover_server.analysis.admission import AdmissionQueue
from ldprecover_server.analysis.tasks import Task
from ldprecover_server.analysis.worker import TaskLimits
from ldprecover_server.analysis.worker_process import WorkerProcess
from ldprecover_server.errors import AnalysesBusyError, AnalysisFailedError, AnalysisTimeoutError
from ldprecover_server.metrics import Metrics

_log = logging.getLogger(__name__)

Prepare = Callable[[], tuple[Task, Iterable[bytes] | None]]
"""Returns a task, and the packed reports of the same moment if it reads them; may block."""

Check = Callable[[float], None]
"""Called about once a second with the seconds that a task runs; raises an error to end it."""

CONTENDED = 1 / 6
"""The share of its seconds that an anonymous analysis has while others wait."""

_STOP_SECONDS = 1.0
"""Seconds that `stop` waits for threads that wait for the database."""


@dataclass(eq=False)
class _Run:
    worker: WorkerProcess
    limits: TaskLimits
    release: Callable[[], None]
    """Releases the place."""
    result: "asyncio.Future[bytes]"


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
        self._count = count
        self._idle: list[WorkerProcess | None] = []
        """One entry per free place; None before the first task, or if no process could start."""
        self._runs: set[_Run] = set()
        self._is_idle = asyncio.Event()
        self._is_stopped = True

    @property
    def waiting(self) -> int:
        """The number of analyses that wait for admission."""
        return self._admission.waiting

    @property
    def pids(self) -> set[int]:
        """The process ids of live workers."""
        workers = [*self._idle, *(run.worker for run in self._runs)]
        return {worker.pid for worker in workers if worker is not None and not worker.is_over}

    def start(self) -> None:
        """Accept tasks. A process starts with the first task for it, and then stays."""
        self._is_idle.set()
        self._is_stopped = False
        self._idle = [None] * self._count

    def close(self) -> None:
        """Fail the tasks in progress, those in the queue and later ones, and kill the workers."""
        self._is_stopped = True
        for run in self._runs:
            run.worker.kill()
            if not run.result.done():
                run.result.set_exception(_stopping())

    async def stop(self) -> None:
        """Close, and wait for the threads and processes."""
        self.close()
        try:
            await asyncio.wait_for(self._is_idle.wait(), _STOP_SECONDS)
        except TimeoutError:
            _log.warning("an analysis still waits for the database")
        while self._idle:
            worker = self._idle.pop()
            if worker is not None:
                worker.close()

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
            if admission.needs_place:
                raise AnalysesBusyError("a caller needs the worker")

        return await self._run(prepare, self._limits[True], admission.release_own, check)

    async def _run(
        self,
        prepare: Prepare,
        limits: TaskLimits,
        release: Callable[[], None],
        check: Check,
    ) -> bytes:
        """Return the packed result of an admitted task. Raises what `check` raises too."""
        try:
            run = self._begin(prepare, limits, release)
        except BaseException:
            release()
            raise
        began = time.monotonic()
        self._metrics.analyses_running.inc()
        try:
            await self._wait(run, check)
            return run.result.result()
        finally:
            if not run.result.done():
                run.worker.kill()
                run.result.cancel()
            elif not run.result.cancelled():
                run.result.exception()  # asyncio would log an error that nobody retrieves
            self._metrics.analyses_running.dec()
            self._metrics.analysis_seconds.observe(time.monotonic() - began)

    async def _wait(self, run: _Run, check: Check) -> None:
        """Wait for the result. Raises AnalysisTimeoutError, and what `check` raises."""
        now = began = time.monotonic()
        seconds = run.limits.seconds
        while not run.result.done():
            if now >= began + seconds:
                raise AnalysisTimeoutError(f"it did not finish within {seconds:g} seconds")
            check(now - began)
            remaining = began + seconds - now
            await asyncio.wait([run.result], timeout=min(remaining, self._check_seconds))
            now = time.monotonic()

    def _check_running(self) -> None:
        if self._is_stopped:
            raise _stopping()

    def _begin(self, prepare: Prepare, limits: TaskLimits, release: Callable[[], None]) -> _Run:
        self._check_running()
        loop = asyncio.get_running_loop()
        worker = self._idle.pop()
        try:
            if worker is None or worker.is_over:
                if worker is not None:
                    worker.close()
                    worker = None
                worker = WorkerProcess()
            run = _Run(worker, limits, release, loop.create_future())
            # A daemon thread, so that a database that hangs does not keep the server from exiting.
            threading.Thread(
                target=self._converse, args=(loop, run, prepare), name="analysis", daemon=True
            ).start()
        except (OSError, RuntimeError) as error:
            self._idle.append(worker)
            raise AnalysisFailedError(f"no worker process could start: {error}") from error
        self._runs.add(run)
        self._is_idle.clear()
        return run

    def _converse(self, loop: asyncio.AbstractEventLoop, run: _Run, prepare: Prepare) -> None:
        """Run the task in a thread, and then free its place."""
        result, failure = b"", None
        try:
            task, reports = prepare()
            result = run.worker.run(task, run.limits, reports)
        except BaseException as error:  # noqa: BLE001  raised again by `run`
            failure = error
        worker: WorkerProcess | None = run.worker
        if run.worker.is_over:
            run.worker.close()
            worker = self._new_worker()
        _call(loop, lambda: self._end(run, worker, result, failure))

    def _new_worker(self) -> WorkerProcess | None:
        if self._is_stopped:
            return None
        try:
            return WorkerProcess()
        except OSError as error:
            # The next task tries again.
            _log.warning("no process for analyses could be started: %s", error)
            return None

    def _end(
        self, run: _Run, worker: WorkerProcess | None, result: bytes, failure: BaseException | None
    ) -> None:
        self._runs.discard(run)
        if not run.result.done():
            if failure is None:
                run.result.set_result(result)
            else:
                run.result.set_exception(failure)
        if self._is_stopped and worker is not None:
            worker.close()
            worker = None
        self._idle.append(worker)
        run.release()
        if not self._runs:
            self._is_idle.set()


def _stopping() -> AnalysesBusyError:
    return AnalysesBusyError("the server stops")


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
        loop.call_soon_threadsafe(callback)
