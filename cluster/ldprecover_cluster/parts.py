"""The parts of a dataset: Parquet files of reports, checked when they are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldprecover.rounds.report_files import ReportPart
from ldprecover.types import Reports
from ldprecover_cluster.columns import check_columns, from_table, row_bytes, to_batch
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.folders import Folder
from ldprecover_cluster.limits import FILE_BYTES, rows_per_group
from ldprecover_cluster.optional_imports import optional_module

_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED"}  # the last two encode levels, not values
_OVERHEAD_BYTES = 1 << 20  # limit for a file's metadata; its reports may take twice their size


@dataclass(frozen=True)
class ParquetPart:
    """Reference to one file of reports, picklable for processes that can open `url`.

    `url` is the dataset's URL, `hour` counts from the epoch, and `dtype` is the report type.
    """

    url: str
    hour: int
    name: str
    n: int
    sha256: str
    dtype: np.dtype

    def __str__(self) -> str:
        return f"the part {part_path(self.hour, self.name)} of {self.url}"

    def arrays(self) -> Iterator[Reports]:
        """Yield its reports by row group; the file is in memory meanwhile.

        Raises ReportDatasetError, with the part's name, if the file is missing, its digest or
        number of reports differ from `_round.json`, or its columns are others. A file that is
        compressed or exceeds `limits` is rejected before anything is decoded.
        """
        try:
            yield from self._arrays(self._read())
        except ReportDatasetError as error:
            raise ReportDatasetError(f"{self}: {error}") from error

    def _read(self) -> bytes:
        limit = min(2 * self.n * row_bytes(self.dtype) + _OVERHEAD_BYTES, FILE_BYTES)
        try:
            data = Folder(self.url).read(part_path(self.hour, self.name), limit + 1)
        except FileNotFoundError:
            raise ReportDatasetError("the file is missing") from None
        if len(data) > limit:
            raise ReportDatasetError(
                f"it is larger than {limit} bytes, the limit for {self.n} reports: it is damaged "
                "or was changed"
            )
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise ReportDatasetError("its digest is wrong: it is damaged or was changed")
        return data

    def _arrays(self, data: bytes) -> Iterator[Reports]:
        pa = optional_module("pyarrow")
        footer = int.from_bytes(data[-8:-4], "little")
        if data[-4:] != b"PAR1" or footer > len(data):
            raise ReportDatasetError("it is not a Parquet file")
        # Parsed metadata takes many times the size of the footer.
        if footer > _OVERHEAD_BYTES:
            raise ReportDatasetError(
                f"its footer has {footer} bytes; the limit is {_OVERHEAD_BYTES}. An export writes "
                "a few columns and row groups"
            )
        try:
            file = optional_module("pyarrow.parquet").ParquetFile(pa.BufferReader(data))
            n, groups, schema = file.metadata.num_rows, file.num_row_groups, file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise ReportDatasetError(f"it is not a Parquet file: {error}") from error
        if n != self.n:
            raise ReportDatasetError(f"it has {n} reports instead of {self.n}")
        check_columns(self.dtype, schema)
        _check_groups(file.metadata, self.dtype)
        for group in range(groups):
            try:
                table = file.read_row_group(group, use_threads=False)
            except (pa.ArrowException, OSError) as error:
                raise ReportDatasetError(f"it cannot be read: {error}") from error
            yield from_table(self.dtype, table)


def _check_groups(metadata: Any, dtype: np.dtype) -> None:
    """Raise ReportDatasetError if decoding could take more memory than for our own files."""
    rows = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        if not 0 <= group.num_rows <= rows_per_group(dtype):
            raise ReportDatasetError(
                f"it has a row group of {group.num_rows} reports; the limit is "
                f"{rows_per_group(dtype)}"
            )
        for column in map(group.column, range(group.num_columns)):
            if column.compression != "UNCOMPRESSED":
                raise ReportDatasetError(f"it is compressed, by {column.compression}")
            if column.has_dictionary_page or not _ENCODINGS.issuperset(column.encodings):
                raise ReportDatasetError(
                    f"its encodings are {', '.join(column.encodings)}, not PLAIN"
                )
        rows += group.num_rows
    if rows != metadata.num_rows:
        raise ReportDatasetError(
            f"its row groups have {rows} reports together instead of {metadata.num_rows}"
        )


def encode(
    hour: int, name: str, reports: Reports, dtype: np.dtype
) -> tuple[ReportPart, memoryview]:
    """Return the entry for `_round.json` and the Parquet file of reports.

    Without compression, dictionaries and statistics: reports are random bits in random order.
    """
    pa = optional_module("pyarrow")
    step = rows_per_group(dtype)
    sink = pa.BufferOutputStream()
    options = {
        "compression": "none",
        "use_dictionary": False,
        "write_statistics": False,
        "store_schema": False,
    }
    schema = to_batch(dtype, reports[:0]).schema
    with optional_module("pyarrow.parquet").ParquetWriter(sink, schema, **options) as writer:
        for first in range(0, len(reports), step):
            writer.write_batch(to_batch(dtype, reports[first : first + step]), row_group_size=step)
    data = memoryview(sink.getvalue())
    return ReportPart(hour, name, len(reports), hashlib.sha256(data).hexdigest()), data


def part_path(hour: int, name: str) -> str:
    """Return the path of a part in its dataset."""
    return f"hour={hour}/{name}"
