"""A round's reports as a dataset in a folder: `round.json`, and a folder of parts for each hour."""

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

ROUND_FILE = "round.json"
"""The round's export, with its parts listed. It is written last: a dataset without one is not
complete.
"""


@dataclass(frozen=True, eq=False)
class ReportDataset:
    """A round, and its reports where they lie: nothing of them is read before somebody asks a part
    for them.
    """

    url: str
    export: RoundExport
    parts: tuple[ParquetPart, ...]

    @classmethod
    def open(cls, folder: str | Path) -> "ReportDataset":
        """Return the dataset in a folder of this machine, or at a URL that fsspec opens.

        Raises ReportDatasetError where there is none, or its `round.json` is not as it was written.
        """
        there = Folder(folder)
        try:
            export = read_round(there)
        except FileNotFoundError:
            raise ReportDatasetError(
                f"{there} has no {ROUND_FILE}: it is no report dataset, or its export has not ended"
            ) from None
        if export.reports is None:
            raise ReportDatasetError(
                f"{there}/{ROUND_FILE} is an export of counts alone: it lists no reports"
            )
        form = export.parameters.oracle.report_dtype
        parts = (
            ParquetPart(there.url, part.hour, part.name, part.n, part.sha256, form)
            for part in export.reports
        )
        return cls(there.url, export, tuple(parts))

    @property
    def n(self) -> int:
        """The number of its reports."""
        return sum(part.n for part in self.parts)

    @property
    def missing(self) -> int:
        """The number of reports in the round's tally that it does not have."""
        return self.export.tally.n - self.n

    def tally(
        self,
        *,
        executor: Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Tally:
        """Return the tally of its reports, read in one pass and checked, as a `ReportSource` does
        it.

        Raises ReportDatasetError for one that is no report of the round, and where they do not give
        the round's tally, or cannot be some of its reports.
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
                f"the reports of {self.url} do not give the counts of its {ROUND_FILE}"
            )
        return tally

    def _fault(self, error: ReportError) -> ReportDatasetError:
        """Return what is wrong with a report, by its part."""
        position = error.position
        if position is not None:
            for part in self.parts:
                if position < part.n:
                    return ReportDatasetError(f"{part}: {ReportError(error.reason, position)}")
                position -= part.n
        return ReportDatasetError(f"the reports of {self.url}: {error}")


def read_round(there: Folder) -> RoundExport:
    """Return what a folder's `round.json` says. Raises ReportDatasetError, and FileNotFoundError
    where it has none.
    """
    data = there.read(ROUND_FILE, ROUND_FILE_BYTES + 1)
    if len(data) > ROUND_FILE_BYTES:
        raise ReportDatasetError(
            f"{there}/{ROUND_FILE} is larger than {ROUND_FILE_BYTES >> 20} MiB, which no export is"
        )
    try:
        return RoundExport.from_json(data)
    except ParameterError as error:
        raise ReportDatasetError(f"{there}/{ROUND_FILE}: {error}") from error


def round_file(export: RoundExport) -> bytes:
    """Return what is in a dataset's `round.json`."""
    return json.dumps(export.to_dict(), ensure_ascii=False, allow_nan=False).encode() + b"\n"
