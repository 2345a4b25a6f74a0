"""The child processes of a server process: so many at once, each with its deadline, and others for
the dead.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ldprecover_server.analysis.admission import AdmissionQueue
from ldprecover_server.analysis.tasks import Task
from ldprecover_server.analysis.worker import Cluster, Limits
from ldprecover_server.analysis.worker_process import WorkerProcess
from ldprecover_server.errors import AnalysesBusyError, AnalysisFailedError, AnalysisTimeoutError
from ldprecover_server.metrics import Metrics

_log = logging.getLogger(__name__)

OnProgress = Callable[[float], None]
"""Called in the event loop with what is done, from 0 to 1, growing."""

Prepare = Callable[[], tuple[Task, Iterable[bytes] | None]]
"""Returns a question, and the packed reports of the same moment where it reads them; called in a
thread.
"""

_STOP_SECONDS = 1.0


def _ignore(progress: float) -> None:
    pass


@dataclass(eq=False)
class _Run:
    child: WorkerProcess
    keyed: bool
    answered: "asyncio.Future[bytes]"
    on_progress: OnProgress = field(default=_ignore)


class WorkerPool:
    """A fixed number of child processes and a queue before them; for one event loop.

    `seconds` is how long an analysis may take for a caller without a key, `key_seconds` for one
    with a key; each also waits at most as long for its turn. `memory_bytes` is what an analysis may
    take above what a child holds at rest, `disk_bytes` how many bytes of reports it may lay down in
    a temporary file. Where a `cluster` is given, its workers read rounds that are large enough.
    """

    def __init__(
        self,
        count: int,
        *,
        waiting: int,
        seconds: float,
        key_seconds: float,
        memory_bytes: int,
        disk_bytes: int,
        metrics: Metrics,
        cluster: Cluster | None = None,
    ) -> None:
        self._cluster = cluster
        self._turns = AdmissionQueue(count, waiting)
        self._seconds = {False: seconds, True: key_seconds}
        self._memory_bytes, self._disk_bytes = memory_bytes, disk_bytes
        self._metrics = metrics
        self._count = count
        self._idle: list[WorkerProcess | None] = []
        """Of the places that are free; None where no process has been started yet, or could not be.
        """
        self._runs: set[_Run] = set()
        self._nobody_runs = asyncio.Event()
        self._stopped = True

    @property
    def waiting(self) -> int:
        """Analyses that wait for their turn."""
        return self._turns.waiting

    @property
    def pids(self) -> set[int]:
        """Process numbers of the children that live."""
        children = [*self._idle, *(run.child for run in self._runs)]
        return {child.pid for child in children if child is not None and not child.is_over}

    def start(self) -> None:
        """Begin to take questions. A process is started when there is a question for it, and then
        stays.
        """
        self._nobody_runs.set()
        self._stopped = False
        self._idle = [None] * self._count

    async def stop(self) -> None:
        """Kill the processes; what is under way fails."""
        self._stopped = True
        for run in self._runs:
            run.child.kill()
        try:
            await asyncio.wait_for(self._nobody_runs.wait(), _STOP_SECONDS)
        except TimeoutError:
            _log.warning("an analysis still waits for the database")
        while self._idle:
            child = self._idle.pop()
            if child is not None:
                child.close()

    async def run(
        self, prepare: Prepare, *, keyed: bool = False, on_progress: OnProgress = _ignore
    ) -> bytes:
        """Return the packed answer to a question. Cancelling this kills the process that works on
        it.

        The question is prepared when its turn has come. Raises AnalysesBusyError when too many
        wait, AnalysisTimeoutError, AnalysisTooLargeError, AnalysisFailedError, ParameterError, and
        what `prepare` raises.
        """
        self._check_running()
        seconds = self._seconds[keyed]
        with self._metrics.analyses_waiting.track_inprogress():
            await self._turns.take(keyed=keyed, seconds=seconds)
        try:
            run = self._begin(prepare, keyed, on_progress)
        except BaseException:
            self._turns.give_back(keyed=keyed)
            raise
        began = time.monotonic()
        self._metrics.analyses_running.inc()
        try:
            on_progress(0.0)  # its turn has come
            await asyncio.wait([run.answered], timeout=seconds)
            if not run.answered.done():
                raise AnalysisTimeoutError(f"it was given up after {seconds:g} seconds")
            return run.answered.result()
        finally:
            if not run.answered.done():
                run.child.kill()
                run.answered.cancel()
            elif not run.answered.cancelled():
                run.answered.exception()  # looked at, also where the caller went as it came
            self._metrics.analyses_running.dec()
            self._metrics.analysis_seconds.observe(time.monotonic() - began)

    def _check_running(self) -> None:
        if self._stopped:
            raise AnalysesBusyError("the server stops")

    def _begin(self, prepare: Prepare, keyed: bool, on_progress: OnProgress) -> _Run:
        self._check_running()
        loop = asyncio.get_running_loop()
        child = self._idle.pop()
        try:
            if child is None or child.is_over:
                if child is not None:
                    child.close()
                    child = None
                child = WorkerProcess()
            run = _Run(child, keyed, loop.create_future(), on_progress)
            # A daemon: should the database hang, it keeps no server from ending.
            talk = threading.Thread(
                target=self._talk, args=(loop, run, prepare), name="analysis", daemon=True
            )
            talk.start()
        except (OSError, RuntimeError) as error:
            self._idle.append(child)
            raise AnalysisFailedError(f"no process could be started for it: {error}") from error
        self._runs.add(run)
        self._nobody_runs.clear()
        return run

    def _talk(self, loop: asyncio.AbstractEventLoop, run: _Run, prepare: Prepare) -> None:
        """Ask the child, in a thread; its place is free again when all of this has ended."""

        def tell(progress: float) -> None:
            _call(loop, lambda: None if run.answered.done() else run.on_progress(progress))

        answer, failure = b"", None
        try:
            question, pieces = prepare()
            limits = Limits(
                self._seconds[run.keyed], self._memory_bytes, self._disk_bytes, self._cluster
            )
            answer = run.child.ask(question, limits, pieces, tell)
        except BaseException as error:  # noqa: BLE001  raised where the answer is awaited
            failure = error
        child: WorkerProcess | None = run.child
        if run.child.is_over:
            run.child.close()
            child = self._another()
        _call(loop, lambda: self._end(run, child, answer, failure))

    def _another(self) -> WorkerProcess | None:
        if self._stopped:
            return None
        try:
            return WorkerProcess()
        except OSError as error:
            _log.warning(
                "no process for analyses could be started: %s", error
            )  # it is tried again when one is needed
            return None

    def _end(
        self, run: _Run, child: WorkerProcess | None, answer: bytes, failure: BaseException | None
    ) -> None:
        self._runs.discard(run)
        if not run.answered.done():
            if failure is None:
                run.answered.set_result(answer)
            else:
                run.answered.set_exception(
                    AnalysesBusyError("the server stops") if self._stopped else failure
                )
        if self._stopped and child is not None:
            child.close()
            child = None
        self._idle.append(child)
        self._turns.give_back(keyed=run.keyed)
        if not self._runs:
            self._nobody_runs.set()


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
        loop.call_soon_threadsafe(callback)
