"""Rules of every message: strict types and finite numbers."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
)
from pydantic_core import CoreSchema, core_schema

from ldprecover.types import FloatArray, Int64Array

ROUND_NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
SERIES_NAME = r"^[a-z0-9][a-z0-9._-]{0,49}$"
_NAME = "1 to 64 small letters, digits, dots, underscores and hyphens, a letter or digit first"
PATTERNS = {ROUND_NAME: _NAME, SERIES_NAME: _NAME.replace("64", "50")}
"""What the patterns allow, for messages."""
MAX_HISTORY = 50
"""Rounds that one recovery may take as history."""
MAX_WINDOW = 520
"""Rounds that one window may contain."""
MAX_QUESTIONS = 20
"""Questions that one request for a certificate may ask."""
MAX_TICKETS = 1_000_000
"""Tickets that one call may mint."""

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""A number of reports or users: it fits the signed 64-bit integers of the tallies."""
_SHOWN = 10  # values of a list in a repr
Text = Annotated[str, Field(min_length=1)]
Window = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_WINDOW,
        description="Rounds that are counted together: the round, and those before it in its "
        "series.",
    ),
]
Numbers = Annotated[
    list[int], Field(description="Numbers of the window's rounds that exist. Only of a series.")
]
REFERENCE = r"[A-Za-z0-9][A-Za-z0-9._~-]{0,127}"
Reference = Annotated[str, Field(pattern=rf"^{REFERENCE}$")]
"""An id that needs no escaping in a path."""


def _column(number: Any, dtype: type) -> GetPydanticSchema:
    """Return the schema of a list of numbers that a message holds as an array.

    A message that was built without validation may hold the list.
    """

    def schema(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        numbers = handler.generate_schema(Annotated[list[number], Field(fail_fast=True)])
        return core_schema.no_info_after_validator_function(
            partial(np.array, dtype=dtype),
            numbers,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda column: column if isinstance(column, list) else column.tolist(),
                return_schema=numbers,
            ),
        )

    return GetPydanticSchema(schema)


Column = Annotated[FloatArray, _column(float, np.float64)]
"""One number per item."""
Counts = Annotated[Int64Array, _column(Count, np.int64)]
"""One number of reports per item."""


class Message(BaseModel):
    """Base of every message. `"0.5"`, `true` and `NaN` are not numbers."""

    model_config = ConfigDict(
        strict=True, allow_inf_nan=False, json_schema_serialization_defaults_required=True
    )

    def __str__(self) -> str:
        return repr(self)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            is_long = isinstance(value, list | np.ndarray) and len(value) > _SHOWN
            yield name, f"{len(value):,} values" if is_long else value

    def to_json(self) -> bytes:
        """Return the JSON of the fields that were set, compact and in UTF-8.

        A message that was built without validation may hold tuples for lists.
        """
        return self.__pydantic_serializer__.to_json(self, exclude_unset=True, warnings=False)


class Request(Message):
    """Base of what callers send: an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", regex_engine="python-re")


def optional(*names: str) -> Any:
    """Return the `json_schema_extra` of a response in which these fields may be absent."""

    def extra(schema: dict[str, Any]) -> None:
        schema["required"] = [name for name in schema["required"] if name not in names]

    return extra
