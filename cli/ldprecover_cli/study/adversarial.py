"""`study adversarial`: the evaluation of attacks on un-mixing itself."""

from pathlib import Path

from ldprecover_cli.engines import SchedulerUrl, TlsCa, TlsCert, TlsKey
from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import Column, Seed
from ldprecover_cli.study.output import (
    Data,
    Jobs,
    Only,
    Out,
    Share,
    Trials,
    Users,
    check_packages,
    check_parts,
    run_missing,
    running,
    selection,
    show,
    write_markdown,
)


def adversarial(
    *,
    only: Only = None,
    share: Share = 1.0,
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
    """Attack un-mixing itself, by attackers who know it.

    The tables are in adversarial.md; --only takes part, data and protocol. After Ctrl-C the same
    command continues.

    Example: ldprecover study adversarial --share 0.05 --trials 1
    """
    check_packages()
    from ldprecover_experiments.adversarial_evaluation import (
        DATA,
        PARTS,
        USERS,
        lowest,
        overall,
        summary,
    )
    from ldprecover_experiments.figures import draw_ratios
    from ldprecover_experiments.parameters import load_users_by_data
    from ldprecover_experiments.run_file import csv_line, replaced

    with running(out, jobs, scheduler, tls_ca, tls_cert, tls_key) as runner:
        named = selection(only, ("data", "part", "protocol"))
        check_parts(named.get("part", ()), PARTS)
        sets = named.get("data") or data or DATA
        users_by_data = load_users_by_data(sets, column, users or USERS)
        results = {}
        for name in named.get("part", PARTS):
            work = PARTS[name].work(users_by_data, seed)
            cells = list(PARTS[name].cells(work, named.get("protocol", ()), trials, share))
            if cells:
                file, results[name] = run_missing(runner, cells, work, f"{name}: ")
        if not results:
            raise UsageError("there are no such cells: raise --share, or name others with --only")
        every = summary(results, users_by_data)
        tables = [overall(every), lowest(results)]
        replaced(out / "cells.parquet", file.parquet())
        replaced(out / "summary.csv", "".join(map(csv_line, (every.columns, *every.rows))))
        write_markdown(out / "adversarial.md", (*tables, every))
        ratios = {f"{row[0]}\n{row[1]}": (float(row[3]), float(row[4])) for row in tables[0].rows}
        draw_ratios(ratios, out / "adversarial")
        show(tables)
