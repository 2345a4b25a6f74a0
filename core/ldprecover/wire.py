"""Packed and JSON forms of reports: the one place that knows bytes.

An array of reports in memory *is* its packed form, so packing copies nothing:

    grr   u4 an item
    oue   ceil(d/8) bytes a report; item i is bit i%8 of byte i//8, padding bits zero
    olh   u4 seed, u2 bucket

all little-endian, without a header. As JSON: {"reports": [17, 3]} (GRR), {"reports": ["0100"]}
(OUE, position i is item i), {"seeds": [...], "buckets": [...]} (OLH).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldprecover.errors import ReportError
from ldprecover.protocols import OLH, OUE, FrequencyOracle
from ldprecover.types import Reports

__all__ = [
    "MEDIA_TYPE",
    "Column",
    "from_columns",
    "from_json",
    "json_columns",
    "longest_json",
    "pack",
    "to_json",
    "unpack",
]

MEDIA_TYPE = "application/vnd.ldprecover.reports"

_SEEDS = 1 << 32


@dataclass(frozen=True)
class Column:
    """An array of the JSON form: one value a report.

    Integers are from 0 to `limit` - 1, strings are of `limit` characters 0 or 1; `reason` says so of a value that
    is none.
    """

    name: str
    kind: type[int] | type[str]
    limit: int

    @property
    def reason(self) -> str:
        """What a bad value is told."""
        if self.kind is str:
            return f"the report must be a string of {self.limit} characters 0 or 1"
        what = "item" if self.name == "reports" else self.name.removesuffix("s")
        return f"the {what} must be an integer from 0 to {self.limit - 1}"

    @property
    def longest(self) -> int:
        """The most characters that one value takes, with the comma and the space behind it."""
        return self.limit + 2 + 2 if self.kind is str else len(str(self.limit - 1)) + 2


def json_columns(oracle: FrequencyOracle) -> tuple[Column, ...]:
    """Return the columns of the JSON form of an oracle's reports."""
    if isinstance(oracle, OLH):
        return Column("seeds", int, _SEEDS), Column("buckets", int, oracle.hash_range)
    if isinstance(oracle, OUE):
        return (Column("reports", str, oracle.domain_size),)
    return (Column("reports", int, oracle.domain_size),)


def longest_json(oracle: FrequencyOracle) -> int:
    """Return the most characters that one report takes in its JSON form."""
    return sum(column.longest for column in json_columns(oracle))


def pack(reports: Reports) -> bytes:
    """Return the packed bytes of reports."""
    return reports.tobytes()


def unpack(oracle: FrequencyOracle, data: bytes | bytearray | memoryview) -> Reports:
    """Return the reports in packed bytes, checked.

    Raises ReportError for no report, a length that is no whole number of reports, or a report
    outside its range.
    """
    size = oracle.report_size
    if not len(data):
        raise ReportError("a submission needs at least one report")
    if len(data) % size:
        raise ReportError(
            f"{len(data)} bytes are no whole number of reports of {size} bytes", position=len(data) // size
        )
    reports = np.frombuffer(data, dtype=oracle.report_dtype)
    oracle.check(reports)
    return reports


def to_json(oracle: FrequencyOracle, reports: Reports) -> dict[str, Any]:
    """Return the JSON form of reports, as Python objects."""
    if isinstance(oracle, OLH):
        return {"seeds": reports["seed"].tolist(), "buckets": reports["bucket"].tolist()}
    if isinstance(oracle, OUE):
        digits = (oracle.supports(reports).view(np.uint8) + ord("0")).astype(np.uint8)
        return {"reports": [row.tobytes().decode("ascii") for row in digits]}
    return {"reports": reports.tolist()}


def from_json(oracle: FrequencyOracle, body: Any) -> Reports:
    """Return the reports in a decoded JSON body, checked.

    Raises ReportError naming the first bad report. JSON numbers are strict: only integers count,
    neither "3" nor true nor 3.0.
    """
    if not isinstance(body, dict):
        raise ReportError("the body must be a JSON object")
    columns = _columns(body, *(column.name for column in json_columns(oracle)))
    if any(columns) and not isinstance(oracle, OUE):  # of whose strings every character is looked at anyway
        for column, values in zip(json_columns(oracle), columns, strict=True):
            if not _within(values, column.limit):
                raise _column_fault(json_columns(oracle), columns)
    return from_columns(oracle, columns)


def from_columns(oracle: FrequencyOracle, columns: Sequence[list[Any]]) -> Reports:
    """Return the reports in the columns of the JSON form, whose values are of their type and in their range.

    Raises ReportError for no report, columns of unequal length, and characters other than 0 and 1.
    """
    if not any(columns):
        raise ReportError("a submission needs at least one report")
    if isinstance(oracle, OLH):
        seeds, buckets = columns
        if len(seeds) != len(buckets):
            raise _column_fault(json_columns(oracle), columns)
        if len(seeds) == 1:  # as users send them: without the three arrays that the columns of many are joined by
            return np.array([(seeds[0], buckets[0])], dtype=oracle.report_dtype)
        return oracle.reports(np.array(seeds, dtype=np.uint32), np.array(buckets, dtype=np.uint16))
    if isinstance(oracle, OUE):
        return _bit_strings(oracle, columns[0])
    return np.array(columns[0], dtype="<u4")


def _columns(body: dict[str, Any], *names: str) -> list[list[Any]]:
    extra = sorted(set(body) - set(names))
    if extra:
        raise ReportError(f"unknown field {extra[0]!r:.60}; this protocol's reports are in {' and '.join(names)}")
    columns = []
    for name in names:
        column = body.get(name)
        if not isinstance(column, list):
            raise ReportError(f"{name} must be an array")
        columns.append(column)
    return columns


def _within(values: list[Any], limit: int) -> bool:
    """Tell whether every value is an integer in 0..limit-1."""
    return set(map(type, values)) == {int} and min(values) >= 0 and max(values) < limit


def _first_bad(values: list[Any], limit: int) -> int:
    """Return the position of the first value that is no integer in 0..limit-1; the length if there is none."""
    bad = (i for i, value in enumerate(values) if type(value) is not int or not 0 <= value < limit)
    return next(bad, len(values))


def _column_fault(columns: Sequence[Column], values: Sequence[list[Any]]) -> ReportError:
    """Return the refusal of the first bad report in columns of integers."""
    found = []
    for column, given in zip(columns, values, strict=True):
        position = _first_bad(given, column.limit)
        if position < len(given):
            found.append((position, column.reason))
    lengths = [len(given) for given in values]
    if len(set(lengths)) > 1:
        names, sizes = (" and ".join(map(str, each)) for each in ([column.name for column in columns], lengths))
        found.append((min(lengths), f"{names} must be of equal length, not {sizes}"))
    position, reason = min(found, key=lambda fault: fault[0])
    return ReportError(reason, position=position)


def _bit_strings(oracle: OUE, rows: list[Any]) -> Reports:
    d = oracle.domain_size
    (column,) = json_columns(oracle)
    reason = column.reason
    text = "".join(rows) if set(map(type, rows)) == {str} and set(map(len, rows)) == {d} else None
    if text is None or not text.isascii():
        position = next(i for i, row in enumerate(rows) if not _is_bit_string(row, d))
        raise ReportError(reason, position=position)
    digits = np.frombuffer(text.encode("ascii"), dtype=np.uint8).reshape(len(rows), d) - ord("0")
    bad = (digits > 1).any(axis=1)
    if bad.any():
        raise ReportError(reason, position=int(np.argmax(bad)))
    return np.packbits(digits, axis=1, bitorder="little")


def _is_bit_string(row: Any, d: int) -> bool:
    return isinstance(row, str) and len(row) == d and set(row) <= {"0", "1"}
