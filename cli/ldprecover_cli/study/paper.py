"""`study paper`: the tables and figures of the paper's evaluation."""

from pathlib import Path
from typing import Annotated

from typer import Argument

from ldprecover_cli.errors import UsageError, close_to
from ldprecover_cli.options import Column, Encoding, Least, Seed
from ldprecover_cli.study.output import (
    Data,
    Jobs,
    Output,
    Trials,
    Users,
    run_missing,
    running,
    show,
    write_means,
)

_BRIEF = ("table1", "mse", "fg", "km")
"""Tables that `all` prints; the sweeps are pictures, and their means are in the file."""


def paper(
    names: Annotated[
        list[str] | None,
        Argument(
            help="table1, fig3 to fig10, mse, fg, malicious, sweep-beta, sweep-epsilon, sweep-eta, "
            "ipa, km, multi, or all, the default.",
            metavar="TABLE...",
        ),
    ] = None,
    *,
    data: Data = None,
    column: Column = None,
    encoding: Encoding = "utf-8",
    least: Least = 1,
    users: Users = None,
    trials: Trials = 10,
    seed: Seed = 0,
    output: Output = Path("reproduction"),
    jobs: Jobs = None,
) -> None:
    """Rerun the tables and figures of the paper's evaluation, on cities and fire by default.

    fig3 to fig10 are the numbers of the paper's figures; the other names are what they show. fig5
    is on cities and fig6 on fire, which stand in for the paper's data.

    The folder gets cells.jsonl, with a line for each cell; summary.csv, with means over trials; and
    the figures as PNG and SVG. Finished cells are not run again: after Ctrl-C the same command
    continues.

    Example: ldprecover study paper table1 fig3 --output results

    Example: ldprecover study paper --data ipums.csv --column CITY --jobs 2
    """
    from ldprecover_experiments.simulation.datasets import dataset_of
    from ldprecover_experiments.simulation.drawing import check_matplotlib
    from ldprecover_experiments.studies.cells import load_users_by_data
    from ldprecover_experiments.studies.figures import draw_figures
    from ldprecover_experiments.studies.paper import (
        DATA_OF_FIGURES,
        EXPERIMENTS,
        FIGURES,
        cells_of,
    )
    from ldprecover_experiments.studies.runs import Work
    from ldprecover_experiments.studies.tables import tables

    check_matplotlib()  # before cells run for hours
    with running(output):
        named = names or ["all"]
        shown = [experiment for name in named for experiment in FIGURES.get(name, (name,))]
        selected = _selected(shown, tuple(EXPERIMENTS), tuple(FIGURES))
        stand_ins = [DATA_OF_FIGURES.get(name) for name in named]
        default = ("cities", "fire") if None in stand_ins else filter(None, stand_ins)
        sources = data or dict.fromkeys(default)
        datasets = [dataset_of(each, column, encoding=encoding, least=least) for each in sources]
        users_by_data = load_users_by_data(datasets, users)
        data_names = tuple(users_by_data)
        cells = cells_of(selected, users_by_data, trials)
        work = Work(users_by_data, seed)
        summary = write_means(output, run_missing(output, jobs, cells, work))
        draw_figures(selected, data_names, summary, output)
        for name in selected:
            if len(selected) < len(EXPERIMENTS) or name in _BRIEF:
                show(tables(EXPERIMENTS[name], data_names, summary))


def _selected(
    names: list[str], available: tuple[str, ...], figures: tuple[str, ...]
) -> tuple[str, ...]:
    for name in names:
        if name not in available and name != "all":
            every = (*available, *figures)
            near = close_to(name, every) or f"there are {', '.join(every)} and all"
            if name.endswith(".toml"):
                near = f"`ldprecover study run {name}` runs a study"
            raise UsageError(f"there is no table or figure {name!r}; {near}")
    return available if "all" in names else tuple(name for name in available if name in names)
