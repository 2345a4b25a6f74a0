"""Running cells: here or in worker processes, a few cells as one task, results as they come."""

import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context

from ldprecover.plugins import loaded
from ldprecover.recovery import METHODS
from ldprecover_attacker.plugins import load
from ldprecover_experiments.measures import MethodSpec, Outcome, in_process, measured, outcomes
from ldprecover_experiments.poisoned_round import draw_round
from ldprecover_experiments.setting import Cell, Crowd

__all__ = ["Done", "Work", "run_cells", "tasks_of"]

Done = list[tuple[Cell, list[Outcome]]]

_TASK = 10


@dataclass(frozen=True)
class Work:
    """What is done with a cell: whose users, from which seed, and which methods are measured.

    Without `methods` they are those of the paper's evaluation.
    """

    crowds: Mapping[str, Crowd]
    seed: int
    methods: Sequence[MethodSpec] = ()

    @property
    def reads_reports(self) -> bool:
        """Whether some method reads the reports, so that all are really made."""
        return any("reports" in METHODS[spec.method].needs for spec in self.methods)

    def run(self, cell: Cell) -> list[Outcome]:
        """Simulate one cell and measure every method on it."""
        round_ = draw_round(cell, self.crowds[cell.data], self.seed, reports=self.reads_reports)
        if self.methods:
            return list(measured(round_, self.methods, cell.eta))
        return list(outcomes(round_, in_process(round_), eta=cell.eta, xi=cell.xi, trial=cell.trial))


_shared: Work | None = None  # of a worker process


def run_cells(
    cells: Sequence[Cell], work: Work, jobs: int, finishing: Callable[[], None] = lambda: None
) -> Generator[Done, None, None]:
    """Yield the cells with their outcomes, some at a time, in any order; with one job in this process.

    Ctrl-C is for this process; its workers, which never see it, end when the iterator is closed. `finishing` is
    called when that has to wait for cells under way.
    """
    tasks = tasks_of(cells)
    if jobs == 1:
        for task in tasks:
            yield [(cell, work.run(cell)) for cell in task]
        return
    # A spawned worker has no thread of this process's. It does not take Ctrl-C from its first moment on.
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
                yield future.result()
    finally:
        if waiting:
            finishing()
        pool.shutdown(cancel_futures=True)


def tasks_of(cells: Sequence[Cell]) -> list[Sequence[Cell]]:
    """Return the cells in short lists: what is lost at most when a process is interrupted."""
    return [cells[start : start + _TASK] for start in range(0, len(cells), _TASK)]


def _begin(work: Work, plugins: Sequence[str]) -> None:
    global _shared  # noqa: PLW0603  what an initializer is for
    if plugins:
        load(plugins)
    _shared = work


def _run(task: Sequence[Cell]) -> Done:
    assert _shared is not None
    return [(cell, _shared.run(cell)) for cell in task]
