"""Parts of a dataset are deleted by their hour, and its `round.json` is written anew without
them.
"""

from dataclasses import replace
from pathlib import Path

from ldprecover import RoundExport
from ldprecover_cluster.dataset import ROUND_FILE, read_round, round_file
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.folders import Folder
from ldprecover_cluster.writing import DatasetWriter


def purge(folder: str | Path, work: str | Path, round: str, before: int) -> int | None:
    """Delete the reports of hours before this one from a dataset of a round, by its id; return the
    earliest hour left.

    None where nothing is left. The tally stays, so `missing` grows. An export that has not ended is
    deleted as a whole, with what is on its way in the folder `work`. Raises ReportDatasetError
    where another process writes the dataset, it is of another round, or something cannot be read or
    deleted, and FileNotFoundError where nothing is there.
    """
    there, unfinished = Folder(folder), Path(work).is_dir()
    if unfinished:
        with DatasetWriter(folder, work=work) as writer:
            writer.discard()
    over = [name for name in there.names() if (hour := _hour(name)) is not None and hour < before]
    left: int | None = None
    try:
        export = _export(there)
        if export is not None and export.round != round:
            over = []
            raise ReportDatasetError(f"{there} is a dataset of another round now")
        if export is not None:
            left = _shorten(there, export, before)
        elif not (unfinished or over):
            raise FileNotFoundError(str(there))
    finally:
        for name in over:
            there.remove(name)
    return left


def _export(there: Folder) -> RoundExport | None:
    try:
        return read_round(there)
    except FileNotFoundError:
        return None


def _shorten(there: Folder, export: RoundExport, before: int) -> int | None:
    """Write `round.json` without the parts of hours before this one; return the earliest hour that
    it has left.
    """
    listed = export.reports or ()
    left = tuple(part for part in listed if part.hour >= before)
    if len(left) < len(listed):
        there.write(ROUND_FILE, round_file(replace(export, reports=left)))
    return min((part.hour for part in left), default=None)


def _hour(name: str) -> int | None:
    number = name.removeprefix("hour=")
    return int(number) if number != name and number.isascii() and number.isdigit() else None
