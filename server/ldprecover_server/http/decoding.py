"""From the bytes of a JSON body to what it says: typed, and only as far as the first fault."""

import functools
import json
import re
import typing
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta

from ldprecover import FrequencyOracle, ReportError
from ldprecover.protocols import Column, wire
from ldprecover_server.errors import InvalidRequestError
from ldprecover_server.http import messages

T = TypeVar("T")

_AT = re.compile(r" - at `\$(.*)`$", re.DOTALL)
_KINDS = {
    "float": "a number",
    "int": "an integer",
    "str": "a string",
    "bool": "true or false",
    "null": "null",
    "array": "an array",
    "object": "an object",
}
_APART = 1024  # bytes from one quote to the next from which on finding them is faster than counting
_ESCAPES = 12  # bytes of both halves of a surrogate pair
_SHOWN = 60  # characters of a name that a caller has chosen


def decode(type: type[T], body: bytes | bytearray) -> T:
    """Return the request that a body says. Raises InvalidRequestError for the first thing that does
    not fit.
    """
    try:
        decoder: msgspec.json.Decoder[T] = _decoder(cast(Hashable, type))
        decoded = decoder.decode(body)
        json.loads(body, object_pairs_hook=_once)
        return decoded
    except msgspec.ValidationError as error:
        refusal = _misfit(type, str(error))
        if refusal.errors and str(error).endswith("[...]`"):
            ((field, reason),) = refusal.errors
            refusal = InvalidRequestError(reason, _named(type, field, body))
        raise refusal from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequestError(_no_json(error, body)) from None


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that has a field twice, of which msgspec takes the last and others the
    first.
    """
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise InvalidRequestError("the field is given twice", name[:_SHOWN])
        seen.add(name)


@functools.cache
def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type)


def _no_json(error: Exception, body: bytes | bytearray) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "the body is not UTF-8"
    if isinstance(error, RecursionError):
        return "the body is nested too deeply"
    # Of one at the end of the body msgspec says only that more should come.
    if "surrogate" in str(error) or re.search(rb"\\u[dD][89a-fA-F]", body[-_ESCAPES:]):
        return (
            "the body has half a surrogate pair, which is no character: \\ud83d needs its "
            "other half, as \\ude00"
        )
    return f"the body is not JSON: {str(error).removeprefix('JSON is malformed: ')}"


def _misfit(type: type, message: str) -> InvalidRequestError:
    """Return the refusal that says what msgspec found, with the names of the JSON."""
    found = _AT.search(message)
    path, what = (found[1], message[: found.start()]) if found else ("", message)
    field = path.replace("[...]", "").replace("[", ".").replace("]", "").strip(".")
    if named := re.fullmatch(r"Object missing required field `(.*)`", what, re.DOTALL):
        return InvalidRequestError("the field is missing", _joined(field, named[1]))
    if named := re.fullmatch(r"Object contains unknown field `(.*)`", what, re.DOTALL):
        return InvalidRequestError("the field is not known", _joined(field, named[1]))
    if what == "Number out of range":
        return InvalidRequestError("the number is out of range", field)
    if field.isidentifier():
        wanted = messages.schemas(type)[type.__name__]["properties"][field]
        if "enum" in str(wanted) and not what.startswith("Expected `float` "):
            return InvalidRequestError(f"must be {' or '.join(_alternatives(wanted))}", field)
    return InvalidRequestError(_in_words(what), field or "body")


def _named(type: type, field: str, body: bytes | bytearray) -> str:
    """Return which of the values of a field by names does not fit, which msgspec does not say."""
    form = msgspec.defstruct("Named", [(field, dict[str, msgspec.Raw])])
    decoder = _decoder(typing.get_args(typing.get_type_hints(type)[field])[1])
    for name, value in getattr(msgspec.json.decode(body, type=form), field).items():
        try:
            decoder.decode(value)
        except msgspec.ValidationError:
            return f"{field}.{name[:_SHOWN]}"
    return field


def _joined(field: str, name: str) -> str:
    return f"{field}.{name[:_SHOWN]}" if field else name[:_SHOWN]


def _alternatives(schema: dict[str, Any]) -> list[str]:
    kinds = {
        "number": "a number",
        "integer": "an integer",
        "array": "an array",
        "string": "a string",
        "null": "null",
    }
    found = [word for each in schema.get("anyOf", ()) for word in _alternatives(each)]
    found += [f'"{word}"' for word in schema.get("enum", ())]
    return found or [kinds.get(schema.get("type", ""), "another value")]


def _in_words(what: str) -> str:
    """Return "Expected `int`, got `str`" and its like as a sentence."""
    expected, _, got = what.removeprefix("Expected ").partition(", got ")
    for kind, words in _KINDS.items():
        expected = re.sub(rf"(?<=[`| ]){kind}(?=[`| ])", words, expected)
        got = got.replace(f"`{kind}`", words)
    expected = re.sub(r"\.0$", "", expected).replace("`", "").replace(" | ", " or ")
    for sign, words in (
        (" of length >= ", " of length at least "),
        (" of length <= ", " of length at most "),
        (" >= ", " of at least "),
        (" <= ", " of at most "),
        (" matching regex ", " that matches "),
    ):
        expected = expected.replace(sign, words)
    return f"must be {expected}{f', not {got}' if got else ''}"


class ReportDecoder:
    """Decodes the JSON of one round's reports into packed bytes.

    The types of the columns decide, so nothing is built that the protocol does not know, and
    decoding ends at the first fault. Only then it is looked for again, column by column, which
    report is the first bad one.
    """

    def __init__(self, oracle: FrequencyOracle) -> None:
        self._oracle = oracle
        self._columns = oracle.columns
        self._names = tuple(column.name for column in self._columns)
        self._texts = sum(column.kind is str for column in self._columns)
        self._decoder = msgspec.json.Decoder(_form(self._columns, _quickly))

    def __call__(self, body: bytes | bytearray) -> bytes:
        """Return the reports, packed. Raises ReportError for the first bad one."""
        try:
            columns = msgspec.structs.astuple(self._decoder.decode(body))
            reports = wire.from_columns(self._oracle, columns)
        except msgspec.ValidationError as error:
            raise self._fault(body, str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ReportError(_no_json(error, body)) from None
        # Nothing has quotes but the names and the values that are text, which have no quotes in
        # them.
        if _has_more_quotes(body, 2 * (len(columns) + self._texts * len(columns[0]))):
            raise ReportError(f"{' or '.join(self._names)} is given twice")
        self._oracle.check_submission(reports)
        return wire.pack(reports)

    def _fault(self, body: bytes | bytearray, message: str) -> ReportError:
        """Return the refusal of the first bad report, or of what is wrong with the body as a
        whole.
        """
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
            known = " and ".join(self._names)
            return ReportError(
                f"unknown field {named[1][:_SHOWN]!r}; this protocol's reports are in {known}"
            )
        if message.startswith("Object missing required field"):
            return ReportError(f"{message.split('`')[1]} must be an array")
        if at := _AT.search(message):
            return ReportError(f"{at[1].removeprefix('.')} must be an array")
        return ReportError("the body must be a JSON object")

    def _first_bad(self, body: bytes | bytearray, column: Column) -> tuple[int | None, int | None]:
        """Return the position of a column's first bad value, or else, where the column is an array,
        its length.
        """
        form = _form(
            [each if each is column else None for each in self._columns], _exactly, self._names
        )
        try:
            return None, len(getattr(msgspec.json.decode(body, type=form), column.name))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            at = re.search(rf"`\$\.{column.name}\[(\d+)\]`$", str(error))
            return (int(at[1]) if at else None), None


def _has_more_quotes(body: bytes | bytearray, known: int) -> bool:
    """Tell whether a body has more quotes than the ones known to be there."""
    if len(body) < known * _APART:
        return body.count(b'"') > known
    at = 0
    for _ in range(
        known
    ):  # far apart, each is found in a fraction of the time that counting looks at every byte
        at = body.find(b'"', at) + 1
    return body.find(b'"', at) >= 0


def _quickly(column: Column) -> Any:
    if column.kind is int:
        return Annotated[int, Meta(ge=0, lt=column.limit)]
    return Annotated[str, Meta(min_length=column.limit, max_length=column.limit)]


def _exactly(column: Column) -> Any:
    if column.kind is int:
        return _quickly(column)
    return Annotated[str, Meta(pattern=column.pattern)]


def _form(
    columns: Sequence[Column | None], typed: Callable[[Column], Any], names: Sequence[str] = ()
) -> type[msgspec.Struct]:
    """Return the type of a body with these columns; of the others, known by name alone, anything is
    passed over.
    """
    fields: list[tuple[str, Any]] = []
    for i, column in enumerate(columns):
        if column is None:
            fields.append((names[i], msgspec.Raw))
        else:
            fields.append((column.name, list[typed(column)]))  # type: ignore[misc]
    return msgspec.defstruct("Reports", fields, forbid_unknown_fields=True)
