"""Packed and JSON forms of reports: the one place that knows bytes.

An array of reports in memory *is* its packed form, so packing copies nothing:

    grr   u4 an item
    oue   ceil(d/8) bytes a report; item i is bit i%8 of byte i//8, padding bits zero
    olh   u4 seed, u2 bucket

all little-endian, without a header. As JSON: {"reports": [17, 3]} (GRR), {"reports": ["0100"]}
(OUE, position i is item i), {"seeds": [...], "buckets": [...]} (OLH).
"""

from typing import Any

import numpy as np

from ldprecover._types import Reports
from ldprecover.errors import ReportError
from ldprecover.protocols import GRR, OLH, OUE, FrequencyOracle

__all__ = ["MEDIA_TYPE", "from_json", "pack", "to_json", "unpack"]

MEDIA_TYPE = "application/vnd.ldprecover.reports"


def pack(reports: Reports) -> bytes:
    """Return the packed bytes of reports."""
    return reports.tobytes()


def unpack(oracle: FrequencyOracle, data: bytes | memoryview) -> Reports:
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
    if isinstance(oracle, OLH):
        seeds, buckets = _columns(body, "seeds", "buckets")
        if len(seeds) != len(buckets):
            raise ReportError(
                f"seeds and buckets must be of equal length, not {len(seeds)} and {len(buckets)}",
                position=min(len(seeds), len(buckets)),
            )
        bad_seed = _first_bad(seeds, 1 << 32)
        bad_bucket = _first_bad(buckets, oracle.hash_range)
        if bad_seed is not None and (bad_bucket is None or bad_seed <= bad_bucket):
            raise ReportError("the seed must be an integer from 0 to 4294967295", position=bad_seed)
        if bad_bucket is not None:
            raise ReportError(f"the bucket must be an integer from 0 to {oracle.hash_range - 1}", position=bad_bucket)
        return oracle.reports(np.array(seeds, dtype=np.uint32), np.array(buckets, dtype=np.uint16))
    (rows,) = _columns(body, "reports")
    if isinstance(oracle, OUE):
        return _bit_strings(oracle, rows)
    bad = _first_bad(rows, oracle.domain_size)
    if bad is not None:
        raise ReportError(f"the item must be an integer from 0 to {oracle.domain_size - 1}", position=bad)
    return np.array(rows, dtype="<u4")


def _columns(body: dict[str, Any], *names: str) -> tuple[list[Any], ...]:
    extra = sorted(set(body) - set(names))
    if extra:
        raise ReportError(f"unknown field {extra[0]!r}; this protocol's reports are in {' and '.join(names)}")
    columns = tuple(body.get(name) for name in names)
    for name, column in zip(names, columns, strict=True):
        if not isinstance(column, list):
            raise ReportError(f"{name} must be an array")
    if not all(columns) and len(set(map(len, columns))) == 1:
        raise ReportError("a submission needs at least one report")
    return columns


def _first_bad(values: list[Any], limit: int) -> int | None:
    """Return the position of the first value that is no integer in 0..limit-1."""
    if set(map(type, values)) <= {int} and (not values or (min(values) >= 0 and max(values) < limit)):
        return None
    return next(i for i, value in enumerate(values) if type(value) is not int or not 0 <= value < limit)


def _bit_strings(oracle: OUE, rows: list[Any]) -> Reports:
    d = oracle.domain_size
    for i, row in enumerate(rows):
        if not isinstance(row, str) or len(row) != d:
            raise ReportError(f"the report must be a string of {d} characters 0 or 1", position=i)
    try:
        digits = np.frombuffer("".join(rows).encode("ascii"), dtype=np.uint8).reshape(len(rows), d) - ord("0")
        bad = (digits > 1).any(axis=1)
    except UnicodeEncodeError:
        bad = np.array([not set(row) <= {"0", "1"} for row in rows])
    if bad.any():
        raise ReportError(f"the report must be a string of {d} characters 0 or 1", position=int(np.argmax(bad)))
    return np.packbits(digits, axis=1, bitorder="little")
