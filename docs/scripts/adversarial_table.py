"""What attacks on un-mixing itself do: the table of docs/explanation/unmixing.md.

A share of the settings of `ldprecover study adversarial`, one round of each. The columns
`before` are those of the first evaluation, which `tables.toml` keeps.
"""

from collections.abc import Sequence

from measured_rounds import TABLES

from ldprecover_experiments.adversarial_evaluation import DATA, PARTS, USERS, overall, summary
from ldprecover_experiments.parameters import load_users_by_data
from ldprecover_experiments.runs import run_cells
from ldprecover_experiments.tables import Table

SHARE = 0.03
BEFORE = ("ratio", "least", "coverage", "innocent")


def table(
    data: Sequence[str] = DATA,
    users: int = USERS,
    parts: Sequence[str] = tuple(PARTS),
    share: float = SHARE,
) -> Table:
    """Return the scores of the parts."""
    users_by_data = load_users_by_data(data, users=users)
    results = {}
    for name in parts:
        work = PARTS[name].work(users_by_data, 0)
        cells = list(PARTS[name].cells(work, (), 1, share))
        results[name] = {cell: each for done in run_cells(cells, work, 1) for cell, each in done}
    after = overall(summary(results, users_by_data))
    rows = []
    for part, knowledge, settings, *scores in after.rows:
        before = TABLES["adversarial"]["before"][f"{part} {knowledge}".strip()]
        rows.append([part, knowledge, settings, *before, *scores])
    columns = (*after.columns[:3], *(f"before: {name}" for name in BEFORE), *after.columns[3:])
    return Table(columns, rows)
