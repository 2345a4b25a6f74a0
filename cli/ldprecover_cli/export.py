"""`export`: a round as a file."""

from pathlib import Path
from typing import Annotated

import typer

from ldprecover_cli.errors import UsageError
from ldprecover_cli.export_files import write_export
from ldprecover_cli.options import DEFAULT_URL, Key, RoundArgument, Url, connected
from ldprecover_cli.output import counted, note, print_json
from ldprecover_cli.signals import ended_by_signals


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(export)


def export(
    round: RoundArgument = "current",
    *,
    output: Annotated[
        Path | None, typer.Option(help="Write it to this new file.", metavar="FILE")
    ] = None,
    reports: Annotated[
        str | None,
        typer.Option(
            help="Write it with all reports, read from the database, to this new folder or fsspec "
            "URL.",
            metavar="DIR",
        ),
    ] = None,
    partial: Annotated[
        bool,
        typer.Option(
            "--partial", help="With --reports, also of a round that does not keep all its reports."
        ),
    ] = False,
    database_url: Annotated[
        str | None,
        typer.Option(
            envvar="LDPRECOVER_DATABASE_URL",
            help="With --reports, the server's database; the same default as `serve`.",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Write a round's parameters, tally and checksum as one JSON file.

    With --reports as the file round.json of a new folder that has the reports too. That is done on
    the machine that has the database, and the server may be running. The same command goes on with
    one that did not end.

    Example: ldprecover export cities --output cities.json

    Example: ldprecover export cities --reports cities --database-url sqlite:///ldprecover.db
    """
    if reports is not None:
        if output is not None:
            raise UsageError("--reports writes a folder and --output a file: give one of them")
        _export_dataset(round, reports, partial, database_url)
        return
    if partial:
        raise UsageError("--partial goes with --reports")
    with connected(url, key, scope="analyst", round=round) as client:
        answer = client.export(round)
    if output is None:
        print_json(answer)
        return
    write_export(output, answer)
    note(
        f"{answer['n']:,} reports of round {answer['name']} are in {output}; `ldprecover "
        "recompute` reads it"
    )


def _export_dataset(round: str, folder: str, partial: bool, database_url: str | None) -> None:
    if not folder:
        raise UsageError("--reports needs the name of a folder: it is empty")
    # fsspec chains file systems with ::, such as simplecache::memory://
    if any(each.partition(":")[0] == "memory" for each in folder.split("::")):
        raise UsageError("--reports needs a folder that stays: one in memory ends with the command")
    from ldprecover_cli.serve import export_dataset
    from ldprecover_client import progress_bar

    try:
        with ended_by_signals(), progress_bar("reports", first="reading") as step:
            dataset = export_dataset(
                round, folder, partial=partial, step=step, database_url=database_url
            )
    except (KeyboardInterrupt, SystemExit) as stopped:
        stopped.add_note("the parts that are finished stay; the same command goes on from there")
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
