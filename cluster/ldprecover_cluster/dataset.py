"""A round's reports as a dataset: Parquet files in a folder, beside the round's export.

Each field of a report becomes a column of its name; reports without fields become one column
`report`. Numbers keep their type; everything else, such as rows of bytes, is fixed-size binary.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow
import pyarrow.dataset

from ldprecover import RoundExport
from ldprecover.errors import ParameterError
from ldprecover.protocols import FrequencyOracle
from ldprecover.types import Reports, Rng
from ldprecover_cluster.errors import ReportDatasetError

ROUND_FILE = "_round.json"
"""The round's export; written last, so a dataset without it is incomplete."""

_BATCH_BYTES = 32 << 20
"""Packed reports that are held in memory and shuffled together."""
_GROUP_BYTES = 4 << 20
"""Largest row group, in bytes of packed reports."""
_FILE_PAIRS = 1 << 30
"""Largest number of (report, item) pairs in a file: about a second of counting."""


@dataclass(frozen=True, eq=False)
class ReportDataset:
    """A round and the Parquet fragments of its reports, which are read only on demand."""

    url: str
    export: RoundExport
    fragments: tuple[Any, ...]

    @classmethod
    def open(cls, url: str | Path) -> ReportDataset:
        """Return the dataset in a folder of this machine, or at a URL that fsspec opens.

        Raises ReportDatasetError if it is missing, or its `_round.json` was changed.
        """
        try:
            files, path = fsspec.core.url_to_fs(str(url))
            export = RoundExport.from_json(files.cat_file(f"{path}/{ROUND_FILE}"))
            dataset = pyarrow.dataset.dataset(
                path, schema=_schema(export.parameters.oracle), format="parquet", filesystem=files
            )
            fragments = sorted(dataset.get_fragments(), key=lambda fragment: fragment.path)
            for fragment in fragments:
                fragment.ensure_complete_metadata()
        except FileNotFoundError:
            reason = "it is not a dataset, or it was not written to its end"
            raise ReportDatasetError(shown(f"{url} has no {ROUND_FILE}: {reason}", url)) from None
        except (OSError, ValueError, ImportError, ParameterError) as error:
            raise ReportDatasetError(
                shown(f"cannot read the dataset {url}: {error}", url)
            ) from None
        return cls(str(url), export, tuple(fragments))


def shown(message: str, url: str | Path) -> str:
    """Return a message in which only the scheme is left of a URL that may have secrets."""
    text = str(url)
    scheme, separator, rest = text.partition("://")
    has_secrets = separator and ("@" in rest or "?" in rest)
    return message.replace(text, f"{scheme}://***") if has_secrets else message


def write_dataset(url: str | Path, export: RoundExport, pieces: Iterable[bytes]) -> ReportDataset:
    """Write a round's packed reports into a new folder, then its export; return the dataset.

    Some 32 MiB of reports are in memory at a time, and are written in random order. Raises
    ReportDatasetError for a folder that is not empty, for errors of the file system, and for
    another number of reports than the export's.
    """
    oracle, written = export.parameters.oracle, 0
    schema = _schema(oracle)
    rows = max(1, min(_FILE_PAIRS // oracle.domain_size, _BATCH_BYTES // oracle.wire.size))
    try:
        files, path = fsspec.core.url_to_fs(str(url))
        if files.exists(path) and files.ls(path):
            raise ReportDatasetError(shown(f"{url} is not empty: name a new folder", url))
        for number, reports in enumerate(_batches(oracle, pieces)):
            # One call for each batch: a signal is handled between two of them.
            pyarrow.dataset.write_dataset(
                _to_arrow(schema, reports),
                path,
                basename_template=f"part-{number:06}-{{i}}.parquet",
                format="parquet",
                filesystem=files,
                max_rows_per_file=rows,
                max_rows_per_group=max(1, min(rows, _GROUP_BYTES // oracle.wire.size)),
                existing_data_behavior="overwrite_or_ignore",
            )
            written += len(reports)
        if written != export.tally.n:
            raise ReportDatasetError(
                f"the round {export.name} stores {written:,} of its {export.tally.n:,} reports"
            )
        text = json.dumps(export.to_dict(), ensure_ascii=False, allow_nan=False)
        files.makedirs(path, exist_ok=True)  # of a round without reports
        files.pipe_file(f"{path}/{ROUND_FILE}", text.encode() + b"\n")
    except (OSError, ValueError, ImportError) as error:
        raise ReportDatasetError(shown(f"cannot write the dataset {url}: {error}", url)) from None
    return ReportDataset.open(url)


def arrays(oracle: FrequencyOracle, fragment: Any) -> Iterator[Reports]:
    """Yield the reports of a fragment. Raises ReportDatasetError if it cannot be read."""
    schema, dtype = _schema(oracle), oracle.wire.dtype
    try:
        for batch in fragment.to_batches(schema=schema, use_threads=False, batch_readahead=0):
            reports = np.empty(batch.num_rows, dtype)
            for name, column in zip(schema.names, batch.columns, strict=True):
                if column.null_count:
                    raise ReportDatasetError(f"{fragment.path} has a null in its column {name}")
                field = dtype if dtype.names is None else dtype[name]
                start, (_, data) = column.offset * field.itemsize, column.buffers()
                target = reports if dtype.names is None else reports[name]
                target[:] = np.frombuffer(data, field, len(column), start)
            yield reports
    except (OSError, ValueError) as error:
        raise ReportDatasetError(f"cannot read {fragment.path}: {error}") from error


def _batches(oracle: FrequencyOracle, pieces: Iterable[bytes]) -> Iterator[Reports]:
    """Yield the reports in batches, each in a random order that nobody can repeat."""
    rng = np.random.Generator(np.random.Philox(key=int.from_bytes(os.urandom(16))))
    pending = bytearray()
    for piece in pieces:
        pending += piece
        if len(pending) >= _BATCH_BYTES:
            yield _shuffle(oracle, pending, rng)
            pending = bytearray()
    if pending:
        yield _shuffle(oracle, pending, rng)


def _shuffle(oracle: FrequencyOracle, packed: bytearray, rng: Rng) -> Reports:
    rng.shuffle(np.frombuffer(packed, f"V{oracle.wire.size}"))
    return np.frombuffer(packed, oracle.wire.dtype)


def _schema(oracle: FrequencyOracle) -> pyarrow.Schema:
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


def _to_arrow(schema: pyarrow.Schema, reports: Reports) -> pyarrow.RecordBatch:
    columns = []
    for field in schema:
        values = reports if reports.dtype.names is None else reports[field.name]
        data = pyarrow.py_buffer(np.ascontiguousarray(values))
        columns.append(pyarrow.Array.from_buffers(field.type, len(reports), [None, data]))
    return pyarrow.record_batch(columns, schema=schema)
