"""`file reports`: a round with all its reports, from the database to a file."""

from pathlib import Path
from typing import Annotated

from typer import Option

from ldprecover.sentences import counted
from ldprecover_cli.connection import titled
from ldprecover_cli.errors import check_new, file_errors
from ldprecover_cli.options import CURRENT, DatabaseUrl, RoundArgument
from ldprecover_cli.output import note
from ldprecover_cli.signals import end_on_signals


def reports(
    round: RoundArgument = CURRENT,
    *,
    output: Annotated[Path, Option("--output", "-o", help="The new Parquet file.", metavar="FILE")],
    database_url: DatabaseUrl = None,
) -> None:
    """Write a round with all its reports, read from the database, to a Parquet file.

    `ldprecover file recompute` reads it, and so does every reader of Parquet. Run this on the
    machine with the database; the server may be running.

    Example: ldprecover file reports cities --output cities.parquet
    """
    from ldprecover_cli.serve import database
    from ldprecover_client import progress_bar, write_report_file
    from ldprecover_server import stored_reports

    check_new(output)
    with (
        database(database_url) as settings,
        end_on_signals(),
        stored_reports(settings, round) as (export, pieces),
        progress_bar("reports") as progress,
        file_errors("write", output),
    ):
        write_report_file(output, export, pieces, progress=progress)
    note(f"{counted(export.tally.n, 'report')} of {titled(export.name, round)} are in {output}")
