"""Running cells: here or in worker processes, a few cells as one task, results as they come."""

import hashlib
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context

from ldprecover.plugins import loaded
from ldprecover_attacker.plugins import load
from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.measures import MethodSpec, Outcome, in_process, measured, outcomes, reckoned
from ldprecover_experiments.poisoned_round import draw_round
from ldprecover_experiments.setting import Cell, Crowd

__all__ = ["Done", "Work", "run_cells", "tasks_of", "workers"]

Done = list[tuple[Cell, list[Outcome]]]

_TASK = 10


@dataclass(frozen=True)
class Work:
    """What is done with a cell: whose users, from which seed, and which methods are measured.

    Without `methods` they are those of the paper's evaluation. With `floors` what no method can do
    better than is measured as well. `drift` is that since the earlier round, for methods that are
    given one.
    """

    crowds: Mapping[str, Crowd]
    seed: int
    methods: Sequence[MethodSpec] = ()
    floors: bool = False
    drift: float = 0.0

    @property
    def reads_reports(self) -> bool:
        """Whether some method reads the reports, so that all are really made."""
        return any(spec.reads_reports for spec in self.methods)

    @property
    def door(self) -> str:
        """What tells the rows of these methods in a file of cells from those of others."""
        said = [spec.text for spec in self.methods]
        if self.floors:
            said.append(f"floors, drift {self.drift:g}")
        return "methods " + hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]

    def run(self, cell: Cell) -> list[Outcome]:
        """Simulate one cell and measure every method on it."""
        drift = self.drift if any(spec.history for spec in self.methods) else None
        round_ = draw_round(cell, self.crowds[cell.data], self.seed, reports=self.reads_reports, drift=drift)
        if self.methods:
            return [*measured(round_, self.methods, cell.eta), *(reckoned(round_) if self.floors else ())]
        return list(outcomes(round_, in_process(round_), eta=cell.eta, xi=cell.xi, trial=cell.trial))


_shared: Work | None = None  # of a worker process


def run_cells(
    cells: Sequence[Cell], work: Work, jobs: int, finishing: Callable[[], None] = lambda: None
) -> Generator[Done, None, None]:
    """Yield the cells with their outcomes, some at a time, in any order; with one job in this process.

    Ctrl-C is for this process; its workers, which never see it, end when the iterator is closed.
    `finishing` is called when that has to wait for cells under way.
    """
    tasks = tasks_of(cells, 1 if work.reads_reports else _TASK)
    if jobs == 1:
        for task in tasks:
            yield [(cell, work.run(cell)) for cell in task]
        return
    # A spawned worker has no thread of this process's. It does not take Ctrl-C from its first
    # moment on.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (work, loaded()))
    waiting: set[Future[Done]] = set()
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            waiting = {pool.submit(_run, task) for task in tasks}
        finally:
            signal.signal(signal.SIGINT, before)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                try:
                    yield future.result()
                except BrokenProcessPool as error:
                    raise ExperimentError(
                        "a process that worked on cells has ended: it was killed, or a plugin ended it. What was done "
                        "before is kept, and the same command goes on from there"
                    ) from error
    finally:
        if waiting:
            finishing()
        pool.shutdown(cancel_futures=True)


def workers(jobs: int) -> ProcessPoolExecutor:
    """Return so many processes that know this one's plugins; Ctrl-C is for this process alone."""
    return ProcessPoolExecutor(jobs, get_context("spawn"), _begin_plain, (loaded(),))


def tasks_of(cells: Sequence[Cell], size: int = _TASK) -> list[Sequence[Cell]]:
    """Return the cells in short lists: what is lost at most when a process is interrupted."""
    return [cells[start : start + size] for start in range(0, len(cells), size)]


def _begin(work: Work, plugins: Sequence[str]) -> None:
    global _shared  # noqa: PLW0603  what an initializer is for
    if plugins:
        load(plugins, failed=lambda _: None)  # a name may be that of two, of which this process has one
    _shared = work


def _begin_plain(plugins: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if plugins:
        load(plugins)


def _run(task: Sequence[Cell]) -> Done:
    assert _shared is not None
    return [(cell, _shared.run(cell)) for cell in task]
