"""`file dataset`: a round with all its reports, from the database to a folder."""

from typing import Annotated

from typer import Option

from ldprecover_cli.errors import UsageError
from ldprecover_cli.options import CURRENT, DatabaseUrl, RoundArgument, titled
from ldprecover_cli.output import counted, note
from ldprecover_cli.signals import end_on_signals


def dataset(
    round: RoundArgument = CURRENT,
    *,
    output: Annotated[
        str, Option("--output", "-o", help="The new folder or fsspec URL.", metavar="DIR")
    ],
    partial: Annotated[
        bool, Option("--partial", help="Accept a round whose reports are not all stored.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Write a round with all its reports, read from the database, into a folder.

    The folder gets the round's export, _round.json, and the reports. Run it on the machine with
    the database; the server may be running. The same command resumes an interrupted one.

    Example: ldprecover file dataset cities --output cities --database-url sqlite:///ldprecover.db
    """
    if not output:
        raise UsageError("--output must name a folder; it is empty")
    # fsspec chains file systems with ::, such as simplecache::memory://
    if any(url.partition(":")[0] == "memory" for url in output.split("::")):
        raise UsageError(
            "--output must be a persistent folder; one in memory ends with the command"
        )
    from ldprecover_cli.serve import database
    from ldprecover_client import progress_bar
    from ldprecover_server import export_reports

    try:
        with (
            database(database_url) as settings,
            end_on_signals(),
            progress_bar("reports", first="reading") as on_progress,
        ):
            written = export_reports(settings, round, output, partial=partial, step=on_progress)
    except (KeyboardInterrupt, SystemExit) as stopped:
        stopped.add_note("finished parts are kept; the same command resumes it")
        raise
    missing = f"; {counted(written.missing, 'report')} are missing" if written.missing else ""
    note(
        f"{counted(written.n, 'report')} of {titled(written.export.name, round)} in "
        f"{counted(len(written.parts), 'part')} are in {output}{missing}"
    )
