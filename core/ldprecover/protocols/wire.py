"""Packed and JSON forms of reports, for every protocol.

An array of reports in memory *is* its packed form, so packing copies nothing: rows of the oracle's
`report_dtype`, without a header. The JSON form is an object of arrays, the oracle's `columns`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ldprecover.errors import ReportError
from ldprecover.protocols import Column, FrequencyOracle
from ldprecover.types import Reports

MEDIA_TYPE = "application/vnd.ldprecover.reports"


def longest_json(oracle: FrequencyOracle) -> int:
    """Return the maximum number of characters of one report in its JSON form."""
    return sum(column.longest for column in oracle.columns)


def pack(reports: Reports) -> bytes:
    """Return the packed bytes of reports."""
    return reports.tobytes()


def unpack(oracle: FrequencyOracle, data: bytes | bytearray | memoryview) -> Reports:
    """Return the reports in packed bytes, checked.

    Raises ReportError for no report, for a length that is no multiple of the report size, and for a
    report outside its range.
    """
    size = oracle.report_size
    if not len(data):
        raise ReportError("a submission needs at least one report")
    if len(data) % size:
        raise ReportError(
            f"{len(data)} bytes are not a whole number of reports of {size} bytes",
            position=len(data) // size,
        )
    reports = np.frombuffer(data, dtype=oracle.report_dtype)
    oracle.check(reports)
    return reports


def to_json(oracle: FrequencyOracle, reports: Reports) -> dict[str, Any]:
    """Return the JSON form of reports, as Python objects."""
    values = oracle.to_columns(reports)
    return {column.name: each for column, each in zip(oracle.columns, values, strict=True)}


def from_json(oracle: FrequencyOracle, body: Any) -> Reports:
    """Return the reports in a decoded JSON body, checked.

    Raises ReportError naming the first bad report. Only JSON integers are numbers: neither "3" nor
    true nor 3.0.
    """
    if not isinstance(body, dict):
        raise ReportError("the body must be a JSON object")
    columns = oracle.columns
    values = _values(body, *(column.name for column in columns))
    if any(values):
        for column, entries in zip(columns, values, strict=True):
            # The oracle itself checks every character of strings.
            if column.kind is int and not _within(entries, column.limit):
                raise _column_fault(columns, values)
    return from_columns(oracle, values)


def from_columns(oracle: FrequencyOracle, values: Sequence[list[Any]]) -> Reports:
    """Return the reports in the columns of the JSON form, whose values are of their type and range.

    Raises ReportError for no report, for columns of unequal length, and for values that the oracle
    rejects.
    """
    if not any(values):
        raise ReportError("a submission needs at least one report")
    n = len(values[0])
    for entries in values:
        if len(entries) != n:
            raise _column_fault(oracle.columns, values)
    return oracle.from_columns(values)


def _values(body: dict[str, Any], *names: str) -> list[list[Any]]:
    extra = sorted(set(body) - set(names))
    if extra:
        raise ReportError(
            f"unknown field {extra[0]!r:.60}; this protocol's reports are in {' and '.join(names)}"
        )
    columns = []
    for name in names:
        column = body.get(name)
        if not isinstance(column, list):
            raise ReportError(f"{name} must be an array")
        columns.append(column)
    return columns


def _within(values: list[Any], limit: int) -> bool:
    """Return whether every value is an integer in 0..limit-1."""
    return set(map(type, values)) == {int} and min(values) >= 0 and max(values) < limit


def _column_fault(columns: Sequence[Column], values: Sequence[list[Any]]) -> ReportError:
    """Return the error of the first bad report, or of columns of unequal length."""
    faults: list[tuple[int, str]] = []
    for column, entries in zip(columns, values, strict=True):
        position = next((i for i, value in enumerate(entries) if not column.takes(value)), None)
        if position is not None:
            faults.append((position, column.reason))
    lengths = [len(entries) for entries in values]
    if len(set(lengths)) > 1:
        names, sizes = (
            " and ".join(map(str, each)) for each in ([column.name for column in columns], lengths)
        )
        faults.append((min(lengths), f"{names} must be of equal length, not {sizes}"))
    position, reason = min(faults, key=lambda fault: fault[0])
    return ReportError(reason, position=position)
