"""Submissions that cannot be stored as they are."""

from collections.abc import Mapping
from typing import Any

from ldprecover_server.errors.base import ServiceError


class TooManyReportsError(ServiceError):
    """The submission has more reports than one to its round may hold."""

    slug = "too-many-reports"
    status = 413
    title = "More reports than one submission may hold"
    help = (
        "Split the submission; the detail says how many reports fit. Counting takes time, for OLH "
        "in proportion to "
        "reports times items, and holds up everyone, so one submission may take only so much of it."
    )


class InvalidReportError(ServiceError):
    """A report is malformed; `position` is the index of the first one."""

    slug = "invalid-report"
    status = 422
    title = "A report is malformed"
    help = (
        "`position` is the index of the first bad report; the whole submission was refused and "
        "nothing was stored."
    )

    def __init__(self, message: str, position: int | None = None) -> None:
        self.position = position
        super().__init__(message)

    @property
    def members(self) -> Mapping[str, Any]:
        return {} if self.position is None else {"position": self.position}


class KeyReusedError(ServiceError):
    """The idempotency key belongs to a submission with other bytes."""

    slug = "idempotency-key-reused"
    status = 409
    title = "The idempotency key belongs to another submission"
    help = (
        "The same key, or ticket, came with other bytes. Nothing of this submission was stored; "
        "send it under a fresh "
        "random key, or another ticket."
    )
