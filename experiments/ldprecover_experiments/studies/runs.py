"""Runs of cells, in this process or in several."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ldprecover_attacker.plugins import load_keys, loaded_keys
from ldprecover_experiments.studies.cells import Cell, GenuineUsers, simulate_round
from ldprecover_experiments.studies.evaluation import estimators
from ldprecover_experiments.studies.measures import (
    GENUINE,
    POISONED,
    Estimator,
    MethodOutcome,
    measure,
)
from ldprecover_experiments.studies.processes import processes
from ldprecover_experiments.studies.records import environment
from ldprecover_experiments.studies.rows import CellRow
from ldprecover_experiments.studies.specs import MethodSpec

T = TypeVar("T")
Task = Callable[[], list[CellRow]]
"""Runs some cells; an interruption loses one task for each process."""

_CELLS = 10
"""Cells of a task if no method reads reports; else a task is one cell."""


def tasks_of(
    rows: Sequence[CellRow],
    users_by_data: Mapping[str, GenuineUsers],
    methods: Sequence[MethodSpec],
) -> list[Task]:
    """Return the tasks that run these rows with these methods."""
    size = 1 if any(spec.reads_reports for spec in methods) else _CELLS
    return [
        partial(_run_rows, rows[start : start + size], users_by_data, methods)
        for start in range(0, len(rows), size)
    ]


def run_tasks(
    tasks: Sequence[Callable[[], T]], jobs: int, on_finishing: Callable[[], None]
) -> Generator[T, None, None]:
    """Yield what each task returns, in any order.

    One job runs in this process. Worker processes ignore Ctrl-C and end when the iterator is
    closed; `on_finishing` is called if that has to wait for their tasks. Raises ExperimentError if
    a process ends.
    """
    if jobs <= 1:
        yield from (task() for task in tasks)
        return
    with processes(jobs, partial(load_keys, loaded_keys()), on_finishing) as executor:
        for future in as_completed([executor.submit(task) for task in tasks]):
            yield future.result()


def _run_rows(
    rows: Sequence[CellRow],
    users_by_data: Mapping[str, GenuineUsers],
    methods: Sequence[MethodSpec],
) -> list[CellRow]:
    done = []
    for row in rows:
        try:
            outcomes = run_cell(row.cell, users_by_data[row.cell.data], row.seed, methods)
        except Exception as error:
            error.add_note(f"in the cell {row.cell.title}")
            raise
        done.append(replace(row, outcomes=outcomes, environment=environment()))
    return done


def run_cell(
    cell: Cell, genuine_users: GenuineUsers, seed: int, methods: Sequence[MethodSpec]
) -> list[MethodOutcome]:
    """Simulate one cell and measure methods on it; without any, those of the paper's evaluation."""
    round_ = simulate_round(
        cell,
        genuine_users,
        seed,
        reports=any(spec.reads_reports for spec in methods),
        earlier=any(spec.history for spec in methods),
    )
    if methods:
        chosen: Iterable[Estimator] = (GENUINE, POISONED, *methods)
    else:
        chosen = estimators(round_, cell.xi, cell.trial)
    return list(measure(round_, chosen, cell.eta))
