"""`file dataset`: a round with all its reports, from the database to a folder."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated

from typer import Option

from ldprecover.sentences import counted
from ldprecover_cli.connection import titled
from ldprecover_cli.file.datasets import dataset_errors
from ldprecover_cli.options import CURRENT, DatabaseUrl, RoundArgument
from ldprecover_cli.output import note
from ldprecover_cli.signals import end_on_signals


def dataset(
    round: RoundArgument = CURRENT,
    *,
    output: Annotated[
        str, Option("--output", "-o", help="The new folder or fsspec URL.", metavar="DIR")
    ],
    database_url: DatabaseUrl = None,
) -> None:
    """Write a round with all its reports, read from the database, into a folder.

    The folder gets Parquet files of the reports and the round's export, _round.json. Run it on the
    machine with the database; the server may be running.

    Example: ldprecover file dataset cities --output cities --database-url sqlite:///ldprecover.db
    """
    from ldprecover_cli.serve import database
    from ldprecover_client import progress_bar
    from ldprecover_server import stored_reports

    with (
        dataset_errors(),
        _private_files(),
        database(database_url) as settings,
        end_on_signals(),
        stored_reports(settings, round) as (export, pieces),
        progress_bar("reports") as on_progress,
    ):
        from ldprecover_cluster import write_dataset

        size, n = export.parameters.oracle.wire.size, export.tally.n
        written = write_dataset(output, export, _counted(pieces, size, n, on_progress))
    note(
        f"{counted(n, 'report')} of {titled(export.name, round)} in "
        f"{counted(len(written.fragments), 'file')} are in {output}"
    )


@contextmanager
def _private_files() -> Iterator[None]:
    """Let only their owner read new files and folders, as the database."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _counted(
    pieces: Iterable[bytes], size: int, n: int, on_progress: Callable[[int, int], None]
) -> Iterator[bytes]:
    read = 0
    for piece in pieces:
        yield piece
        read += len(piece) // size
        on_progress(read, n)
