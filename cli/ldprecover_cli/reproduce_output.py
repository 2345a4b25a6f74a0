"""What every run of cells does at the terminal: a folder, a bar, tables, and what to say when it is
stopped.
"""

from collections.abc import Generator, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ldprecover_cli.errors import CommandError, UsageError
from ldprecover_cli.output import console, note, plain, plain_table

if TYPE_CHECKING:
    from ldprecover_experiments.parameters import Cell
    from ldprecover_experiments.run_file import CellContext, CellFile
    from ldprecover_experiments.runs import Done
    from ldprecover_experiments.tables import Table


def check_packages() -> None:
    """Raise CommandError where a package that figures or files need is not installed."""
    for package in ("matplotlib", "pyarrow"):
        if find_spec(package) is None:
            raise CommandError(
                f"reproduce needs {package}: install it with `pip install "
                "'ldprecover[experiments]'`"
            )


def make_folder(out: Path) -> None:
    """Make the folder of results. Raises UsageError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {out}: {error.strerror}") from error


def finishing() -> None:
    """Say that cells under way are waited for."""
    note("Finishing the cells under way.")


def run_missing(
    missing: "Sequence[Cell]",
    run: "CellContext",
    results: "CellFile",
    running: "Generator[Done, None, None]",
) -> None:
    """Run what is missing, into the file of cells, with a bar."""
    from ldprecover_client import progress_bar

    if not missing:
        return
    done = 0
    try:
        with progress_bar("cells") as progress:
            progress(0, len(missing))
            for some in running:
                results.add(run, some)
                done += len(some)
                progress(done, len(missing))
    except (KeyboardInterrupt, SystemExit) as stopped:
        stopped.add_note(f"{done} of {len(missing)} cells were run; the same command continues")
        raise
    finally:
        running.close()


def show(tables: "Iterable[Table]") -> None:
    """Print tables, each below its title."""
    screen = console()
    for each in tables:
        table = plain_table(*map(plain, each.columns), numbers=each.numbers)
        table.columns[0].no_wrap = True
        for row in each.rows:
            table.add_row(*map(plain, row))
        screen.print(plain(each.title), style="italic")
        screen.print(table)
        screen.print()
