"""`reproduce adversarial`: the evaluation of attacks on un-mixing itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldprecover_cli.errors import UsageError
from ldprecover_cli.output import note
from ldprecover_cli.reproduce_output import check_packages, run_missing, show
from ldprecover_cli.reproduce_unmix import selected_names

if TYPE_CHECKING:
    from ldprecover_cluster import Scheduler


def evaluate(
    only: Sequence[str],
    data: Sequence[str] | None,
    column: str | None,
    users: int | None,
    trials: int,
    share: float,
    seed: int,
    out: Path,
    jobs: int,
    scheduler: "Scheduler | None",
) -> None:
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
    from ldprecover_experiments.unmixing_evaluation import cost

    named = selected_names(only, ("data", "part", "protocol"))
    if unknown := set(named.get("part", ())) - PARTS.keys():
        raise UsageError(f"there is no part {unknown.pop()!r}; there are {', '.join(PARTS)}")
    users_by_data = load_users_by_data(named.get("data") or data or DATA, column, users or USERS)
    results = {}
    for name in named.get("part", PARTS):
        work = PARTS[name].work(users_by_data, seed)
        cells = list(PARTS[name].cells(work, named.get("protocol", ()), trials, share))
        if cells:
            note(f"{name}: {cost(cells, work, max(1, min(jobs, len(cells))))}")
            file, results[name] = run_missing(out, cells, work, jobs, scheduler)
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
