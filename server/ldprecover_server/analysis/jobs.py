"""Analyses for callers who do not wait: asked for now, read later, from whichever process of the
server.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from ldprecover.errors import LDPRecoverError, ParameterError
from ldprecover_server.analysis.worker_pool import OnProgress
from ldprecover_server.errors import (
    AnalysesBusyError,
    AnalysisFailedError,
    ServiceError,
    service_errors,
)
from ldprecover_server.metrics import Metrics
from ldprecover_server.storage import Store
from ldprecover_server.storage.jobs import JobState
from ldprecover_server.thread_pools import ThreadPool

_log = logging.getLogger(__name__)

_BEAT_SECONDS = 1.0
_STOP_SECONDS = 1.0
_THREADS = 2

JobWork = Callable[[OnProgress], Coroutine[Any, Any, bytes]]
"""Works out the bytes to be kept as the job's result, saying how far it is; it is cancelled with
its job.
"""


@dataclass(frozen=True)
class Job:
    """A job as its caller sees it.

    `progress` grows from 0 to 1. `result` is what the work of a job that is `done` returned,
    `error` what stopped one that `failed`: the refusal that a caller who waits would have had.
    """

    id: str
    state: JobState
    progress: float
    result: bytes | None = None
    error: ServiceError | LDPRecoverError | None = None


class _Own:
    """A job that this process works on."""

    def __init__(self, keyed: bool) -> None:
        self.keyed = keyed
        self.state: JobState = "queued"
        self.progress = 0.0
        self.task: asyncio.Task[None] | None = None

    def tell(self, progress: float) -> None:
        self.state, self.progress = "running", max(self.progress, progress)


class Jobs:
    """Starts jobs in this process, and knows those of every process on the same database; for one
    event loop.

    A job is `queued` until its work says how far it is, then `running`; it ends `done`, `failed` or
    `cancelled`. The process that works on it writes once a second how far it is, and sees then that
    another process cancelled it or deleted its round; a job whose process died reads as failed ten
    seconds later. A job that has ended is kept for an hour after it was asked for, unless many come
    after it.

    `waiting` bounds the jobs under way in this process, those of callers without a key by half of
    it. Who may ask for a round's jobs is for the caller of these methods to check, as is that the
    round is there.
    """

    def __init__(
        self,
        store: Store,
        *,
        waiting: int,
        beat_seconds: float = _BEAT_SECONDS,
        metrics: Metrics | None = None,
    ) -> None:
        self._store = store
        self._metrics = metrics or Metrics()
        self._limits = {True: waiting, False: max(1, waiting // 2)}
        self._beat_seconds = beat_seconds
        self._own: dict[str, _Own] = {}
        self._beating: asyncio.Task[None] | None = None
        self._threads = ThreadPool(_THREADS)
        self._reading = ThreadPool(
            1, waiting
        )  # of its own: whoever asks keeps no job from saying that it lives, or ends
        self._stopped = False

    async def start(self, seq: int, work: JobWork, *, keyed: bool) -> Job:
        """Start a job of a round, given by its place in the order of opening; return it, `queued`.

        Raises AnalysesBusyError when too many are under way or kept, RoundNotFoundError.
        """
        same = sum(own.keyed == keyed for own in self._own.values())
        if self._stopped or len(self._own) >= self._limits[True] or same >= self._limits[keyed]:
            raise AnalysesBusyError(f"{len(self._own)} jobs are under way, which is all that may")
        id, own = secrets.token_hex(16), _Own(keyed)
        self._own[id] = own
        try:
            await self._threads.run(lambda: self._store.jobs.add(id, seq, keyed=keyed))
        except BaseException:
            del self._own[id]
            raise
        own.task = asyncio.create_task(self._run(id, own, work))
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())
        return Job(id, "queued", 0.0)

    async def status(self, seq: int, id: str) -> Job:
        """Return a job of a round, whichever process works on it.

        Raises JobNotFoundError, and BusyError where too many ask.
        """
        found = await self._reading.run(lambda: self._store.jobs.find(seq, id))
        state, progress = found.state, found.progress
        if (own := self._own.get(id)) is not None and state in ("queued", "running"):
            state, progress = own.state, max(progress, own.progress)
        return Job(
            id, state, progress, found.result, _error(found.error) if state == "failed" else None
        )

    async def cancel(self, seq: int, id: str) -> None:
        """Cancel a job of a round; one that has ended stays what it is. Raises JobNotFoundError."""
        await self._threads.run(lambda: self._store.jobs.cancel(seq, id))
        if (own := self._own.get(id)) is not None and own.task is not None:
            own.task.cancel()

    async def stop(self) -> None:
        """End the jobs of this process: they fail."""
        self._stopped = True
        tasks = [own.task for own in self._own.values() if own.task is not None]
        tasks += [self._beating] if self._beating is not None else []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)
        await self._threads.drain(_STOP_SECONDS)
        await self._reading.drain(_STOP_SECONDS)

    async def _run(self, id: str, own: _Own, work: JobWork) -> None:
        result: bytes | None = None
        failure: Exception | None = None
        try:
            result = await work(own.tell)
        except asyncio.CancelledError:
            failure = AnalysisFailedError(
                "the server stopped meanwhile"
            )  # or it has ended already, as cancelled
        except (ServiceError, ParameterError) as error:
            failure = error
        except Exception:  # noqa: BLE001  the caller reads of it later
            _log.exception("a job failed")
            failure = AnalysisFailedError("the server's log says why")
        try:
            self._metrics.jobs.labels(_state(failure)).inc()
            if failure is None:
                await self._threads.run(lambda: self._store.jobs.end(id, "done", result=result))
            else:
                said = json.dumps([type(failure).__name__, str(failure)])
                await self._threads.run(lambda: self._store.jobs.end(id, "failed", error=said))
        except ServiceError as error:
            _log.warning("the end of a job could not be written: %s", error)
        except Exception:  # noqa: BLE001  nobody waits for this task, and nobody would hear of it
            _log.exception("the end of a job could not be written")
        finally:
            del self._own[id]

    async def _beat(self) -> None:
        while self._own:
            await asyncio.sleep(self._beat_seconds)
            progress = {
                id: (own.state, own.progress)
                for id, own in self._own.items()
                if own.task is not None
            }
            try:
                # awaited here
                over = await self._threads.run(lambda: self._store.jobs.beat(progress))  # noqa: B023
            except ServiceError:
                continue
            except Exception:  # noqa: BLE001  it must outlive any fault: every job would read as failed
                _log.exception("that jobs are alive could not be written")
                continue
            for id in over:
                if (own := self._own.get(id)) is not None and own.task is not None:
                    own.task.cancel()


def _state(failure: Exception | None) -> str:
    return "done" if failure is None else "failed"


def _error(said: str | None) -> ServiceError | LDPRecoverError:
    if said is None:
        return AnalysisFailedError("the process that worked on it has ended")
    name, text = json.loads(said)
    classes: list[type[ServiceError | LDPRecoverError]] = [ParameterError, *service_errors()]
    known = {cls.__name__: cls for cls in classes}
    return known.get(name, AnalysisFailedError)(text)
