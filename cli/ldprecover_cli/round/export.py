"""`export` and `merge`: rounds as files."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ldprecover_cli.errors import UsageError
from ldprecover_cli.file.export_files import read_export, write_export
from ldprecover_cli.options import DEFAULT_URL, Key, NewJsonFile, RoundArgument, Url, connected
from ldprecover_cli.output import counted, note, print_json
from ldprecover_cli.signals import end_on_signals


def export(
    round: RoundArgument = "current",
    *,
    output: NewJsonFile = None,
    reports: Annotated[
        str | None,
        Option(
            help="Write a dataset with all reports, read from the database, to this new folder or "
            "fsspec URL.",
            metavar="DIR",
        ),
    ] = None,
    partial: Annotated[
        bool,
        Option(
            "--partial", help="With --reports: accept a round whose reports are not all stored."
        ),
    ] = False,
    database_url: Annotated[
        str | None,
        Option(
            envvar="LDPRECOVER_DATABASE_URL",
            help="With --reports: the server's database; the default is that of `serve`.",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Write a round's parameters, tally and checksum as one JSON file.

    With --reports it writes a folder with this file, _round.json, and the reports. Run it on the
    machine with the database; the server may be running. The same command resumes an interrupted
    export.

    Example: ldprecover export cities --output cities.json

    Example: ldprecover export cities --reports cities --database-url sqlite:///ldprecover.db
    """
    if reports is not None:
        if output is not None:
            raise UsageError(
                "give either --reports, which writes a folder, or --output, which writes a file"
            )
        _export_dataset(round, reports, partial, database_url)
        return
    if partial:
        raise UsageError("--partial needs --reports")
    with connected(url, key, scope="analyst", round=round) as client:
        content = client.export(round)
    if output is None:
        print_json(content)
        return
    write_export(output, content)
    note(
        f"{content['n']:,} reports of round {content['name']} are in {output}; `ldprecover "
        "recompute` reads it"
    )


def _export_dataset(round: str, folder: str, partial: bool, database_url: str | None) -> None:
    if not folder:
        raise UsageError("--reports must name a folder; it is empty")
    # fsspec chains file systems with ::, such as simplecache::memory://
    if any(url.partition(":")[0] == "memory" for url in folder.split("::")):
        raise UsageError(
            "--reports must be a persistent folder; one in memory ends with the command"
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
            dataset = export_reports(settings, round, folder, partial=partial, step=on_progress)
    except (KeyboardInterrupt, SystemExit) as stopped:
        stopped.add_note("finished parts are kept; the same command resumes the export")
        raise
    missing = (
        f"; {counted(dataset.missing, 'report')} of the round are missing"
        if dataset.missing
        else ""
    )
    note(
        f"{counted(dataset.n, 'report')} in {counted(len(dataset.parts), 'part')} are in "
        f"{folder}{missing}"
    )


def merge(
    files: Annotated[
        list[Path],
        Argument(help="Two or more files of `ldprecover export` or `merge`.", metavar="FILE..."),
    ],
    *,
    output: NewJsonFile = None,
) -> None:
    """Add exported rounds of several deployments into one export.

    The rounds must have the same parameters and be distinct, also inside merged files.
    `ldprecover recompute` reads the result as any export.

    Example: ldprecover merge north.json south.json --output all.json
    """
    from ldprecover import ParameterError, RoundExport

    if len(files) < 2:
        raise UsageError("merge needs two or more files")
    try:
        merged = RoundExport.merge(
            [read_export(file) for file in files], called=[str(file) for file in files]
        )
    except ParameterError as error:
        raise UsageError(str(error)) from error
    if output is None:
        print_json(merged.to_dict())
        return
    write_export(output, merged.to_dict())
    note(
        f"{merged.tally.n:,} reports of {len(merged.merged)} rounds are in {output}; `ldprecover "
        "recompute` reads it"
    )
