"""Problems (RFC 9457): the body of every error."""

from typing import Final

from pydantic import ConfigDict, Field

from ldprecover_interface.base import Message, optional

MEDIA_TYPE: Final = "application/problem+json"


class FieldError(Message):
    """An invalid field of the request."""

    field: str
    reason: str


class Problem(Message):
    """RFC 9457 problem; a member that does not apply is absent."""

    model_config = ConfigDict(json_schema_extra=optional("detail", "position", "errors"))

    type: str
    title: str
    status: int
    detail: str = ""
    position: int | None = Field(default=None, description="Index of the first invalid report.")
    errors: list[FieldError] = Field(
        default=[], description="The first invalid fields of an invalid request."
    )
