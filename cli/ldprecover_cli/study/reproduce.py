"""`reproduce`: the paper's evaluation, and studies of one's own."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ldprecover_cli.engines import SchedulerUrl, TlsCa, TlsCert, TlsKey, scheduler_of
from ldprecover_cli.errors import UsageError, close_to
from ldprecover_cli.options import Column, Seed
from ldprecover_cli.output import counted, note
from ldprecover_cli.signals import end_on_signals
from ldprecover_cli.study.adversarial import evaluate as evaluate_adversarial
from ldprecover_cli.study.certificates import evaluate as evaluate_certificates
from ldprecover_cli.study.output import (
    RunOptions,
    check_packages,
    run_missing,
    show,
    write_means,
)
from ldprecover_cli.study.unmix import evaluate

if TYPE_CHECKING:
    from ldprecover_experiments.parameters import Cell

_BRIEF = ("table1", "mse", "fg", "km")
"""What `all` prints; the sweeps are pictures, and their means are in the file."""

_OF_THE_PAPER = ("data", "column", "users", "trials", "seed", "over_http")
"""Options that do not apply to a study: its file states them, or it has none."""

_ALONE = {"unmix", "adversarial", "certificates"}
"""Evaluations that are run alone."""


def reproduce(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        Argument(
            help="Tables and figures, all by default; or unmix, adversarial, certificates, or the "
            "TOML file of one study.",
            metavar="WHAT",
        ),
    ] = None,
    *,
    data: Annotated[
        list[str] | None,
        Option(
            help="cities, fire, emoji, ipums-like, fire-like, zipf, bump, geometric, or a CSV or "
            "Parquet file, such as your IPUMS extract; repeat for several. Default: cities and "
            "fire; for unmix six data sets.",
            metavar="NAME|FILE",
        ),
    ] = None,
    column: Column = None,
    users: Annotated[
        int | None,
        Option(
            min=1,
            help="Genuine users, n. Default: the paper's number; for other data, one for each row.",
        ),
    ] = None,
    trials: Annotated[int, Option(min=1, max=10_000, help="Trials of each setting.")] = 10,
    seed: Seed = 0,
    out: Annotated[
        Path, Option(help="Folder for results; existing results in it are continued.")
    ] = Path("reproduction"),
    jobs: Annotated[
        int | None,
        Option(min=1, max=256, help="Worker processes. Default: one for each core."),
    ] = None,
    scheduler: SchedulerUrl = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    over_http: Annotated[
        bool,
        Option("--over-http", help="Send every report to a server that the command starts."),
    ] = False,
    only: Annotated[
        list[str] | None,
        Option(
            help="Only these cells of unmix, by part, data, protocol, attack or method, or of "
            "adversarial, by part, data or protocol, or of certificates, by part; repeat for "
            "several.",
            metavar="KEY=NAME[,NAME]",
        ),
    ] = None,
    share: Annotated[
        float,
        Option(min=0, max=1, help="Share of adversarial's settings, or certificates' rounds."),
    ] = 1.0,
) -> None:
    """Rerun the tables and figures of the paper's evaluation, or run your own study.

    The paper's are table1, mse, fg, malicious, sweep-beta, sweep-epsilon, sweep-eta,
    ipa, km, multi, and all of them together. The folder gets cells.csv and cells.parquet,
    with a row for each cell and method; summary.csv, with means over trials; and the
    figures as PNG and SVG. Finished cells are not run again: after Ctrl-C the same
    command continues.

    A study is a TOML file with attacks, methods, protocols, data and parameters. It
    writes cells.csv and a JSON file of its name. `unmix` is another evaluation, run
    alone: recoveries without knowledge of the attack against those of the paper, on
    more data and under more attacks. Its tables are in unmix.md. `adversarial` attacks
    un-mixing itself, and its tables are in adversarial.md. `certificates` plays 1,000
    rounds of every kind in which the certified intervals must hold the truth; its tables
    are in certificates.md.

    Example: ldprecover reproduce table1 mse --out results

    Example: ldprecover reproduce all --data ipums.csv --column CITY --jobs 2

    Example: ldprecover reproduce mse --data cities --users 20000 --trials 1 --over-http

    Example: ldprecover reproduce adversarial --share 0.05 --trials 1

    Example: ldprecover reproduce certificates --only part=rounds --share 0.1

    Example: ldprecover reproduce study.toml --jobs 2

    Example: ldprecover reproduce study.toml --scheduler tls://dask.example.org:8786
    """
    started = time.monotonic()
    names = names or ["all"]
    if share < 1 and names not in (["adversarial"], ["certificates"]):
        raise UsageError("--share is for adversarial or certificates, alone")
    cluster = scheduler_of(scheduler, jobs, tls_ca, tls_cert, tls_key)
    jobs = 1 if cluster else jobs or os.cpu_count() or 1
    options = RunOptions(only or [], data, column, users, trials, seed, out, jobs, cluster)
    with end_on_signals():
        if any(name.endswith(".toml") for name in names):
            if len(names) > 1:
                raise UsageError("name one study and nothing else")
            for name in _OF_THE_PAPER:
                source = ctx.get_parameter_source(name)
                if source is not None and source.name == "COMMANDLINE":
                    raise UsageError(
                        f"--{name.replace('_', '-')} is for the paper's tables and figures: a "
                        "study's file says all"
                    )
            if only:
                raise UsageError("--only is for unmix: a study's file says all")
            _study(Path(names[0]), options)
        elif alone := _ALONE.intersection(names):
            if len(names) > 1 or over_http:
                raise UsageError(f"{min(alone)} is run alone, and not over HTTP")
            if names == ["adversarial"]:
                evaluate_adversarial(options, share)
            elif names == ["certificates"]:
                if data or column or users:
                    raise UsageError("certificates draws its own users: it has no --data")
                evaluate_certificates(options, share)
            else:
                evaluate(options)
        elif only:
            raise UsageError("--only is for unmix: name tables and figures instead")
        else:
            if over_http and cluster:
                raise UsageError(
                    "--over-http sends reports to a server of this machine: leave out --scheduler"
                )
            _paper(names, options, over_http=over_http)
    note(f"Took {time.monotonic() - started:.0f} s. The results are in {out}.")


def _study(file: Path, options: RunOptions) -> None:
    from ldprecover_experiments.results import Results
    from ldprecover_experiments.run_file import replaced
    from ldprecover_experiments.studies import Study

    study = Study.load(file)
    note(study.cost)
    _, outcomes = run_missing(options, study.cells, study.work)
    results = Results(study.name, outcomes)
    replaced(options.out / f"{file.stem}.json", results.to_json() + "\n")
    show([results.table()])
    if any(row.fg is not None for row in results.outcomes):
        show([results.table(gains=True)])
    for (method, reason), number in results.refusals.items():
        note(f"{method}: {reason} ({counted(number, 'cell')})")


def _paper(names: list[str], options: RunOptions, *, over_http: bool) -> None:
    check_packages()
    from ldprecover_experiments.figures import draw_figures
    from ldprecover_experiments.paper import EXPERIMENTS, cells_of
    from ldprecover_experiments.parameters import load_users_by_data
    from ldprecover_experiments.runs import Work
    from ldprecover_experiments.tables import tables

    selected = _selected(names, tuple(EXPERIMENTS))
    users_by_data = load_users_by_data(
        options.data or ("cities", "fire"), options.column, options.users
    )
    data_names = tuple(users_by_data)
    cells = cells_of(selected, users_by_data, options.trials)
    if over_http:
        cells, selected = _that_travel(cells, selected, data_names)
    work = Work(users_by_data, options.seed, over_http=over_http)
    summary = write_means(options.out, *run_missing(options, cells, work))
    draw_figures(selected, data_names, summary, options.out)
    for name in selected:
        if len(selected) < len(EXPERIMENTS) or name in _BRIEF:
            show(tables(EXPERIMENTS[name], data_names, summary))


def _selected(names: list[str], available: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in available and name != "all":
            near = close_to(name, available) or f"there are {', '.join(available)} and all"
            raise UsageError(f"there is no table or figure {name!r}; {near}")
    return available if "all" in names else tuple(name for name in available if name in names)


def _that_travel(
    cells: "list[Cell]", selected: tuple[str, ...], data: tuple[str, ...]
) -> "tuple[list[Cell], tuple[str, ...]]":
    """Return the cells that can go over HTTP, and the experiments that have any; say how many are
    left out.
    """
    from ldprecover_experiments.over_http import can_travel
    from ldprecover_experiments.paper import EXPERIMENTS

    travelling = [cell for cell in cells if can_travel(cell)]
    if len(travelling) < len(cells):
        note(
            f"{counted(len(cells) - len(travelling), 'cell')} cannot go over HTTP and are left "
            "out: OLH reports that "
            "support exactly one item, OLH without its randomised response, and subsets of users."
        )
    experiments = tuple(
        name for name in selected if any(map(can_travel, EXPERIMENTS[name].cells(data[0], 1)))
    )
    if not experiments:
        raise UsageError("none of these cells can go over HTTP")
    return travelling, experiments
