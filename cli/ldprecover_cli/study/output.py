"""Runs cells into the file of a folder, with a bar, and prints tables of results."""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ldprecover_cli.errors import CommandError, UsageError, close_to
from ldprecover_cli.output import console, note, plain, plain_table

if TYPE_CHECKING:
    from ldprecover_cluster import Scheduler
    from ldprecover_experiments.measures import Outcome
    from ldprecover_experiments.parameters import Cell
    from ldprecover_experiments.run_file import CellFile
    from ldprecover_experiments.runs import Done, Work
    from ldprecover_experiments.tables import Summary, Table

T = TypeVar("T")


def check_packages() -> None:
    """Raise CommandError where a package that figures or files need is not installed."""
    for package in ("matplotlib", "pyarrow"):
        if find_spec(package) is None:
            raise CommandError(
                f"reproduce needs {package}: install it with `pip install "
                "'ldprecover[experiments]'`"
            )


@dataclass(frozen=True)
class RunOptions:
    """The options of `reproduce` that every run has."""

    only: Sequence[str]
    data: Sequence[str] | None
    column: str | None
    users: int | None
    trials: int
    seed: int
    out: Path
    jobs: int
    scheduler: "Scheduler | None"

    def selection(self, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return what --only names, by key: protocol=oue,olh. Raises UsageError."""
        selection: dict[str, tuple[str, ...]] = {}
        for one in self.only:
            key, equals, values = one.partition("=")
            if not equals or key not in keys:
                near = close_to(key, keys) or ", ".join(keys)
                raise UsageError(f"--only is KEY=NAME[,NAME], not {one!r}; {near}")
            selection[key] = selection.get(key, ()) + tuple(
                value.strip() for value in values.split(",") if value.strip()
            )
        return selection


def run_missing(
    options: RunOptions, cells: "Collection[Cell]", work: "Work", title: str | None = None
) -> "tuple[CellFile, dict[Cell, list[Outcome]]]":
    """Run the cells that the folder's file lacks, with a bar; return the file and all outcomes.

    They run in processes of this machine, no more than there are cells, on a cluster, or over HTTP.
    With a title, a note states the cost. Raises UsageError if the folder cannot be made.
    """
    from ldprecover_experiments.over_http import run_over_http
    from ldprecover_experiments.run_file import CellFile
    from ldprecover_experiments.runs import run_cells
    from ldprecover_experiments.unmixing_evaluation import cost

    file = CellFile(folder(options) / "cells.csv")
    missing = [cell for cell in cells if file.of(work, cell) is None]
    jobs = max(1, min(options.jobs, len(missing)))
    if title is not None:
        note(title + cost(missing, work, jobs))
    running = (
        run_over_http(missing, work)
        if work.over_http
        else run_cells(
            missing,
            work,
            jobs,
            lambda: note("Finishing the cells under way."),
            scheduler=options.scheduler,
            report_wait=note,
        )
    )

    def add(finished: "Done") -> int:
        file.add(work, finished)
        return len(finished)

    store_all(running, len(missing), add)
    return file, {cell: file.of(work, cell) or [] for cell in cells}


def folder(options: RunOptions) -> Path:
    """Make the folder for results and return it. Raises UsageError if it cannot be made."""
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {options.out}: {error.strerror}") from error
    return options.out


def store_all(running: "Generator[T, None, None]", number: int, add: "Callable[[T], int]") -> None:
    """Store the results of a run of `number` cells as they finish, with a bar.

    `add` stores a result and returns the number of its cells.
    """
    from ldprecover_client import progress_bar

    done = 0
    with closing(running):
        try:
            if number:
                with progress_bar("cells") as on_progress:
                    on_progress(0, number)
                    for finished in running:
                        done += add(finished)
                        on_progress(done, number)
        except (KeyboardInterrupt, SystemExit) as stopped:
            stopped.add_note(f"{done} of {number} cells were run; the same command continues")
            raise


def write_means(
    out: Path, file: "CellFile", outcomes: "Mapping[Cell, Sequence[Outcome]]"
) -> "Summary":
    """Write cells.parquet and summary.csv into the folder, and return the means."""
    from ldprecover_experiments.run_file import replaced
    from ldprecover_experiments.tables import summarise, summary_csv

    summary = summarise(outcomes)
    replaced(out / "cells.parquet", file.parquet())
    replaced(out / "summary.csv", summary_csv(summary))
    return summary


def show(tables: "Iterable[Table]") -> None:
    """Print tables, each below its title."""
    screen = console()
    for each in tables:
        screen.print(plain(each.title), style="italic")
        screen.print(plain_table(*each.columns, rows=each.rows, numbers=each.numbers, no_wrap=True))
        screen.print()
