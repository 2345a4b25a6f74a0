"""Converts reports to columns of Parquet by their array type, for any protocol.

Each field of a record becomes a column of its name; reports without fields become one column
`report`. Numbers keep their type; everything else, such as rows of bytes, becomes fixed binary.
"""

from typing import TYPE_CHECKING

import numpy as np

from ldprecover.types import Reports
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.optional_imports import optional_module

if TYPE_CHECKING:
    import pyarrow as pa

COLUMN = "report"
"""Column of reports without fields."""


def arrow_schema(dtype: np.dtype) -> "pa.Schema":
    """Return the Arrow schema of reports of a type, an oracle's `wire.dtype`."""
    pa = optional_module("pyarrow")
    fields = (pa.field(name, _arrow_type(each), nullable=False) for name, each in _columns(dtype))
    return pa.schema(fields)


def row_bytes(dtype: np.dtype) -> int:
    """Return the bytes of a report in a file: Parquet stores small integers in four bytes."""
    return sum(
        max(4, field_type.itemsize) if _is_number(field_type) else field_type.itemsize
        for _, field_type in _columns(dtype)
    )


def to_batch(dtype: np.dtype, reports: Reports) -> "pa.RecordBatch":
    """Return reports as an Arrow record batch."""
    pa = optional_module("pyarrow")
    schema = arrow_schema(dtype)
    arrays = []
    for (name, field_type), field in zip(_columns(dtype), schema, strict=True):
        values = np.ascontiguousarray(reports if dtype.names is None else reports[name])
        if _is_number(field_type):
            arrays.append(pa.array(values, type=field.type))
        else:
            arrays.append(
                pa.Array.from_buffers(field.type, len(values), [None, pa.py_buffer(values)])
            )
    return pa.record_batch(arrays, schema=schema)


def check_columns(dtype: np.dtype, schema: "pa.Schema") -> None:
    """Raise ReportDatasetError for columns that differ from `arrow_schema`."""
    expected = arrow_schema(dtype)
    if not schema.equals(expected, check_metadata=False):
        raise ReportDatasetError(
            f"its columns are {_shown(schema)}; those of the round's reports are {_shown(expected)}"
        )


def _shown(schema: "pa.Schema") -> str:
    return ", ".join(
        f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in schema
    )[:200]


def from_table(dtype: np.dtype, table: "pa.Table") -> Reports:
    """Return the reports of a table. Raises ReportDatasetError for other columns and nulls."""
    check_columns(dtype, table.schema)
    rows = np.empty(table.num_rows, dtype=dtype)
    for name, field_type in _columns(dtype):
        values = rows if dtype.names is None else rows[name]
        first = 0
        for chunk in table.column(name).chunks:
            if chunk.null_count:
                raise ReportDatasetError(f"its column {name} has a null")
            values[first : first + len(chunk)] = _values(field_type, chunk)
            first += len(chunk)
    return rows


def _values(field_type: np.dtype, chunk: "pa.Array") -> np.ndarray:
    if _is_number(field_type):
        return np.asarray(chunk.to_numpy(zero_copy_only=True))
    start, size = chunk.offset * field_type.itemsize, len(chunk) * field_type.itemsize
    packed = np.frombuffer(chunk.buffers()[1], dtype=np.uint8)[start : start + size]
    return packed.view(field_type.base).reshape(len(chunk), *field_type.shape)


def _columns(dtype: np.dtype) -> list[tuple[str, np.dtype]]:
    """Return the name and type of each column."""
    if dtype.names is None:
        return [(COLUMN, dtype)]
    return [(name, dtype[name]) for name in dtype.names]


def _is_number(field_type: np.dtype) -> bool:
    return (
        field_type.subdtype is None
        and field_type.kind in "iuf"
        and field_type.newbyteorder("<") == field_type
    )


def _arrow_type(field_type: np.dtype) -> "pa.DataType":
    pa = optional_module("pyarrow")
    return (
        pa.from_numpy_dtype(field_type)
        if _is_number(field_type)
        else pa.binary(field_type.itemsize)
    )
