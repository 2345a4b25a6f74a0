"""A round's reports in one Parquet file, whose metadata holds the round's export.

Each field of a report is a column of its name; reports without fields are one column `report`.
Numbers keep their type; everything else, such as rows of bytes, is fixed-size binary.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from ldprecover import RoundExport
from ldprecover.errors import ParameterError, ReportError
from ldprecover.protocols import FrequencyOracle
from ldprecover.reports import ReportSource
from ldprecover.types import Reports
from ldprecover_client.errors import ReportFileError
from ldprecover_client.progress import Progress
from ldprecover_client.whole_files import whole_file

__all__ = ["ReportFile", "report_source", "write_report_file"]

SIGNATURE = b"PAR1"
"""The first bytes of a Parquet file."""

_ROUND = b"ldprecover.round"
"""Key of the export, as JSON, in the metadata of the file."""
_BATCH_BYTES = 32 << 20
"""Packed reports that are held in memory and shuffled together."""
_GROUP_BYTES = 4 << 20
"""Largest row group, in bytes of packed reports."""


@dataclass(frozen=True, eq=False)
class ReportFile:
    """A round and the Parquet file of its reports, which are read only on demand.

        file = ReportFile.open("cities.parquet")
        for reports in file.arrays():
            print(len(reports))

    `export` has the parameters and the tally of the round.
    """

    path: Path
    export: RoundExport

    @classmethod
    def open(cls, path: str | Path) -> ReportFile:
        """Return the file at a path.

        Raises ReportFileError if it cannot be read, is not one that `write_report_file` wrote, or
        its export was changed.
        """
        path = Path(path)
        with _open(path) as file:
            text = (file.metadata.metadata or {}).get(_ROUND)
            columns = file.schema_arrow
        if text is None:
            raise ReportFileError(
                f"{path} has no round: `ldprecover file reports` did not write it"
            )
        try:
            export = RoundExport.from_json(text)
        except ParameterError as error:
            raise ReportFileError(f"{path}: {error}") from None
        if not columns.equals(_schema(export.parameters.oracle)):
            protocol = export.parameters.protocol
            raise ReportFileError(f"{path} has other columns than reports of {protocol}")
        return cls(path, export)

    def arrays(self) -> Iterator[Reports]:
        """Yield the packed reports in arrays, some MiB each. Raises ReportFileError."""
        oracle = self.export.parameters.oracle
        with _open(self.path) as file:
            for batch in file.iter_batches(_rows(oracle), use_threads=False):
                yield _from_arrow(oracle, batch)


def report_source(
    files: Sequence[ReportFile], *, progress: Callable[[int, int], None] | None = None
) -> ReportSource:
    """Return the source of all reports of files of the same parameters, which it counts first.

        file = ReportFile.open("cities.parquet")
        recovered = file.export.recover("fiad", reports=report_source([file])).recovered

    `progress` is that of ReportSource. Raises ReportFileError if the counts are not the sum of
    those of the exports, and ParameterError for exports that do not add.
    """
    export = reduce(add, [file.export for file in files])
    source = ReportSource(
        export.parameters.oracle,
        lambda: chain.from_iterable(file.arrays() for file in files),
        progress=progress,
    )
    # Anyone can compute a valid checksum of an export, so the reports are counted.
    try:
        is_equal = source.tally() == export.tally
    except ReportError:
        is_equal = False
    if not is_equal:
        paths = " and ".join(str(file.path) for file in files)
        raise ReportFileError(f"the reports in {paths} differ from the counts of their export")
    return source


def write_report_file(
    path: str | Path,
    export: RoundExport,
    pieces: Iterable[bytes],
    *,
    progress: Progress | None = None,
) -> None:
    """Write a round's packed reports and its export to a new file, which only its owner reads.

        write_report_file("lunch.parquet", export, [reports.tobytes()])

    About 32 MiB of reports are in memory at a time, and are written in a random order. The file
    has its name only when it is complete. `progress` gets the numbers of reports written and of
    all. Raises OSError, and ReportFileError for another number of reports than the export's.
    """
    parquet = _parquet()
    oracle, n, written = export.parameters.oracle, export.tally.n, 0
    schema = _schema(oracle)
    with whole_file(Path(path), 0o600) as partial, parquet.ParquetWriter(partial, schema) as file:
        for reports in _batches(oracle, pieces):
            file.write_batch(_to_arrow(schema, reports), _rows(oracle))
            written += len(reports)
            if progress is not None:
                progress(written, n)
        if written != n:
            raise ReportFileError(
                f"the round {export.name} stores {written:,} of its {n:,} reports"
            )
        text = json.dumps(export.to_dict(), ensure_ascii=False, allow_nan=False)
        file.add_key_value_metadata({_ROUND: text.encode()})


def _parquet() -> Any:
    """Return pyarrow's module of Parquet. Raises ReportFileError without it."""
    try:
        from pyarrow import parquet
    except ImportError:
        message = "files of reports need pyarrow: pip install 'ldprecover[parquet]'"
        raise ReportFileError(message) from None
    return parquet


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Yield a Parquet file. Errors of it, also in the block, become ReportFileError."""
    parquet = _parquet()
    from pyarrow import ArrowException

    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (OSError, ArrowException) as error:
        raise ReportFileError(f"cannot read {path}: {error}") from None


def _rows(oracle: FrequencyOracle) -> int:
    """Return the number of reports in a row group."""
    return max(1, _GROUP_BYTES // oracle.wire.size)


def _batches(oracle: FrequencyOracle, pieces: Iterable[bytes]) -> Iterator[Reports]:
    """Yield the reports in batches, each in a random order that nobody can repeat."""
    rng = np.random.Generator(np.random.Philox(key=int.from_bytes(os.urandom(16))))
    pending = bytearray()
    for piece in chain(pieces, [None]):
        pending += piece or b""
        if pending and (piece is None or len(pending) >= _BATCH_BYTES):
            rng.shuffle(np.frombuffer(pending, f"V{oracle.wire.size}"))
            yield np.frombuffer(pending, oracle.wire.dtype)
            pending = bytearray()


def _schema(oracle: FrequencyOracle) -> Any:
    import pyarrow

    dtype = oracle.wire.dtype
    columns = [(name, dtype[name]) for name in dtype.names or ()] or [("report", dtype)]
    return pyarrow.schema(
        pyarrow.field(
            name,
            pyarrow.binary(field.itemsize) if field.subdtype else pyarrow.from_numpy_dtype(field),
            nullable=False,
        )
        for name, field in columns
    )


def _to_arrow(schema: Any, reports: Reports) -> Any:
    import pyarrow

    columns = []
    for field in schema:
        values = reports if reports.dtype.names is None else reports[field.name]
        data = pyarrow.py_buffer(np.ascontiguousarray(values))
        columns.append(pyarrow.Array.from_buffers(field.type, len(reports), [None, data]))
    return pyarrow.record_batch(columns, schema=schema)


def _from_arrow(oracle: FrequencyOracle, batch: Any) -> Reports:
    dtype = oracle.wire.dtype
    reports = np.empty(batch.num_rows, dtype)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        field = dtype if dtype.names is None else dtype[name]
        start = column.offset * field.itemsize
        values = np.frombuffer(column.buffers()[1], field, len(column), start)
        reports[... if dtype.names is None else name] = values
    return reports
