"""Packed and JSON forms of reports: `oracle.wire`, for every protocol.

An array of reports in memory *is* its packed form, so packing copies nothing: rows of `wire.dtype`,
without a header. The JSON form is an object of arrays, `wire.columns`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ldprecover._checks import integers, plain_array
from ldprecover.distributions import binomial_threshold
from ldprecover.errors import ParameterError, ReportError
from ldprecover.protocols.description import Column, ReportForms
from ldprecover.types import BoolArray, Reports

MEDIA_TYPE = "application/vnd.ldprecover.reports"

_MAX_MEMORY = 8 << 30
"""Most bytes that simulated reports take, with what is needed to make them."""

_BYTES_OF_USER = 24
"""Bytes in memory for each simulated user beside its report: its item, three times."""


_IMPROBABLE = 1e-9
"""Probability below which an honest submission is rejected."""


def pack(reports: Reports) -> bytes:
    """Return the packed bytes of checked reports of a built-in protocol, of any type of integers.

    Raises ParameterError for other arrays. `WireForm.checked` checks them.
    """
    array = plain_array(reports, "reports")
    if array.dtype.names is None:
        high, dtype = ((1 << 32) - 1, "<u4") if array.ndim == 1 else (255, "u1")
        array = integers(array, "reports", high).astype(dtype, copy=False)
    elif array.dtype.str != "|V6" or not array.dtype.isnative:
        raise ParameterError(f"reports must be rows of a protocol's type, not of {array.dtype}")
    return array.tobytes()


class WireForm(ABC):
    """The forms in which the reports of one oracle travel.

    - `forms` describes them to authors of clients.
    - `dtype` is the numpy type of one report: its packed bytes, little-endian.
    - `size` is the number of packed bytes of one report.
    - `columns` are the columns of the JSON form.
    """

    def __init__(self, forms: ReportForms, dtype: np.dtype, *columns: Column) -> None:
        self.forms, self.dtype, self.columns = forms, dtype, columns
        self.size = dtype.itemsize

    def rows(self, reports: object) -> Reports:
        """Return reports as rows of `dtype`; `check` says whether they are in their range.

        Any array or list of them is taken: integers of other types and byte orders are converted.
        Raises ParameterError for another shape, and for entries that are not the integers of a
        report: floats, even whole ones, truth values, text, and integers out of range.
        """
        base, shape = self.dtype.base, self.dtype.shape
        array = plain_array(reports, "reports")
        if array.dtype == base and array.shape[1:] == shape:
            return array
        if array.shape == (0,):
            return np.empty(0, self.dtype)
        if base.names is not None:
            if set(array.dtype.names or ()) != set(base.names):
                raise ParameterError(
                    f"reports must be rows of {' and '.join(base.names)}, as `oracle.reports` "
                    f"joins their arrays, not of type {array.dtype}"
                )
            rows = np.empty(array.shape, base)
            for name in base.names:
                rows[name] = integers(array[name], name, np.iinfo(base[name]).max)
        else:
            column = self.columns[0]
            high = column.limit - 1 if column.kind is int else np.iinfo(base).max
            rows = integers(array, "reports", high).astype(base)
        if rows.shape[1:] != shape:
            raise ParameterError(f"reports must be n rows of shape {shape}, not of {array.shape}")
        return rows

    def checked(self, reports: object) -> Reports:
        """Return reports as rows of `dtype`, checked. Raises as `rows` and `check` do."""
        rows = self.rows(reports)
        self.check(rows)
        return rows

    @abstractmethod
    def check(self, reports: Reports) -> None:
        """Raise ReportError, with position and reason, for the first report outside its range."""

    def check_submission(self, reports: Reports) -> None:
        """Raise ReportError for a submission that honest users send with probability below 10^-9.

        The reports are checked and belong to one submission. Most protocols check nothing here.
        """
        return

    def check_users(self, n: int) -> None:
        """Raise ParameterError if a simulation cannot make the reports of n users in memory."""
        limit = _MAX_MEMORY // (self.size + _BYTES_OF_USER)
        if n > limit:
            raise ParameterError(
                f"users must be at most {limit:,}, genuine or malicious, not {n:,}: all reports, "
                f"of {self.size:,} bytes each, are made in {_MAX_MEMORY >> 30} GiB of memory"
            )

    @abstractmethod
    def split(self, reports: Reports) -> tuple[list[Any], ...]:
        """Return the values of each column of the JSON form."""

    @abstractmethod
    def join(self, values: Sequence[list[Any]]) -> Reports:
        """Return the reports in columns of equal length of at least one value of the column's kind.

        Integers are in their column's range; strings are checked here. Raises ReportError for the
        first bad one.
        """

    @property
    def longest_json(self) -> int:
        """The maximum number of characters of one report in its JSON form."""
        return sum(column.longest for column in self.columns)

    def unpack(self, data: bytes | bytearray | memoryview) -> Reports:
        """Return the reports in packed bytes, checked.

        Raises ReportError for no report, for a length that is no multiple of the report size, and
        for a report outside its range.
        """
        if not isinstance(data, bytes | bytearray) and memoryview(data).itemsize > 1:
            raise ReportError("packed reports must be bytes: wire.checked takes arrays")
        if not len(data):
            raise ReportError("a submission needs at least one report")
        if len(data) % self.size:
            raise ReportError(
                f"{len(data)} bytes are not a whole number of reports of {self.size} bytes",
                position=len(data) // self.size,
            )
        reports = np.frombuffer(data, dtype=self.dtype)
        self.check(reports)
        return reports

    def to_json(self, reports: Reports) -> dict[str, Any]:
        """Return the JSON form of reports, as Python objects."""
        values = self.split(self.rows(reports))
        return {column.name: each for column, each in zip(self.columns, values, strict=True)}

    def from_columns(self, values: Sequence[list[Any]]) -> Reports:
        """Return the reports in the columns of the JSON form, of values of their type.

        Integers are in their column's range; strings are checked here. Raises ReportError for no
        report, for columns of unequal length, and for the first bad string.
        """
        if not any(values):
            raise ReportError("a submission needs at least one report")
        lengths = [len(entries) for entries in values]
        if len(set(lengths)) > 1:
            names = " and ".join(column.name for column in self.columns)
            raise ReportError(f"{names} must be of equal length", position=min(lengths))
        return self.join(values)


class IntegerForm(WireForm):
    """A report is one integer from 0 to `limit` - 1, packed in four bytes.

    If report 0 supports every item, `everything` is the probability of an honest one.
    """

    def __init__(
        self, forms: ReportForms, limit: int, noun: str, everything: float | None = None
    ) -> None:
        super().__init__(forms, np.dtype("<u4"), Column("reports", int, limit, noun))
        self.everything = everything

    def check(self, reports: Reports) -> None:
        (column,) = self.columns
        if reports.size and reports.max() >= column.limit:
            raise_first(
                reports >= column.limit, f"the {column.noun} must be from 0 to {column.limit - 1}"
            )

    def check_submission(self, reports: Reports) -> None:
        """Raise ReportError if report 0 is more frequent than in one of 10^9 honest submissions."""
        if self.everything is None:
            return
        all_supporting = reports == 0
        count = int(np.count_nonzero(all_supporting))
        if count and count >= binomial_threshold(len(reports), self.everything, _IMPROBABLE):
            (column,) = self.columns
            share = f"{count} of {len(reports)} reports are {column.noun} 0"
            raise_first(
                all_supporting,
                f"{share}, which supports every item: honest users hardly ever send this many",
            )

    def split(self, reports: Reports) -> tuple[list[Any], ...]:
        return (reports.tolist(),)

    def join(self, values: Sequence[list[Any]]) -> Reports:
        return np.array(values[0], dtype="<u4")


def raise_first(bad: BoolArray, reason: str) -> None:
    """Raise ReportError with the position of the first report that is bad, if any is."""
    if bad.any():
        raise ReportError(reason, position=int(np.argmax(bad)))
