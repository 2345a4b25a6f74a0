"""`reproduce`: the paper's evaluation, and studies of one's own."""

import os
import time
from collections.abc import Generator, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldprecover_cli.failures import CommandError, UsageError, close_to
from ldprecover_cli.options import Column, Seed
from ldprecover_cli.output import console, counted, note, plain, plain_table
from ldprecover_cli.signals import ended_by_signals

if TYPE_CHECKING:
    from ldprecover_experiments.cells import CellFile, Run
    from ldprecover_experiments.runner import Done
    from ldprecover_experiments.setting import Cell
    from ldprecover_experiments.tables import Table

__all__ = ["add_to"]

_BRIEF = ("table1", "mse", "fg", "km")
"""What `all` prints; the sweeps are pictures, and their means are in the file."""

_OF_THE_PAPER = {"data": "--data", "column": "--column", "users": "--users", "trials": "--trials", "seed": "--seed"}
_OF_THE_PAPER |= {"over_http": "--over-http"}
"""Options that a study's own file says, or that it has not."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reproduce)


def reproduce(
    ctx: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(help="Tables and figures, all by default; or the TOML file of one study.", metavar="WHAT"),
    ] = None,
    *,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="cities, fire, emoji, or a CSV or Parquet file, such as your own IPUMS; give it once for each. "
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
    """Rerun the paper's evaluation, its tables and figures, from the cells up; or run a study of your own.

    The paper's are table1, mse, fg, malicious, sweep-beta, sweep-epsilon, sweep-eta,
    ipa, km, multi, and all of them. The folder gets cells.csv and
    cells.parquet, a row for each cell and method, summary.csv, the means over
    the trials, and the figures as PNG and SVG. A study is a TOML file that says
    attacks, methods, protocols, data and parameters; it gets cells.csv and a
    JSON file of its name. A cell that is in the folder is not run again: after
    Ctrl-C the same command goes on.

    Example: ldprecover reproduce table1 mse --out results

    Example: ldprecover reproduce all --data ipums.csv --column CITY --jobs 2

    Example: ldprecover reproduce mse --data cities --users 20000 --trials 1 --over-http

    Example: ldprecover reproduce study.toml --jobs 2
    """
    started = time.monotonic()
    what = what or ["all"]
    jobs = jobs or os.cpu_count() or 1
    if any(name.endswith(".toml") for name in what):
        if len(what) > 1:
            raise UsageError("a study is run alone: name one TOML file and nothing else")
        for option, name in _OF_THE_PAPER.items():
            source = ctx.get_parameter_source(option)
            if source is not None and source.name == "COMMANDLINE":
                raise UsageError(f"{name} is for the paper's tables and figures: a study's file says all")
        _study(Path(what[0]), out, jobs)
    else:
        _paper(what, data, column, users, trials, seed, out, jobs, over_http=over_http)
    note(f"Took {time.monotonic() - started:.0f} s. The results are in {out}.")


def _study(file: Path, out: Path, jobs: int) -> None:
    from ldprecover_experiments.cells import CellFile, Run, replaced
    from ldprecover_experiments.results import Results
    from ldprecover_experiments.runner import run_cells
    from ldprecover_experiments.study import Study

    study = Study.load(file)
    note(study.cost)
    _make_folder(out)
    done, run = CellFile(out / "cells.csv"), Run(study.crowds, study.seed, study.door)
    missing = [cell for cell in study.cells if done.of(run, cell) is None]
    with ended_by_signals():
        _run(missing, run, done, run_cells(missing, study.work, max(1, min(jobs, len(missing))), _finishing))
        results = Results(study.name, {cell: done.of(run, cell) or [] for cell in study.cells})
        replaced(out / f"{file.stem}.json", results.to_json() + "\n")
    gains = [results.table(gains=True)] if any(row.fg is not None for row in results.outcomes) else []
    _show([results.table(), *gains])


def _paper(
    what: list[str],
    data: list[str] | None,
    column: str | None,
    users: int | None,
    trials: int,
    seed: int,
    out: Path,
    jobs: int,
    *,
    over_http: bool,
) -> None:
    _check_packages()
    from ldprecover_experiments.cells import CellFile, Run
    from ldprecover_experiments.over_http import run_over_http
    from ldprecover_experiments.paper import EXPERIMENTS, cells_of
    from ldprecover_experiments.runner import Work, run_cells
    from ldprecover_experiments.setting import Crowd, load_crowd

    asked = _asked(what, tuple(EXPERIMENTS))
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
    done, run = CellFile(out / "cells.csv"), Run(crowds, seed, "http" if over_http else "in-process")
    work = Work(crowds, seed)
    missing = [cell for cell in cells if done.of(run, cell) is None]
    with ended_by_signals():
        running = (
            run_over_http(missing, work)
            if over_http
            else run_cells(missing, work, max(1, min(jobs, len(missing))), _finishing)
        )
        _run(missing, run, done, running)
        _write(cells, asked, tuple(crowds), run, done, out, brief=len(asked) == len(EXPERIMENTS))


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
    from ldprecover_experiments.over_http import can_travel
    from ldprecover_experiments.paper import EXPERIMENTS

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


def _finishing() -> None:
    note("Finishing the cells under way.")


def _run(missing: "Sequence[Cell]", run: "Run", results: "CellFile", running: "Generator[Done, None, None]") -> None:
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
        stopped.add_note(f"{done} of {len(missing)} cells were run; the same command goes on from there")
        raise
    finally:
        running.close()


def _write(
    cells: "list[Cell]",
    asked: tuple[str, ...],
    data: tuple[str, ...],
    run: "Run",
    results: "CellFile",
    out: Path,
    *,
    brief: bool,
) -> None:
    from ldprecover_experiments.cells import replaced
    from ldprecover_experiments.figures import draw_figures
    from ldprecover_experiments.paper import EXPERIMENTS
    from ldprecover_experiments.tables import summarise, summary_csv, tables

    found = {cell: outcomes for cell in cells if (outcomes := results.of(run, cell)) is not None}
    summary = summarise(found)
    replaced(out / "cells.parquet", results.parquet())
    replaced(out / "summary.csv", summary_csv(summary))
    draw_figures(asked, data, summary, out)
    for name in asked:
        if not brief or name in _BRIEF:
            _show(tables(EXPERIMENTS[name], data, summary))


def _show(tables: "Iterable[Table]") -> None:
    screen = console()
    for each in tables:
        table = plain_table(*map(plain, each.columns), numbers=each.numbers)
        table.columns[0].no_wrap = True
        for row in each.rows:
            table.add_row(*map(plain, row))
        screen.print(plain(each.title), style="italic")
        screen.print(table)
        screen.print()
