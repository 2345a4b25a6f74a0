"""`study`: the paper's experiments, and studies from TOML files."""

from ldprecover_cli.grammar import group
from ldprecover_cli.study import paper, run

app = group(
    "study",
    """Rerun the paper's experiments, or run a study of your own.

    Each writes its results into a folder, and does not run again what the folder has.

    Example: ldprecover study paper table1
    """,
    run=run.run,
    paper=paper.paper,
)
