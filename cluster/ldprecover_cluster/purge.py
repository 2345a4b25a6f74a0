"""Deletes old parts of a dataset by hour, and rewrites its `_round.json` without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ldprecover import RoundExport
from ldprecover_cluster.dataset import ROUND_FILE, read_round, round_file
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.folders import Folder
from ldprecover_cluster.writer import DatasetWriter


def purge(folder: str | Path, work: str | Path, round: str, before: int) -> int | None:
    """Delete the reports of hours before `before`; return the earliest remaining hour, or None.

    `round` is the id of the dataset's round. The tally stays, so `missing` grows. An unfinished
    export is deleted as a whole, with its folder `work`. Raises ReportDatasetError if another
    process writes the dataset, it belongs to another round, or a file cannot be read or deleted,
    and FileNotFoundError if there is nothing.
    """
    dataset, unfinished = Folder(folder), Path(work).is_dir()
    if unfinished:
        with DatasetWriter(folder, work=work) as writer:
            writer.discard()
    old = [name for name in dataset.names() if (hour := _hour(name)) is not None and hour < before]
    earliest: int | None = None
    try:
        export = read_round(dataset)
    except FileNotFoundError:
        if not (unfinished or old):
            raise FileNotFoundError(str(dataset)) from None
    else:
        if export.round != round:
            old = []
            raise ReportDatasetError(f"{dataset} is a dataset of another round now")
        earliest = _rewrite(dataset, export, before)
    finally:
        for name in old:
            dataset.remove(name)
    return earliest


def _rewrite(dataset: Folder, export: RoundExport, before: int) -> int | None:
    """Write `_round.json` without parts before `before`; return the earliest remaining hour."""
    listed = export.reports or ()
    remaining = tuple(part for part in listed if part.hour >= before)
    if len(remaining) < len(listed):
        dataset.write(ROUND_FILE, round_file(replace(export, reports=remaining)))
    return min((part.hour for part in remaining), default=None)


def _hour(name: str) -> int | None:
    number = name.removeprefix("hour=")
    return int(number) if number != name and number.isascii() and number.isdigit() else None
