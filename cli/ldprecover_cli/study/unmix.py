"""`study unmix`: the evaluation of un-mixing."""

from dataclasses import fields
from pathlib import Path

from ldprecover_cli.engines import SchedulerUrl, TlsCa, TlsCert, TlsKey
from ldprecover_cli.options import Column, Seed
from ldprecover_cli.study.output import (
    Data,
    Jobs,
    Only,
    Out,
    Trials,
    Users,
    check_packages,
    run_missing,
    running,
    selection,
    show,
    write_markdown,
    write_means,
)

_PRINTED = ("overall", "by protocol:", "by attack:", "by data:")
"""Beginnings of the titles that are printed; all tables are in the folder."""


def unmix(
    *,
    only: Only = None,
    data: Data = None,
    column: Column = None,
    users: Users = None,
    trials: Trials = 10,
    seed: Seed = 0,
    out: Out = Path("reproduction"),
    jobs: Jobs = None,
    scheduler: SchedulerUrl = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
) -> None:
    """Compare recoveries that know nothing of the attack with the paper's, on more data.

    It runs six data sets and more attacks than the paper. The tables are in unmix.md; --only
    takes part, data, protocol, attack and method. After Ctrl-C the same command continues.

    Example: ldprecover study unmix --only protocol=grr --only method=unmix,norm-sub
    """
    check_packages()
    from ldprecover_experiments import unmixing_evaluation as evaluation
    from ldprecover_experiments.figures import draw_scores
    from ldprecover_experiments.parameters import load_users_by_data
    from ldprecover_experiments.results import Results
    from ldprecover_experiments.run_file import replaced
    from ldprecover_experiments.runs import Work
    from ldprecover_experiments.scores import Scores

    with running(out, jobs, scheduler, tls_ca, tls_cert, tls_key) as runner:
        keys = ("data", *(each.name for each in fields(evaluation.Only)))
        named = selection(only, keys)
        sets = named.pop("data", ()) or data or evaluation.DATA
        users_by_data = load_users_by_data(sets, column, users)
        part = evaluation.Only(**named)
        places = evaluation.cells_of(part, users_by_data, trials)
        methods = evaluation.methods(part.method)
        work = Work(users_by_data, seed, methods, floors=True, drift=evaluation.DRIFT)

        file, outcomes_by_cell = run_missing(runner, places, work, "")
        write_means(out, file, outcomes_by_cell)
        replaced(out / "unmix.json", Results("unmix", outcomes_by_cell).to_json() + "\n")
        scores = Scores(outcomes_by_cell, places)
        tables = list(scores.tables())
        write_markdown(out / "unmix.md", tables)
        draw_scores(scores, out)
        show([table for table in tables if table.title.startswith(_PRINTED)])
