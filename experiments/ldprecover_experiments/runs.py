"""Running cells: here, in other processes or on a cluster, a few cells as one task, results as they
come.
"""

import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from itertools import islice

from ldprecover.plugins import loaded
from ldprecover.recovery.reports import number_of_workers
from ldprecover_attacker.plugins import load
from ldprecover_cluster import EngineError, Scheduler, engine
from ldprecover_experiments.errors import ExperimentError
from ldprecover_experiments.measures import (
    GENUINE,
    ORACLE_BOUNDS,
    POISONED,
    Estimator,
    MethodSpec,
    Outcome,
    measure,
)
from ldprecover_experiments.paper import estimators
from ldprecover_experiments.parameters import Cell, GenuineUsers
from ldprecover_experiments.poisoned_round import simulate_round

Done = list[tuple[Cell, list[Outcome]]]

_TASK = 10
_AHEAD = 2  # tasks handed to each worker before one of them is done


@dataclass(frozen=True)
class Work:
    """What is done with a cell: whose users, from which seed, and which methods are measured.

    Without `methods` they are those of the paper's evaluation. With `floors` what no method can do
    better than is measured as well. `drift` is that since the earlier round, for methods that are
    given one.
    """

    users_by_data: Mapping[str, GenuineUsers]
    seed: int
    methods: Sequence[MethodSpec] = ()
    floors: bool = False
    drift: float = 0.0

    @property
    def reads_reports(self) -> bool:
        """Whether some method reads the reports, so that all are really made."""
        return any(spec.reads_reports for spec in self.methods)

    @property
    def variant(self) -> str:
        """What tells the rows of these methods in a file of cells from those of others."""
        said = [spec.text for spec in self.methods]
        if self.floors:
            said.append(f"floors, drift {self.drift:g}")
        return "methods " + hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]

    def run(self, cell: Cell) -> list[Outcome]:
        """Simulate one cell and measure every method on it."""
        drift = self.drift if any(spec.history for spec in self.methods) else None
        round_ = simulate_round(
            cell, self.users_by_data[cell.data], self.seed, reports=self.reads_reports, drift=drift
        )
        chosen: Iterable[Estimator] = estimators(round_, cell.xi, cell.trial)
        if self.methods:
            bounds = ORACLE_BOUNDS if self.floors else ()
            chosen = (GENUINE, POISONED, *self.methods, *bounds)
        return list(measure(round_, chosen, cell.eta))


def run_cells(
    cells: Sequence[Cell],
    work: Work,
    jobs: int,
    finishing: Callable[[], None] = lambda: None,
    *,
    scheduler: Scheduler | None = None,
    tell: Callable[[str], None] = lambda said: None,
) -> Generator[Done, None, None]:
    """Yield the cells with their outcomes, some at a time, in any order; with one job in this
    process.

    With a `scheduler` the workers of its Dask cluster run them. Ctrl-C is for this process; its own
    workers, which never see it, end when the iterator is closed. `finishing` is called when that
    has to wait for cells under way. `tell` is told what keeps them waiting. Raises ExperimentError
    where those who run cells end or cannot be reached.
    """
    tasks = iter(tasks_of(cells, 1 if work.reads_reports else _TASK))
    try:
        with engine(
            jobs, scheduler, initializer=_plugins(), on_error=finishing, notify=tell
        ) as executor:
            if executor is None:
                for task in tasks:
                    yield _run(work, task)
                return
            waiting: set[Future[Done]] = set()
            while True:
                # So many that no worker waits for this process: it may be busy with what it is
                # given.
                free = _AHEAD * number_of_workers(executor) - len(waiting)
                waiting |= {
                    executor.submit(_run, work, task) for task in islice(tasks, max(0, free))
                }
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
    except EngineError as error:
        raise ExperimentError(
            f"{error}. What was done before is kept, and the same command goes on from there"
        ) from error


def tasks_of(cells: Sequence[Cell], size: int = _TASK) -> list[Sequence[Cell]]:
    """Return the cells in short lists: what is lost at most when a process is interrupted."""
    return [cells[start : start + size] for start in range(0, len(cells), size)]


def _plugins() -> Callable[[], None] | None:
    """Return what loads this process's plugins in a worker; None without any."""
    names = loaded()
    return partial(_load, names) if names else None


def _load(names: Sequence[str]) -> None:
    # Two plugins may share a name. The process that ran the command has loaded one of them, so a
    # failure here need not end the run.
    load(names, failed=lambda _: None)


def _run(work: Work, task: Sequence[Cell]) -> Done:
    return [(cell, work.run(cell)) for cell in task]
