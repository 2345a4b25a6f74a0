"""`reproduce unmix`: the evaluation of un-mixing."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from ldprecover_cli.errors import UsageError, close_to
from ldprecover_cli.output import note
from ldprecover_cli.reproduce_output import (
    check_packages,
    run_missing,
    show,
    write_means,
)

if TYPE_CHECKING:
    from ldprecover_cluster import Scheduler

_PRINTED = ("overall", "by protocol:", "by attack:", "by data:")
"""What is printed; all tables are in the folder."""


def evaluate(
    only: Sequence[str],
    data: Sequence[str] | None,
    column: str | None,
    users: int | None,
    trials: int,
    seed: int,
    out: Path,
    jobs: int,
    scheduler: "Scheduler | None",
) -> None:
    """Run what is missing of the evaluation, and write its cells, means, tables and figures."""
    check_packages()
    from ldprecover_experiments.figures import draw_scores
    from ldprecover_experiments.parameters import load_users_by_data
    from ldprecover_experiments.results import Results
    from ldprecover_experiments.run_file import replaced
    from ldprecover_experiments.runs import Work
    from ldprecover_experiments.scores import Scores
    from ldprecover_experiments.unmixing_evaluation import (
        DATA,
        DRIFT,
        Only,
        cells_of,
        cost,
        methods,
    )

    named = selected_names(only, ("data", *(each.name for each in fields(Only))))
    users_by_data = load_users_by_data(named.pop("data", ()) or data or DATA, column, users)
    part = Only(**named)
    places = cells_of(part, users_by_data, trials)
    work = Work(users_by_data, seed, methods(part.method), floors=True, drift=DRIFT)

    file, outcomes_by_cell = run_missing(
        out,
        places,
        work,
        jobs,
        scheduler,
        lambda missing: note(cost(missing, work, max(1, min(jobs, len(missing))))),
    )
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


def selected_names(only: Sequence[str], keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return what --only names, by key: protocol=oue,olh. Raises UsageError."""
    selection: dict[str, tuple[str, ...]] = {}
    for one in only:
        key, equals, values = one.partition("=")
        if not equals or key not in keys:
            raise UsageError(
                f"--only is KEY=NAME[,NAME], not {one!r}; {close_to(key, keys) or ', '.join(keys)}"
            )
        selection[key] = selection.get(key, ()) + tuple(
            value.strip() for value in values.split(",") if value.strip()
        )
    return selection
