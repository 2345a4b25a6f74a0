"""Operation: health, readiness and version of a server, and the scope of a key."""

from pydantic import Field

from ldprecover_interface.base import Count, Message, Text


class Status(Message):
    """State of the server."""

    status: str


class Version(Message):
    """Version of the server."""

    version: Text
    kernels: str = Field(description="Implementation of support counting: numpy or numba.")
    verdict_reports: Count = Field(
        description="Stored reports up to which the server computes the verdict of a round, "
        "where it needs to read them; 0 if it keeps no verdicts."
    )


class KeyScope(Message):
    """A key that the server knows."""

    name: Text
    scope: str = Field(description="`admin`, which includes the others, `analyst`, or `report`.")
