"""Running cells: here or in worker processes, a few cells as one task, results as they come."""

import signal
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context

from ldprecover_cli.output import note
from ldprecover_cli.reproduce.cells import Cell, Crowd
from ldprecover_cli.reproduce.methods import Outcome, in_process, outcomes
from ldprecover_cli.reproduce.simulated import draw_round

__all__ = ["Done", "run_cell", "run_cells", "tasks_of"]

Done = list[tuple[Cell, list[Outcome]]]
Progress = Callable[[int, int], None]

_TASK = 10

_shared: tuple[dict[str, Crowd], int] | None = None  # of a worker process


def run_cell(cell: Cell, crowd: Crowd, seed: int) -> list[Outcome]:
    """Simulate one cell and measure every method on it."""
    round_ = draw_round(cell, crowd, seed)
    return list(outcomes(round_, cell, in_process(round_)))


def run_cells(cells: list[Cell], crowds: dict[str, Crowd], seed: int, jobs: int) -> Generator[Done, None, None]:
    """Yield the cells with their outcomes, some at a time, in any order; with one job in this process.

    Ctrl-C is for this process; its workers, which never see it, end when the iterator is closed.
    """
    tasks = tasks_of(cells)
    if jobs == 1:
        for task in tasks:
            yield [(cell, run_cell(cell, crowds[cell.data], seed)) for cell in task]
        return
    # A spawned worker has no thread of this process's. It does not take Ctrl-C from its first moment on.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (crowds, seed))
    waiting: set[Future[Done]] = set()
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            waiting = {pool.submit(_work, task) for task in tasks}
        finally:
            signal.signal(signal.SIGINT, before)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        if waiting:
            note("Finishing the cells under way.")
        pool.shutdown(cancel_futures=True)


def tasks_of(cells: list[Cell]) -> list[list[Cell]]:
    """Return the cells in short lists: what is lost at most when a process is interrupted."""
    return [cells[start : start + _TASK] for start in range(0, len(cells), _TASK)]


def _begin(crowds: dict[str, Crowd], seed: int) -> None:
    global _shared  # noqa: PLW0603  what an initializer is for
    _shared = crowds, seed


def _work(task: list[Cell]) -> Done:
    assert _shared is not None
    crowds, seed = _shared
    return [(cell, run_cell(cell, crowds[cell.data], seed)) for cell in task]
