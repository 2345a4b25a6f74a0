"""What every refusal is: its problem's type, status, headers and members."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar


class ServiceError(Exception):
    """Base of every refusal; its text is the problem's detail.

    `slug` names the problem type, and is a heading of the errors page; `title` and `help` stand
    there; `status` is that of the answer, which carries `headers` and the `members` beside the
    standard ones.
    """

    slug: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]
    help: ClassVar[str]
    fixed_headers: ClassVar[Mapping[str, str]] = {}

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that the answer carries."""
        return self.fixed_headers

    @property
    def members(self) -> Mapping[str, Any]:
        """What the problem tells beside the standard members."""
        return {}


class LaterError(ServiceError):
    """Base of what may be tried again `seconds` from now."""

    def __init__(self, message: str, seconds: float = 1.0) -> None:
        self.seconds = seconds
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Retry-After": str(math.ceil(self.seconds))}
