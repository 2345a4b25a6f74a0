"""A round's reports as a dataset in a folder: `round.json`, and a folder of parts for each hour."""

import json
from dataclasses import dataclass
from pathlib import Path

from ldprecover import RoundExport
from ldprecover.errors import ParameterError
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.folders import Folder
from ldprecover_cluster.parts import ParquetPart

__all__ = ["ROUND_FILE", "ReportDataset", "round_file"]

ROUND_FILE = "round.json"
"""The round's export, with its parts listed. It is written last: a dataset without one is not complete."""


@dataclass(frozen=True, eq=False)
class ReportDataset:
    """A round, and its reports where they lie: nothing of them is read before somebody asks a part for them."""

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
            export = RoundExport.from_json(there.read(ROUND_FILE))
        except FileNotFoundError:
            raise ReportDatasetError(
                f"{there} has no {ROUND_FILE}: it is no report dataset, or its export has not ended"
            ) from None
        except ParameterError as error:
            raise ReportDatasetError(f"{there}/{ROUND_FILE}: {error}") from error
        if export.reports is None:
            raise ReportDatasetError(f"{there}/{ROUND_FILE} is an export of counts alone: it lists no reports")
        form = export.parameters.oracle.report_dtype
        parts = (ParquetPart(there.url, part.hour, part.name, part.n, part.sha256, form) for part in export.reports)
        return cls(there.url, export, tuple(parts))

    @property
    def n(self) -> int:
        """The number of its reports."""
        return sum(part.n for part in self.parts)

    @property
    def missing(self) -> int:
        """The number of reports in the round's tally that it does not have."""
        return self.export.tally.n - self.n


def round_file(export: RoundExport) -> bytes:
    """Return what is in a dataset's `round.json`."""
    return json.dumps(export.to_dict(), ensure_ascii=False, allow_nan=False).encode() + b"\n"
