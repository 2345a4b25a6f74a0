"""Decodes the JSON of reports straight into packed bytes."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ldprecover import FrequencyOracle, ReportError
from ldprecover.protocols import Column

_AT = re.compile(r" - at `\$(.*)`$", re.DOTALL)
_APART = 1024  # bytes between quotes above which searching for each is faster than counting all
_ESCAPES = 12  # bytes of both halves of an escaped surrogate pair
_SHOWN = 60  # characters that are shown of a name that the caller chose


def _no_json(error: Exception, body: bytes | bytearray) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "the body is not UTF-8"
    if isinstance(error, RecursionError):
        return "the body is nested too deeply"
    # For half a pair at the end of the body msgspec only reports a truncated body.
    if "surrogate" in str(error) or re.search(rb"\\u[dD][89a-fA-F]", body[-_ESCAPES:]):
        return (
            "the body has half a surrogate pair, which is not a character: \\ud83d needs its "
            "other half, as \\ude00"
        )
    return f"the body is not JSON: {str(error).removeprefix('JSON is malformed: ')}"


class ReportDecoder:
    """Decodes the JSON of one round's reports into packed bytes.

    msgspec decodes straight into the types of the columns and stops at the first fault. Only then
    each column is decoded again, to find the first invalid report.
    """

    def __init__(self, oracle: FrequencyOracle) -> None:
        self._wire = oracle.wire
        self._columns = oracle.wire.columns
        self._names = tuple(column.name for column in self._columns)
        self._texts = sum(column.kind is str for column in self._columns)
        self._decoder = msgspec.json.Decoder(_form(self._columns, _fast_type))

    def __call__(self, body: bytes | bytearray) -> bytes:
        """Return the packed reports. Raises ReportError for the first invalid one."""
        try:
            columns = msgspec.structs.astuple(self._decoder.decode(body))
        except msgspec.ValidationError as error:
            raise self._fault(body, str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ReportError(_no_json(error, body)) from None
        reports = self._wire.from_columns(columns)
        # Only names and text values have quotes, and text values contain none, so one quote more
        # is a repeated column.
        if _has_more_quotes(body, 2 * (len(columns) + self._texts * len(columns[0]))):
            raise ReportError(f"{' or '.join(self._names)} is given twice")
        self._wire.check_submission(reports)
        packed = reports.tobytes()
        if len(packed) != len(columns[0]) * self._wire.size:
            raise TypeError(f"{len(columns[0])} reports were packed into {len(packed)} bytes")
        return packed

    def _fault(self, body: bytes | bytearray, message: str) -> ReportError:
        """Return the error for the first invalid report, or for the body as a whole."""
        faults, lengths = [], []
        for column in self._columns:
            position, length = self._first_bad(body, column)
            if position is not None:
                faults.append(ReportError(column.reason, position=position))
            if length is not None:
                lengths.append(length)
        if faults:
            first = min(faults, key=lambda fault: fault.position or 0)
            ended = min(lengths, default=None)
            if ended is None or first.position is None or ended > first.position:
                return first
            return ReportError(
                f"{' and '.join(self._names)} must be of equal length", position=ended
            )
        if named := re.match(r"Object contains unknown field `(.*)`", message, re.DOTALL):
            names = " and ".join(self._names)
            return ReportError(
                f"unknown field {named[1][:_SHOWN]!r}; this protocol's reports are in {names}"
            )
        if message.startswith("Object missing required field"):
            return ReportError(f"{message.split('`')[1]} must be an array")
        if at := _AT.search(message):
            return ReportError(f"{at[1].removeprefix('.')} must be an array")
        return ReportError("the body must be a JSON object")

    def _first_bad(self, body: bytes | bytearray, column: Column) -> tuple[int | None, int | None]:
        """Return the position of a column's first invalid value, or else the array's length."""
        form = _form(
            [each if each is column else None for each in self._columns], _exact_type, self._names
        )
        try:
            return None, len(getattr(msgspec.json.decode(body, type=form), column.name))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            at = re.search(rf"`\$\.{column.name}\[(\d+)\]`$", str(error))
            return (int(at[1]) if at else None), None


def _has_more_quotes(body: bytes | bytearray, limit: int) -> bool:
    """Tell whether a body has more quotes than `limit`."""
    if len(body) < limit * _APART:
        return body.count(b'"') > limit
    at = 0
    for _ in range(limit):  # quotes that are far apart: each search skips the bytes between
        at = body.find(b'"', at) + 1
    return body.find(b'"', at) >= 0


def _fast_type(column: Column) -> Any:
    if column.kind is int:
        return Annotated[int, Meta(ge=0, lt=column.limit)]
    return Annotated[str, Meta(min_length=column.limit, max_length=column.limit)]


def _exact_type(column: Column) -> Any:
    if column.kind is int:
        return _fast_type(column)
    return Annotated[str, Meta(pattern=column.pattern)]


def _form(
    columns: Sequence[Column | None], typed: Callable[[Column], Any], names: Sequence[str] = ()
) -> type[msgspec.Struct]:
    """Return the type of a body with these columns; other columns may have any value."""
    fields: list[tuple[str, Any]] = []
    for i, column in enumerate(columns):
        if column is None:
            fields.append((names[i], msgspec.Raw))
        else:
            fields.append((column.name, list[typed(column)]))  # type: ignore[misc]
    return msgspec.defstruct("Reports", fields, forbid_unknown_fields=True)
