"""`reproduce`: the command."""

import os
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldprecover_cli.failures import CommandError, UsageError, close_to
from ldprecover_cli.options import Column, Seed
from ldprecover_cli.output import console, counted, note
from ldprecover_cli.signals import ended_by_signals

if TYPE_CHECKING:
    from ldprecover_cli.reproduce.cells import Cell, Crowd
    from ldprecover_cli.reproduce.results import Results, Run

__all__ = ["add_to"]

_BRIEF = ("table1", "mse", "fg", "km")
"""What `all` prints; the sweeps are pictures, and their means are in the file."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reproduce)


def reproduce(
    what: Annotated[
        list[str] | None, typer.Argument(help="Tables and figures; all by default.", metavar="WHAT")
    ] = None,
    *,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="cities, fire, emoji, or a CSV file, such as your own IPUMS; give it once for each. "
            "By default cities and fire.",
            metavar="NAME|FILE",
        ),
    ] = None,
    column: Column = None,
    users: Annotated[
        int | None,
        typer.Option(
            min=1, help="Genuine users, n. By default the paper's number, for other data as many as they have."
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, max=10_000, help="Trials of each setting.")] = 10,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="Folder for results; one with results in it is gone on with.")] = Path(
        "reproduction"
    ),
    jobs: Annotated[int | None, typer.Option(min=1, max=256, help="Processes. By default one a core.")] = None,
    over_http: Annotated[
        bool, typer.Option("--over-http", help="Send every report to a real server of the command's own.")
    ] = False,
) -> None:
    """Rerun the paper's evaluation: its tables and figures, from the cells up.

    They are table1, mse, fg, malicious, sweep-beta, sweep-epsilon, sweep-eta,
    ipa, km, multi, and all of them. The folder gets cells.csv and
    cells.parquet, a row for each cell and method, summary.csv, the means over
    the trials, and the figures as PNG and SVG. A cell that is in the folder is
    not run again: after Ctrl-C the same command goes on.

    Example: ldprecover reproduce table1 mse --out results

    Example: ldprecover reproduce all --data ipums.csv --column CITY --jobs 2

    Example: ldprecover reproduce mse --data cities --users 20000 --trials 1 --over-http
    """
    _check_packages()
    from ldprecover_cli.reproduce.cells import load_crowd
    from ldprecover_cli.reproduce.experiments import EXPERIMENTS, cells_of
    from ldprecover_cli.reproduce.results import Results, Run

    started = time.monotonic()
    asked = _asked(what or ["all"], tuple(EXPERIMENTS))
    crowds: dict[str, Crowd] = {}
    for name in data or ("cities", "fire"):
        crowd = load_crowd(name, column, users)
        if crowd.name in crowds:
            raise UsageError(f"two data sets are called {crowd.name}: rename one, its name is in the results")
        crowds[crowd.name] = crowd
    cells = cells_of(asked, crowds, trials)
    if over_http:
        cells, asked = _that_travel(cells, asked, tuple(crowds))
    _make_folder(out)
    results = Results(out / "cells.csv")
    run = Run({c.name: (c.digest, c.n) for c in crowds.values()}, seed, "http" if over_http else "in-process")
    with ended_by_signals():
        _run_missing(cells, crowds, run, results, 1 if over_http else jobs or os.cpu_count() or 1)
        _write(cells, asked, tuple(crowds), run, results, out, brief=len(asked) == len(EXPERIMENTS))
    note(f"Took {time.monotonic() - started:.0f} s. The results are in {out}.")


def _asked(what: list[str], known: tuple[str, ...]) -> tuple[str, ...]:
    for name in what:
        if name not in known and name != "all":
            near = close_to(name, known) or f"there are {', '.join(known)} and all"
            raise UsageError(f"there is no table or figure {name!r}; {near}")
    return known if "all" in what else tuple(name for name in known if name in what)


def _check_packages() -> None:
    for package in ("matplotlib", "pyarrow"):
        if find_spec(package) is None:
            raise CommandError(f"reproduce needs {package}: install it with `pip install 'ldprecover[experiments]'`")


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {out}: {error.strerror}") from error


def _that_travel(
    cells: "list[Cell]", asked: tuple[str, ...], data: tuple[str, ...]
) -> "tuple[list[Cell], tuple[str, ...]]":
    """Return the cells that can go over HTTP, and the experiments that have any; say how many are left out."""
    from ldprecover_cli.reproduce.experiments import EXPERIMENTS
    from ldprecover_cli.reproduce.over_http import can_travel

    travelling = [cell for cell in cells if can_travel(cell)]
    if len(travelling) < len(cells):
        note(
            f"{counted(len(cells) - len(travelling), 'cell')} cannot go over HTTP and are left out: OLH reports that "
            "support exactly one item, OLH without its randomised response, and subsets of users."
        )
    left = tuple(name for name in asked if any(map(can_travel, EXPERIMENTS[name].cells(data[0], 1))))
    if not left:
        raise UsageError("none of these cells can go over HTTP")
    return travelling, left


def _run_missing(cells: "list[Cell]", crowds: "dict[str, Crowd]", run: "Run", results: "Results", jobs: int) -> None:
    from ldprecover_cli.reproduce.over_http import run_over_http
    from ldprecover_cli.reproduce.runner import run_cells
    from ldprecover_client import progress_bar

    missing = [cell for cell in cells if results.of(run, cell) is None]
    if not missing:
        return
    done = 0
    running = (
        run_over_http(missing, crowds, run.seed)
        if run.door == "http"
        else run_cells(missing, crowds, run.seed, min(jobs, len(missing)))
    )
    try:
        with progress_bar("cells") as progress:
            progress(0, len(missing))
            for some in running:
                results.add(run, some)
                done += len(some)
                progress(done, len(missing))
    except (KeyboardInterrupt, SystemExit) as stopped:
        stopped.add_note(f"{done} of {len(missing)} cells were run; the same command goes on from there")
        raise
    finally:
        running.close()


def _write(
    cells: "list[Cell]",
    asked: tuple[str, ...],
    data: tuple[str, ...],
    run: "Run",
    results: "Results",
    out: Path,
    *,
    brief: bool,
) -> None:
    from ldprecover_cli.reproduce.experiments import EXPERIMENTS
    from ldprecover_cli.reproduce.figures import draw_figures
    from ldprecover_cli.reproduce.parquet import parquet_bytes
    from ldprecover_cli.reproduce.results import replaced
    from ldprecover_cli.reproduce.summary import summarise, summary_csv, tables

    found = {cell: outcomes for cell in cells if (outcomes := results.of(run, cell)) is not None}
    summary = summarise(found)
    replaced(out / "cells.parquet", parquet_bytes(results))
    replaced(out / "summary.csv", summary_csv(summary))
    draw_figures(asked, data, summary, out)
    screen = console()
    for name in asked:
        if not brief or name in _BRIEF:
            for title, table in tables(EXPERIMENTS[name], data, summary):
                screen.print(title, style="italic")
                screen.print(table)
                screen.print()
