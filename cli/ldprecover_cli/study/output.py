"""Runs cells into the file of a folder, with a bar, and prints tables of results."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ldprecover_cli.errors import file_errors
from ldprecover_cli.output import console, note, plain, plain_table
from ldprecover_cli.signals import end_on_signals

if TYPE_CHECKING:
    from ldprecover_experiments.simulation.tables import Table
    from ldprecover_experiments.studies.cells import Cell
    from ldprecover_experiments.studies.measures import Outcome
    from ldprecover_experiments.studies.runs import Work
    from ldprecover_experiments.studies.tables import Summary

Data = Annotated[
    list[str] | None,
    Option(
        help="cities, fire, emoji, ipums-like, fire-like, zipf, bump, geometric, or a CSV or "
        "Parquet file, such as your IPUMS extract; repeat for several.",
        metavar="NAME|FILE",
    ),
]
Jobs = Annotated[
    int | None, Option(min=1, max=256, help="Worker processes. Default: one for each core.")
]
Output = Annotated[
    Path,
    Option("--output", "-o", help="Folder for results; existing results in it are continued."),
]
Trials = Annotated[int, Option(min=1, max=10_000, help="Trials of each setting.")]
Users = Annotated[
    int | None,
    Option(
        min=1,
        help="Genuine users, n. Default: the paper's number; for other data, one for each row.",
    ),
]


@contextmanager
def running(out: Path) -> Iterator[None]:
    """Run a study, whose results are in this folder, and say at the end how long it took.

    Signals end it cleanly.
    """
    started = time.monotonic()
    with end_on_signals():
        yield
    note(f"Took {time.monotonic() - started:.0f} s. The results are in {out}.")


def run_missing(
    out: Path, jobs: int | None, cells: "Sequence[Cell]", work: "Work"
) -> "dict[Cell, list[Outcome]]":
    """Run the cells that the folder's file lacks, with a bar; return all outcomes.

    They run in processes of this machine, no more than there are cells. Raises UsageError if the
    folder cannot be made.
    """
    from ldprecover_client import progress_bar
    from ldprecover_experiments.errors import ExperimentError
    from ldprecover_experiments.studies.cell_file import CellFile
    from ldprecover_experiments.studies.runs import run_cells

    with file_errors("make the folder", out):
        out.mkdir(parents=True, exist_ok=True)
    file = CellFile(out / "cells.jsonl")
    missing = [cell for cell in cells if file.of(work, cell) is None]
    processes = max(1, min(jobs or os.cpu_count() or 1, len(missing)))
    running = run_cells(missing, work, processes, lambda: note("Finishing the cells under way."))
    done = 0
    with closing(running):
        try:
            if missing:
                with progress_bar("cells") as on_progress:
                    on_progress(0, len(missing))
                    for finished in running:
                        file.add(work, finished)
                        done += len(finished)
                        on_progress(done, len(missing))
        except (KeyboardInterrupt, SystemExit, ExperimentError) as stopped:
            stopped.add_note(f"{done} of {len(missing)} cells were run; the same command continues")
            raise
    return {cell: file.of(work, cell) or [] for cell in cells}


def write_means(out: Path, outcomes: "Mapping[Cell, Sequence[Outcome]]") -> "Summary":
    """Write summary.csv into the folder, and return the means."""
    from ldprecover_experiments.studies.cell_file import replaced
    from ldprecover_experiments.studies.tables import summarise, summary_csv

    summary = summarise(outcomes)
    replaced(out / "summary.csv", summary_csv(summary))
    return summary


def show(tables: "Iterable[Table]") -> None:
    """Print tables, each below its title."""
    out = console()
    for each in tables:
        out.print(plain(each.title), style="italic")
        out.print(plain_table(*each.columns, rows=each.rows, numbers=each.numbers, no_wrap=True))
        out.print()
