"""Validation of files by Pydantic models, with one sentence for the first error."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ldprecover import ParameterError
from ldprecover._checks import did_you_mean

T = TypeVar("T")


class StrictModel(BaseModel):
    """A model without coercion, unknown keys, NaN or infinity. `owner` names it in messages.

    Raises ParameterError, with the field and the value, for the first error.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)
    owner: ClassVar[str]
    short: ClassVar[tuple[Any, ...]] = (str,)
    """Types of the first field that stand for the model."""

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**{name: _plain(value) for name, value in fields.items()})
        except ValidationError as error:
            raise ParameterError(self._sentence(error)) from error

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Leave the validators of the fields out of the signature, which `help` shows."""
        parameters = inspect.signature(cls).parameters.values()
        cls.__signature__ = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])

    @classmethod
    def of_mapping(cls, value: Any) -> Self:
        """Return the model with these fields, or its first one alone. Raises ParameterError."""
        if isinstance(value, cls):
            return value
        if isinstance(value, cls.short):
            value = {next(iter(cls.model_fields)): value}
        if not isinstance(value, Mapping):
            raise ParameterError(f"{cls.owner} must be an object, not {value!r:.40}")
        return cls(**value)

    @classmethod
    def _sentence(cls, error: ValidationError) -> str:
        errors = error.errors(include_url=False)  # a misspelt key is the cause of a missing one
        first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
        field = ".".join(map(str, first["loc"][:1]))
        match first["type"]:
            case "extra_forbidden":
                hint = suggestion(field, cls.model_fields)
                return f"there is no key {field!r} of {cls.owner}{hint}"
            case "missing":
                return f"{cls.owner} needs the key {field!r}"
            case "value_error":
                return reason(first)
            case "too_short":
                return f"{field} must name at least one"
        return f"{field} {reason(first)}"


def _plain(value: Any) -> Any:
    """Return numbers of numpy, also in lists, as Python's."""
    if isinstance(value, np.ndarray | range):
        value = np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


def reason(error: Mapping[str, Any]) -> str:
    """Return why Pydantic rejects a value: the sentence of a validator, or "must be …, not …"."""
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    allowed, _, _ = error["msg"].replace("Input should be", "must be").partition(", unable to")
    return f"{allowed}, not {error['input']!r:.40}"


def listed(value: Any) -> tuple[Any, ...]:
    """Return a list of values, or the one value, as a tuple."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


OneOrMore = Annotated[tuple[T, ...], BeforeValidator(listed), Field(min_length=1)]
"""A value or a list of values."""


def suggestion(name: object, names: Iterable[str]) -> str:
    """Return the near name as a question, or else all names."""
    return did_you_mean(name, names) or f"; there are {', '.join(names)}"
