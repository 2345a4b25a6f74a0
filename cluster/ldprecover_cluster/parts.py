"""The parts of a dataset: files of reports, each read and checked by whoever measures it."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldprecover.rounds.report_files import ReportPart
from ldprecover.types import Reports
from ldprecover_cluster.columns import check_columns, row_bytes, rows_of, to_batch
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.extra import parquet, pyarrow
from ldprecover_cluster.folders import Folder
from ldprecover_cluster.limits import FILE_BYTES, rows_of_group

_ENCODINGS = {
    "PLAIN",
    "RLE",
    "BIT_PACKED",
}  # the last two of levels, which columns without missing values have none of
_SLACK = 1 << 20  # bytes that a file may have beside its reports, and as many again as these


@dataclass(frozen=True)
class ParquetPart:
    """One file of reports in a dataset: small, and picklable for other processes, which must reach
    `url` themselves.

    `url` is the dataset's, and `form` the array type of its round's reports.
    """

    url: str
    hour: int
    name: str
    n: int
    sha256: str
    form: np.dtype

    def __str__(self) -> str:
        return f"the part {place_of(self.hour, self.name)} of {self.url}"

    def arrays(self) -> Iterator[Reports]:
        """Yield its reports, a row group at a time. One file of the dataset's is in memory
        meanwhile.

        Raises ReportDatasetError, with the part's name, for a file that is not there, whose bytes
        are not those that the round's file lists, or that does not hold so many such reports; and
        before anything is decoded for one that is compressed, or that is larger, or has larger row
        groups, than `limits` says.
        """
        try:
            yield from self._arrays(self._read())
        except ReportDatasetError as error:
            raise ReportDatasetError(f"{self}: {error}") from error

    def _read(self) -> bytes:
        most = min(2 * self.n * row_bytes(self.form) + _SLACK, FILE_BYTES)
        try:
            data = Folder(self.url).read(place_of(self.hour, self.name), most + 1)
        except FileNotFoundError:
            raise ReportDatasetError("it is not there") from None
        if len(data) > FILE_BYTES:
            raise ReportDatasetError(f"it is larger than {FILE_BYTES >> 20} MiB, which no part is")
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise ReportDatasetError(
                "its bytes are not those that were written: it is damaged or was changed"
            )
        return data

    def _arrays(self, data: bytes) -> Iterator[Reports]:
        pa = pyarrow()
        if (
            int.from_bytes(data[-8:-4], "little") > _SLACK
        ):  # what is parsed takes many times as much
            raise ReportDatasetError("it is not a Parquet file of reports: its footer is too large")
        try:
            file = parquet().ParquetFile(pa.BufferReader(data))
            n, groups, schema = file.metadata.num_rows, file.num_row_groups, file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise ReportDatasetError(f"it is not a Parquet file: {error}") from error
        if n != self.n:
            raise ReportDatasetError(f"it has {n} reports, and should have {self.n}")
        check_columns(self.form, schema)
        _check_groups(file.metadata, self.form)
        for group in range(groups):
            try:
                table = file.read_row_group(group, use_threads=False)
            except (pa.ArrowException, OSError) as error:
                raise ReportDatasetError(f"it cannot be read: {error}") from error
            yield rows_of(self.form, table)


def _check_groups(metadata: Any, form: np.dtype) -> None:
    """See that what a file's row groups become when they are read is as small as what the writer
    makes.
    """
    rows = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        if not 0 <= group.num_rows <= rows_of_group(form):
            raise ReportDatasetError(
                f"it has a row group of {group.num_rows} reports, not of {rows_of_group(form)} at "
                "most"
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
            f"its row groups have {rows} reports together, and should have {metadata.num_rows}"
        )


def encode(hour: int, name: str, reports: Reports, form: np.dtype) -> tuple[ReportPart, memoryview]:
    """Return what the round's file says of a part of these reports, and its bytes.

    Neither compressed nor by dictionary: reports are random bits. No statistics, which tell nothing
    of reports in random order.
    """
    pa = pyarrow()
    step = rows_of_group(form)
    sink = pa.BufferOutputStream()
    options = {
        "compression": "none",
        "use_dictionary": False,
        "write_statistics": False,
        "store_schema": False,
    }
    with parquet().ParquetWriter(sink, to_batch(form, reports[:0]).schema, **options) as writer:
        for first in range(0, len(reports), step):
            writer.write_batch(to_batch(form, reports[first : first + step]), row_group_size=step)
    data = memoryview(sink.getvalue())
    return ReportPart(hour, name, len(reports), hashlib.sha256(data).hexdigest()), data


def folder_of(hour: int) -> str:
    """Return the name of the folder of an hour's parts."""
    return f"hour={hour}"


def place_of(hour: int, name: str) -> str:
    """Return where a part is in its dataset."""
    return f"{folder_of(hour)}/{name}"
