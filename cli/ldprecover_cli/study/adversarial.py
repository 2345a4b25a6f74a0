"""`reproduce adversarial`: the evaluation of attacks on un-mixing itself."""

from ldprecover_cli.errors import UsageError
from ldprecover_cli.study.output import RunOptions, check_packages, run_missing, show


def evaluate(options: RunOptions, share: float) -> None:
    """Run what is missing of a share of the evaluation, and write its cells, scores and figure."""
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

    named, out = options.selection(("data", "part", "protocol")), options.out
    if unknown := set(named.get("part", ())) - PARTS.keys():
        raise UsageError(f"there is no part {unknown.pop()!r}; there are {', '.join(PARTS)}")
    data = named.get("data") or options.data or DATA
    users_by_data = load_users_by_data(data, options.column, options.users or USERS)
    results = {}
    for name in named.get("part", PARTS):
        work = PARTS[name].work(users_by_data, options.seed)
        cells = list(PARTS[name].cells(work, named.get("protocol", ()), options.trials, share))
        if cells:
            file, results[name] = run_missing(options, cells, work, f"{name}: ")
    if not results:
        raise UsageError("there are no such cells: raise --share, or name others with --only")
    every = summary(results, users_by_data)
    tables = [overall(every), lowest(results)]
    replaced(out / "cells.parquet", file.parquet())
    replaced(out / "summary.csv", "".join(map(csv_line, (every.columns, *every.rows))))
    markdown = (f"{table.title}\n\n{table.markdown()}\n" for table in (*tables, every))
    replaced(out / "adversarial.md", "\n".join(markdown))
    ratios = {f"{row[0]}\n{row[1]}": (float(row[3]), float(row[4])) for row in tables[0].rows}
    draw_ratios(ratios, out / "adversarial")
    show(tables)
