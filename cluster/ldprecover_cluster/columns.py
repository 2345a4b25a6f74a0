"""Reports as columns of Parquet, by what their array type says: no protocol is known here.

Each field of a record is a column of its name, and reports without fields are one column `report`.
A number is a number of its size; everything else, such as rows of bytes, is binary of its size.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ldprecover.types import Reports
from ldprecover_cluster.errors import ReportDatasetError
from ldprecover_cluster.extra import pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

COLUMN = "report"
"""The column of reports that have no fields."""


def schema_of(form: np.dtype) -> "pa.Schema":
    """Return the schema of reports of a type, an oracle's `report_dtype`."""
    pa = pyarrow()
    return pa.schema(
        [pa.field(name, _arrow_type(each), nullable=False) for name, each in _columns(form)]
    )


def row_bytes(form: np.dtype) -> int:
    """Return the bytes that a report takes in a file: Parquet stores small integers in four."""
    return sum(
        max(4, each.itemsize) if _is_number(each) else each.itemsize for _, each in _columns(form)
    )


def to_batch(form: np.dtype, reports: Reports) -> "pa.RecordBatch":
    """Return reports as columns."""
    pa = pyarrow()
    schema = schema_of(form)
    arrays = []
    for (name, each), field in zip(_columns(form), schema, strict=True):
        values = np.ascontiguousarray(reports if form.names is None else reports[name])
        if _is_number(each):
            arrays.append(pa.array(values, type=field.type))
        else:
            arrays.append(
                pa.Array.from_buffers(field.type, len(values), [None, pa.py_buffer(values)])
            )
    return pa.record_batch(arrays, schema=schema)


def check_columns(form: np.dtype, schema: "pa.Schema") -> None:
    """Raise ReportDatasetError for columns other than those of `schema_of`."""
    if not schema.equals(schema_of(form), check_metadata=False):
        said = ", ".join(f"{field.name} {field.type}" for field in schema)
        raise ReportDatasetError(f"its columns are {said[:200]}, not those of the round's reports")


def rows_of(form: np.dtype, table: "pa.Table") -> Reports:
    """Return the reports in columns of `schema_of`. Raises ReportDatasetError for others, or a
    missing value.
    """
    check_columns(form, table.schema)
    rows = np.empty(table.num_rows, dtype=form)
    for name, each in _columns(form):
        values = rows if form.names is None else rows[name]
        first = 0
        for chunk in table.column(name).chunks:
            if chunk.null_count:
                raise ReportDatasetError(f"its column {name} misses a value")
            values[first : first + len(chunk)] = _values(each, chunk)
            first += len(chunk)
    return rows


def _values(each: np.dtype, chunk: "pa.Array") -> np.ndarray:
    if _is_number(each):
        return np.asarray(chunk.to_numpy(zero_copy_only=True))
    start, size = chunk.offset * each.itemsize, len(chunk) * each.itemsize
    packed = np.frombuffer(chunk.buffers()[1], dtype=np.uint8)[start : start + size]
    return packed.view(each.base).reshape(len(chunk), *each.shape)


def _columns(form: np.dtype) -> Iterator[tuple[str, np.dtype]]:
    """Yield the name and type of each column."""
    if form.names is None:
        yield COLUMN, form
        return
    assert form.fields is not None
    for name in form.names:
        yield name, form.fields[name][0]


def _is_number(each: np.dtype) -> bool:
    return each.subdtype is None and each.kind in "iuf" and each.newbyteorder("<") == each


def _arrow_type(each: np.dtype) -> "pa.DataType":
    pa = pyarrow()
    return pa.from_numpy_dtype(each) if _is_number(each) else pa.binary(each.itemsize)
