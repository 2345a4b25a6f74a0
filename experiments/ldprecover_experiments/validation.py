"""Validation of files and forms by Pydantic models, with one sentence for the first error."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ldprecover import ParameterError

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Form(BaseModel):
    """A model without coercion, unknown keys, NaN or infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


OneOrMore = Annotated[list[T], BeforeValidator(_listed), Field(min_length=1)]
"""A value or a list of values."""


def check(model: type[M], value: Any, owner: str) -> M:
    """Return the value as this model. `owner` names it in messages: "a study".

    Raises ParameterError, with the field and the value, for the first error.
    """
    if not isinstance(value, Mapping):
        raise ParameterError(f"{owner} must be an object, not {value!r:.40}")
    try:
        return model.model_validate(dict(value))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    field = str(first["loc"][0])
    match first["type"]:
        case "extra_forbidden":
            hint = suggestion(field, model.model_fields)
            raise ParameterError(f"there is no key {field!r} of {owner}; {hint}")
        case "missing":
            raise ParameterError(f"{owner} needs the key {field!r}")
        case "value_error":  # raised by a validator, with its own sentence
            raise ParameterError(str(first["ctx"]["error"]))
        case "too_short":
            raise ParameterError(f"{field} must name at least one")
    message = first["msg"].replace("Input should be", "must be")
    raise ParameterError(f"{field} {message}, not {first['input']!r:.40}")


def suggestion(name: object, names: Iterable[str]) -> str:
    """Return the near name as a question, or else all names."""
    names = list(names)
    near = get_close_matches(str(name), names, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
