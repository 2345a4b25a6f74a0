"""`study paper`: the tables and figures of the paper's evaluation."""

from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument

from ldprecover_cli.errors import UsageError, close_to, file_errors
from ldprecover_cli.options import AsIs, Column, Encoding, Least, Seed
from ldprecover_cli.study.output import (
    Data,
    Jobs,
    Output,
    Trials,
    Users,
    Wide,
    run_cells,
    run_into,
    show,
)


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
    wide: Wide = False,
) -> None:
    """Rerun the tables and figures of the paper's evaluation, on cities and fire by default.

    fig3 to fig10 are the paper's figures; fig5 is on cities and fig6 on fire, which stand in for
    the paper's data. Each study has the files of your own.

    Example: ldprecover study paper table1 fig3 --output results

    Example: ldprecover study paper --data ipums.csv --column CITY --jobs 2
    """
    from ldprecover_experiments import dataset_of
    from ldprecover_experiments.studies.paper import FIGURES, STUDIES, PaperStudy
    from ldprecover_experiments.studies.records import sha256

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
    files = {name: sha256(Path(name)) for name in sources if Path(name).is_file()}
    for study in studies:
        study.record["sha256"].update(files)
    with run_into(output, partial(run_cells, output, studies, jobs)) as each_results:
        for study, results in zip(studies, each_results, strict=True):
            with file_errors("write to", output):
                study.write(results, output, wide=wide)
            show(study.tables(results))
