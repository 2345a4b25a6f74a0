"""Says what is wrong with the fields that a model rejects: what is allowed, and what was sent."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ldprecover.items import isolated
from ldprecover_interface.base import PATTERNS

Schema = Mapping[str, Any]
"""A JSON schema, of a model or of one of its fields."""

_SHOWN = 60
"""Characters that are shown of a name or a value that the caller chose."""

_BOUNDS = (
    ("minimum", "of at least {}"),
    ("exclusiveMinimum", "above {}"),
    ("maximum", "of at most {}"),
    ("exclusiveMaximum", "below {}"),
)
_TYPES = {
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
}


def invalid_fields(
    errors: Iterable[Mapping[str, Any]], value: Any, schema: Schema, *, show: bool = True
) -> list[tuple[str, str]]:
    """Return the JSON path of each invalid field, and why it is invalid: "must be …, not …".

    `errors` are Pydantic's about `value`, `schema` is the JSON schema of the model. The path of
    the whole value is body. With `show` False no value is repeated.

    For a union Pydantic gives an error of each member; the one that is furthest inside stays.
    """
    reasons: dict[str, str] = {}
    for error in errors:
        path, alternatives = _follow(error, value, schema)
        reasons.setdefault(path, _reason(error, alternatives, show=show))
    outer = {path.rpartition(".")[0] for path in reasons} - {""}
    return [(path, reason) for path, reason in reasons.items() if path not in outer]


def shown(value: object) -> str:
    """Return a value as a message shows it: short, on one line, and without control characters."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():  # Python writes no integer of thousands of digits
            return str(value) if abs(value) < 10**_SHOWN else f"an integer of over {_SHOWN} digits"
        case str():
            return f"{isolated(repr(value[:_SHOWN]))}{'…' if len(value) > _SHOWN else ''}"
        case Mapping():
            return f"an object of {len(value)} fields" if value else "{}"
        case Sequence():
            return f"a list of {len(value)} entries" if value else "[]"
    return repr(value)[:_SHOWN]


def _follow(error: Mapping[str, Any], value: Any, schema: Schema) -> tuple[str, list[Schema]]:
    """Return the JSON path of an error, and the schemas that its value may have.

    Pydantic also puts the members of unions into a location; they are no part of the path.
    """
    path, alternatives = [], list(_members(schema, schema))
    missing = len(error["loc"]) - 1 if error["type"] == "missing" else None
    for position, part in enumerate(error["loc"]):
        if isinstance(value, Mapping) and (part in value or position == missing):
            value = value.get(part)
            path.append(ascii(part[:_SHOWN])[1:-1])
            inner = [
                each.get("properties", {}).get(part, each.get("additionalProperties"))
                for each in alternatives
            ]
        elif isinstance(part, int):
            if isinstance(value, list):  # otherwise one value that stands for a list
                value = value[part]
                path.append(str(part))
            inner = [each.get("items") for each in alternatives]
        else:
            continue
        if error["type"] != "extra_forbidden":
            schemas = [each for each in inner if isinstance(each, Mapping)]
            alternatives = [member for each in schemas for member in _members(each, schema)]
    return ".".join(path) if path else "body", alternatives


def _members(schema: Schema, root: Schema) -> Iterator[Schema]:
    """Yield the members of a union, and of the unions in it."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        for member in schema["anyOf"]:
            yield from _members(member, root)
    else:
        yield schema


def _reason(error: Mapping[str, Any], alternatives: Sequence[Schema], *, show: bool) -> str:
    if error["type"] == "extra_forbidden":
        names = dict.fromkeys(name for each in alternatives for name in each.get("properties", ()))
        return f"is not known; there are {', '.join(names)}"
    if error["type"] == "value_error":  # the sentence of a validator
        return str(error["ctx"]["error"])
    allowed = list(dict.fromkeys(_allowed(each) for each in alternatives))
    if "a number" in allowed and "an integer" in allowed:
        allowed.remove("an integer")
    if len(allowed) > 1 and "null" in allowed:  # a field may also be absent
        allowed.remove("null")
    values = " or ".join(allowed) or "valid"
    if error["type"] == "missing":
        return f"is missing; it must be {values}"
    return f"must be {values}, not {shown(error['input'])}" if show else f"must be {values}"


def _allowed(schema: Schema) -> str:
    """Return the values that a schema without unions allows."""
    if "const" in schema:
        return shown(schema["const"])
    if "enum" in schema:
        *others, last = map(shown, schema["enum"])
        return f"{', '.join(others)} or {last}" if others else last
    kind = schema.get("type", "")
    if kind == "array":
        return f"a list{_size(schema.get('minItems'), schema.get('maxItems'), ' entries')}"
    if kind == "string":
        if "pattern" in schema:
            return PATTERNS.get(schema["pattern"], f"a string of the form {schema['pattern']}")
        return f"a string{_size(schema.get('minLength'), schema.get('maxLength'), ' characters')}"
    if "minimum" in schema and "maximum" in schema:
        limits = f"from {_number(schema['minimum'])} to {_number(schema['maximum'])}"
    else:
        limits = " and ".join(
            text.format(_number(schema[name])) for name, text in _BOUNDS if name in schema
        ).replace("and of", "and")
    return f"{_TYPES.get(kind, 'valid')} {limits}".rstrip()


def _size(low: int | None, high: int | None, noun: str) -> str:
    if high is None:
        return (
            "" if low is None else " that is not empty" if low == 1 else f" of {low} or more{noun}"
        )
    return f" of at most {high}{noun}" if low is None else f" of {low} to {high}{noun}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
