"""A round's reports as a dataset: `_round.json`, and a folder of Parquet parts for each hour."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from ldprecover import RoundExport
from ldprecover.counting.tally import Tally
from ldprecover.errors import ParameterError, ReportError
from ldprecover.recovery import ReportSource
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.folders import Folder
from ldprecover_cluster.limits import ROUND_FILE_BYTES
from ldprecover_cluster.parts import ParquetPart

ROUND_FILE = "_round.json"
"""The round's export with a list of parts; written last, so a dataset without it is incomplete."""


@dataclass(frozen=True, eq=False)
class ReportDataset:
    """A round and its reports, which are read from disk or network only on demand."""

    url: str
    export: RoundExport
    parts: tuple[ParquetPart, ...]

    @classmethod
    def open(cls, folder: str | Path) -> ReportDataset:
        """Return the dataset in a folder of this machine, or at a URL that fsspec opens.

        Raises ReportDatasetError if it is missing, or its `_round.json` was changed.
        """
        directory = Folder(folder)
        try:
            export = read_round(directory)
        except FileNotFoundError:
            raise ReportDatasetError(
                f"{directory} has no {ROUND_FILE}: it is not a dataset, or its export is unfinished"
            ) from None
        if export.reports is None:
            raise ReportDatasetError(f"{directory}/{ROUND_FILE} is an export without reports")
        dtype = export.parameters.oracle.wire.dtype
        parts = (
            ParquetPart(directory.url, part.hour, part.name, part.n, part.sha256, dtype)
            for part in export.reports
        )
        return cls(directory.url, export, tuple(parts))

    @property
    def n(self) -> int:
        """The number of its reports."""
        return sum(part.n for part in self.parts)

    @property
    def missing(self) -> int:
        """The number of reports in the round's tally that the dataset lacks."""
        return self.export.tally.n - self.n

    def tally(
        self,
        *,
        executor: Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Tally:
        """Read and check all reports in one pass; return their tally.

        Raises ReportDatasetError for an invalid report, and if the reports cannot give the round's
        tally, or a part of it if some are missing.
        """
        oracle, whole = self.export.parameters.oracle, self.export.tally
        try:
            tally = ReportSource.of_parts(
                oracle, self.parts, executor=executor, progress=progress
            ).tally()
        except ReportError as error:
            raise self._fault(error) from error
        if (tally != whole) if not self.missing else (tally.summary > whole.summary).any():
            raise ReportDatasetError(
                f"the reports of {self.url} differ from the counts in its {ROUND_FILE}"
            )
        return tally

    def _fault(self, error: ReportError) -> ReportDatasetError:
        """Return the error of a report, with its part and position in it."""
        position = error.position
        if position is not None:
            for part in self.parts:
                if position < part.n:
                    return ReportDatasetError(f"{part}: {ReportError(error.reason, position)}")
                position -= part.n
        return ReportDatasetError(f"the reports of {self.url}: {error}")


def read_round(directory: Folder) -> RoundExport:
    """Return the export in `_round.json`. Raises ReportDatasetError and FileNotFoundError."""
    data = directory.read(ROUND_FILE, ROUND_FILE_BYTES + 1)
    if len(data) > ROUND_FILE_BYTES:
        raise ReportDatasetError(
            f"{directory}/{ROUND_FILE} is larger than the limit of {ROUND_FILE_BYTES >> 20} MiB"
        )
    try:
        return RoundExport.from_json(data)
    except ParameterError as error:
        raise ReportDatasetError(f"{directory}/{ROUND_FILE}: {error}") from error


def round_file(export: RoundExport) -> bytes:
    """Return the content of a dataset's `_round.json`."""
    return json.dumps(export.to_dict(), ensure_ascii=False, allow_nan=False).encode() + b"\n"
