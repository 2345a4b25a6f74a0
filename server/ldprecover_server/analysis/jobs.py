"""Jobs: analyses in the background, whose state any process of the server can read."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from ldprecover.errors import LDPRecoverError, ParameterError
from ldprecover_interface.problems import Problem
from ldprecover_server.analysis.admission import NO_ROOM, oldest_of_largest
from ldprecover_server.analysis.worker_pool import OnProgress
from ldprecover_server.errors import (
    AnalysesBusyError,
    AnalysisFailedError,
    ServiceError,
    as_service_error,
)
from ldprecover_server.metrics import Metrics
from ldprecover_server.storage import Storage
from ldprecover_server.storage.jobs import JobAnalysis, JobState
from ldprecover_server.thread_pools import ThreadPool

_log = logging.getLogger(__name__)

_BEAT_SECONDS = 1.0
"""Seconds between two heartbeats of the jobs of a process."""
_STOP_SECONDS = 1.0
"""Seconds that `stop` waits for the ends of jobs to be written."""
_THREADS = 2

JobWork = Callable[[OnProgress], Coroutine[Any, Any, Callable[[], bytes]]]
"""Reports the progress of a job, and returns what writes its result in a thread; it is cancelled
with its job."""


@dataclass(frozen=True)
class Job:
    """The state of a job.

    `progress` grows from 0 to 1. A job that is `done` has a `result`, one that `failed` the
    `problem` that a caller who waits would have received.
    """

    id: str
    analysis: JobAnalysis
    state: JobState
    progress: float
    result: bytes | None = None
    problem: Problem | None = None


class _LocalJob:
    """A job of this process."""

    def __init__(self, seq: int, keyed: bool) -> None:
        self.seq = seq
        self.keyed = keyed
        self.begun: asyncio.Task[None] | None = None
        """The task while it works; one that is cancelled before or after would not clean up."""
        self.made_room = False
        """Whether it was cancelled for another job."""
        self.state: JobState = "queued"
        self.progress = 0.0
        self.task: asyncio.Task[None] | None = None

    def make_room(self) -> None:
        """Cancel the job for another one; it must have begun."""
        assert self.begun is not None
        self.made_room = True
        self.begun.cancel()

    def report_progress(self, progress: float) -> None:
        self.state, self.progress = "running", max(self.progress, progress)


class Jobs:
    """Starts jobs in this process and reads those of every process on the same database.

    A job is `queued` until its work reports progress, then `running`; it ends `done`, `failed` or
    `cancelled`. Its process writes a heartbeat with the progress every second, and learns from it
    that another process cancelled the job or deleted its round. A job without a heartbeat for ten
    seconds reads as failed. An ended job is stored for an hour after its start, or until too many
    others are stored.

    `waiting` limits the unfinished jobs of this process; callers without a key have half of them.
    If that half is full, the oldest job of the round that has most of them makes room.
    The caller of these methods checks access to the round. For use in one event loop.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        waiting: int,
        beat_seconds: float = _BEAT_SECONDS,
        metrics: Metrics | None = None,
    ) -> None:
        self._storage = storage
        self._metrics = metrics or Metrics()
        self._limits = {True: waiting, False: max(1, waiting // 2)}
        self._beat_seconds = beat_seconds
        self._local: dict[str, _LocalJob] = {}
        self._beating: asyncio.Task[None] | None = None
        self._threads = ThreadPool(_THREADS)
        # Results of megabytes wait unwritten.
        self._finishing = asyncio.Lock()
        # Separate, so that many status calls do not delay heartbeats.
        self._reading = ThreadPool(1, waiting)
        self._stopped = False

    async def start(self, seq: int, analysis: JobAnalysis, work: JobWork, *, keyed: bool) -> Job:
        """Start a job of the round with the number `seq`, and return it.

        Raises RoundNotFoundError, and AnalysesBusyError if too many jobs are unfinished or stored.
        """
        count = len(self._local)
        same_kind = [
            job for job in self._local.values() if job.keyed == keyed and not job.made_room
        ]
        begun = [job for job in same_kind if job.begun is not None]
        if begun and not keyed and len(same_kind) >= self._limits[False]:
            oldest = oldest_of_largest(begun, lambda job: job.seq)
            oldest.make_room()
            same_kind.remove(oldest)
        if self._stopped or count >= self._limits[True] or len(same_kind) >= self._limits[keyed]:
            raise AnalysesBusyError(f"{count} jobs are unfinished, which is the limit")
        id, job = secrets.token_hex(16), _LocalJob(seq, keyed)
        self._local[id] = job
        try:
            await self._threads.run(lambda: self._storage.jobs.add(id, seq, analysis, keyed=keyed))
        except BaseException:
            del self._local[id]
            raise
        job.task = asyncio.create_task(self._run(id, job, work))
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())
        return Job(id, analysis, "queued", 0.0)

    async def status(self, seq: int, id: str) -> Job:
        """Return a job of a round, also of another process.

        Raises JobNotFoundError, and BusyError if too many calls wait.
        """
        stored = await self._reading.run(lambda: self._storage.jobs.find(seq, id))
        state, progress = stored.state, stored.progress
        if (job := self._local.get(id)) is not None and state in ("queued", "running"):
            state, progress = job.state, max(progress, job.progress)
        problem = _problem(stored.problem) if state == "failed" else None
        return Job(id, stored.analysis, state, progress, stored.result, problem)

    async def cancel(self, seq: int, id: str) -> None:
        """Cancel a job of a round, unless it has ended. Raises JobNotFoundError."""
        await self._threads.run(lambda: self._storage.jobs.cancel(seq, id))
        self._cancel_local(id)

    def _cancel_local(self, id: str) -> None:
        if (job := self._local.get(id)) is not None and job.task is not None:
            job.task.cancel()

    async def stop(self) -> None:
        """Stop the jobs of this process; they fail."""
        self._stopped = True
        tasks = [job.task for job in self._local.values() if job.task is not None]
        tasks += [self._beating] if self._beating is not None else []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)
        await self._threads.drain(_STOP_SECONDS)
        await self._reading.drain(_STOP_SECONDS)

    async def _run(self, id: str, job: _LocalJob, work: JobWork) -> None:
        job.begun = asyncio.current_task()
        write: Callable[[], bytes] | None = None
        failure: ServiceError | None = None
        try:
            write = await work(job.report_progress)
        except asyncio.CancelledError:
            # If the job was cancelled, its row has ended already, and this changes nothing.
            failure = (
                AnalysesBusyError(NO_ROOM)
                if job.made_room
                else AnalysisFailedError("the server stopped meanwhile")
            )
        except Exception as error:  # noqa: BLE001  the caller reads the failure later
            failure = _failure_of(error)
        job.begun = None
        try:
            async with self._finishing:
                await self._threads.run(self._finish, id, write, failure)
        except ServiceError as error:
            _log.warning("the end of a job could not be written: %s", error)
        except Exception:  # noqa: BLE001  nobody awaits this task
            _log.exception("the end of a job could not be written")
        finally:
            del self._local[id]

    def _finish(
        self, id: str, write: Callable[[], bytes] | None, failure: ServiceError | None
    ) -> None:
        """Store the end of a job: the result, or the failure."""
        result: bytes | None = None
        try:
            result = write() if write is not None else None
        except Exception as error:  # noqa: BLE001  as above
            failure = _failure_of(error)
        state: Literal["done", "failed"] = "done" if failure is None else "failed"
        self._metrics.jobs.labels(state).inc()
        problem = None if failure is None else failure.problem.to_json().decode()
        self._storage.jobs.finish(id, state, result=result, problem=problem)

    async def _beat(self) -> None:
        while self._local:
            await asyncio.sleep(self._beat_seconds)
            progress = {
                id: (job.state, job.progress)
                for id, job in self._local.items()
                if job.task is not None
            }
            try:
                ended = await self._threads.run(self._storage.jobs.heartbeat, progress)
            except ServiceError:
                continue
            except Exception:  # noqa: BLE001  without heartbeats every job would read as failed
                _log.exception("the heartbeat of jobs could not be written")
                continue
            for id in ended:
                self._cancel_local(id)


def _failure_of(error: Exception) -> ServiceError:
    if not isinstance(error, ServiceError | ParameterError):
        _log.error("a job failed", exc_info=error)
    if isinstance(error, ServiceError | LDPRecoverError):
        return as_service_error(error)
    return AnalysisFailedError("the server's log says why")


def _problem(stored: str | None) -> Problem:
    """Return the problem of a failed job, whose process died if it stored none."""
    if stored is None:
        return AnalysisFailedError("its server process has ended").problem
    return Problem.model_validate_json(stored)
