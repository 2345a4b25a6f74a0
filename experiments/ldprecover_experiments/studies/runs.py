"""Runs of cells in this process or in several."""

import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice

from ldprecover_attacker.plugins import load_keys, loaded_keys
from ldprecover_experiments.simulation.parameters import malicious_users
from ldprecover_experiments.studies.cells import Cell, GenuineUsers, simulate_round
from ldprecover_experiments.studies.measures import (
    GENUINE,
    POISONED,
    Estimator,
    Outcome,
    measure,
)
from ldprecover_experiments.studies.paper import estimators
from ldprecover_experiments.studies.processes import processes
from ldprecover_experiments.studies.specs import MethodSpec

Done = list[tuple[Cell, list[Outcome]]]

_TASK = 10
"""Cells of a task if no method reads reports; else a task is one cell."""
_QUEUED = 2
"""Tasks queued for each worker, so that no worker waits for this process."""


@dataclass(frozen=True)
class Work:
    """The work on each cell: the users, the seed and the methods to measure.

    Without `methods` they are those of the paper's evaluation.
    """

    users_by_data: Mapping[str, GenuineUsers]
    seed: int
    methods: Sequence[MethodSpec] = ()

    @property
    def reads_reports(self) -> bool:
        """Whether some method reads the reports, so that all are made."""
        return any(spec.reads_reports for spec in self.methods)

    def reports(self, cell: Cell) -> int:
        """Return the number of reports to make, on average over the assignments of a form.

        All other counts are drawn from their law.
        """
        n, reads = self.users_by_data[cell.data].n, self.reads_reports
        m = malicious_users(n, cell.beta) if reads or cell.attack.model == "crafted" else 0
        m //= cell.questions if cell.assign == "ticket" else 1
        return m + n // cell.questions if reads else m

    @cached_property
    def variant(self) -> str:
        """The key of these methods in a file of cells: the hash of their JSON."""
        if not self.methods:
            return "paper"
        lines = [
            spec.model_dump_json(exclude=None if spec.code else {"code"}) for spec in self.methods
        ]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    def run(self, cell: Cell) -> list[Outcome]:
        """Simulate one cell and measure every method on it."""
        round_ = simulate_round(
            cell,
            self.users_by_data[cell.data],
            self.seed,
            reports=self.reads_reports,
            earlier=any(spec.history for spec in self.methods),
        )
        chosen: Iterable[Estimator] = estimators(round_, cell.xi, cell.trial)
        if self.methods:
            chosen = (GENUINE, POISONED, *self.methods)
        return list(measure(round_, chosen, cell.eta))


def run_cells(
    cells: Sequence[Cell],
    work: Work,
    jobs: int,
    on_finishing: Callable[[], None] = lambda: None,
) -> Generator[Done, None, None]:
    """Yield the cells with their outcomes, in any order.

    One job runs them in this process, more in worker processes. These ignore Ctrl-C and end when
    the iterator is closed; `on_finishing` is called if that has to wait for running cells. Raises
    ExperimentError if a process ends.
    """
    waiting = iter(tasks_of(cells, 1 if work.reads_reports else _TASK))
    if jobs == 1:
        yield from (_run(work, task) for task in waiting)
        return
    with processes(jobs, partial(load_keys, loaded_keys()), on_finishing) as executor:
        pending: set[Future[Done]] = set()
        while True:
            free = _QUEUED * jobs - len(pending)
            pending |= {executor.submit(_run, work, task) for task in islice(waiting, max(0, free))}
            if not pending:
                return
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def tasks_of(cells: Sequence[Cell], size: int = _TASK) -> list[Sequence[Cell]]:
    """Return the cells in lists of `size`: an interruption loses one list for each process."""
    return [cells[start : start + size] for start in range(0, len(cells), size)]


def _run(work: Work, task: Sequence[Cell]) -> Done:
    done = []
    for cell in task:
        try:
            done.append((cell, work.run(cell)))
        except Exception as error:
            error.add_note(f"in the cell {cell.columns}")
            raise
    return done
