"""Submissions: the answer to one. The forms of reports are the protocols' own."""

from pydantic import Field

from ldprecover_interface.base import Message, Text


class Accepted(Message):
    """A submission is durably stored and counted."""

    round: Text
    accepted: int = Field(ge=1, lt=1 << 63, description="Number of reports in this submission.")
    duplicate: bool = Field(
        description="Whether the submission was already stored under the same idempotency key."
    )
