"""`reproduce unmix`: the evaluation of un-mixing."""

from dataclasses import fields

from ldprecover_cli.study.output import (
    RunOptions,
    check_packages,
    run_missing,
    show,
    write_means,
)

_PRINTED = ("overall", "by protocol:", "by attack:", "by data:")
"""What is printed; all tables are in the folder."""


def evaluate(options: RunOptions) -> None:
    """Run what is missing of the evaluation, and write its cells, means, tables and figures."""
    check_packages()
    from ldprecover_experiments.figures import draw_scores
    from ldprecover_experiments.parameters import load_users_by_data
    from ldprecover_experiments.results import Results
    from ldprecover_experiments.run_file import replaced
    from ldprecover_experiments.runs import Work
    from ldprecover_experiments.scores import Scores
    from ldprecover_experiments.unmixing_evaluation import DATA, DRIFT, Only, cells_of, methods

    named, out = options.selection(("data", *(each.name for each in fields(Only)))), options.out
    data = named.pop("data", ()) or options.data or DATA
    users_by_data = load_users_by_data(data, options.column, options.users)
    part = Only(**named)
    places = cells_of(part, users_by_data, options.trials)
    work = Work(users_by_data, options.seed, methods(part.method), floors=True, drift=DRIFT)

    file, outcomes_by_cell = run_missing(options, places, work, "")
    write_means(out, file, outcomes_by_cell)
    replaced(out / "unmix.json", Results("unmix", outcomes_by_cell).to_json() + "\n")
    scores = Scores(outcomes_by_cell, places)
    tables = list(scores.tables())
    replaced(
        out / "unmix.md",
        "\n\n".join(f"{table.title}\n\n{table.markdown()}" for table in tables) + "\n",
    )
    draw_scores(scores, out)
    show([table for table in tables if table.title.startswith(_PRINTED)])
