"""`file`: rounds in files, without a server."""

from ldprecover_cli.file import recompute, reports
from ldprecover_cli.grammar import group

app = group(
    "file",
    """Work on exported rounds: recompute them, add up several servers'.

    `ldprecover round export` writes the file of a round.

    Example: ldprecover file recompute cities.json
    """,
    recompute=recompute.recompute,
    reports=reports.reports,
)
