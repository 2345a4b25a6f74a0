"""Runs studies into a folder, with a bar, and prints tables of results."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from typer import Option

from ldprecover_cli.errors import file_errors
from ldprecover_cli.output import WIDEST, console, note, plain, plain_table, print_whole
from ldprecover_cli.signals import end_on_signals

if TYPE_CHECKING:
    from ldprecover_experiments import Results, Study
    from ldprecover_experiments.simulation.tables import TextTable

T = TypeVar("T")
Progress = Callable[[int, int], None]

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
Wide = Annotated[bool, Option("--wide", help="Draw figures 7 inches wide, not 3.5.")]


@contextmanager
def run_into(folder: Path, run: Callable[[Progress], T]) -> Iterator[T]:
    """Make a folder and run a study with a bar; yield its results.

    Signals end it cleanly. At the end it says how long all took. Raises UsageError if the folder
    cannot be made.
    """
    from ldprecover_client import progress_bar
    from ldprecover_experiments.simulation.drawing import has_matplotlib

    started = time.monotonic()
    with file_errors("make the folder", folder):
        folder.mkdir(parents=True, exist_ok=True)
    with end_on_signals():
        with progress_bar("rounds") as on_progress:
            results = run(on_progress)
        yield results
    if not has_matplotlib():
        note("Figures need matplotlib: pip install 'ldprecover[experiments]'")
    note(f"Took {time.monotonic() - started:.0f} s. The results are in {folder}.")


def run_cells(
    folder: Path, studies: "Sequence[Study]", jobs: int | None, on_progress: Progress
) -> "list[Results]":
    """Run the cells that the folder lacks, and return the results of each study."""
    from ldprecover_experiments.studies.rows import RowFile
    from ldprecover_experiments.studies.study import run_studies

    return run_studies(
        studies,
        number_of(jobs),
        on_progress,
        file=RowFile(folder / "cells.jsonl"),
        on_finishing=lambda: note("Finishing the cells under way."),
    )


def number_of(jobs: int | None) -> int:
    """Return the number of worker processes of the option --jobs."""
    return jobs or os.cpu_count() or 1


def show(tables: "Iterable[TextTable]") -> None:
    """Print tables, each below its title."""
    out = console()
    for each in tables:
        table = plain_table(*each.columns, rows=each.rows, numbers=each.numbers, no_wrap=WIDEST)
        out.print(plain(each.title), style="italic")
        print_whole(out, table)
        out.print()
