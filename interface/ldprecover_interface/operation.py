"""Operation: health, readiness and version of a server."""

from pydantic import Field

from ldprecover_interface.base import Message, Text


class Status(Message):
    """State of the server."""

    status: str


class Version(Message):
    """Version of the server."""

    version: Text
    kernels: str = Field(description="Implementation of support counting: numpy or numba.")
