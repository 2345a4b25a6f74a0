"""`study paper`: the tables and figures of the paper's evaluation."""

from pathlib import Path
from typing import Annotated

from typer import Argument

from ldprecover_cli.errors import UsageError, close_to
from ldprecover_cli.options import AsIs, Column, Encoding, Least, Seed
from ldprecover_cli.study.output import Data, Jobs, Output, Trials, Users, run_into, show

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
    as_is: AsIs = False,
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
    from ldprecover_experiments import Results, dataset_of
    from ldprecover_experiments.simulation.drawing import check_matplotlib
    from ldprecover_experiments.studies.paper import FIGURES, STUDIES, PaperStudy

    check_matplotlib()  # before cells run for hours
    sources: list[str] = []
    selected: list[str] = []
    for name in names or ["all"]:
        if name not in FIGURES:
            near = close_to(name, list(FIGURES)) or f"there are {', '.join(FIGURES)}"
            if name.endswith(".toml"):
                near = f"`ldprecover study run {name}` runs a study"
            raise UsageError(f"there is no table or figure {name!r}; {near}")
        selected += FIGURES[name]["studies"]
        sources += data or FIGURES[name].get("data", ["cities", "fire"])
    datasets = [
        dataset_of(source, column, encoding=encoding, as_is=as_is, least=least)
        for source in dict.fromkeys(sources)
    ]
    options = {"users": users, "trials": trials, "seed": seed}
    studies = [
        PaperStudy.of({**keys, **options}, data=datasets)
        for name, keys in STUDIES.items()
        if name in selected
    ]
    with run_into(output, studies, jobs) as each_results:
        rows = dict.fromkeys(row for results in each_results for row in results.cells)
        means = Results("paper", list(rows)).to_csv()
        (output / "summary.csv").write_text(means, encoding="utf-8")
        for study, results in zip(studies, each_results, strict=True):
            study.draw(results, output)
            if len(studies) < len(STUDIES) or study.name in _BRIEF:
                show(study.tables(results))
