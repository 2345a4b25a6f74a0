"""Callers who may not do what they ask for, or not yet."""

from collections.abc import Mapping
from typing import ClassVar

from ldprecover_server.errors.base import LaterError, ServiceError


class UnauthorizedError(ServiceError):
    """A key is needed and none was sent, or one that is unknown or revoked."""

    slug = "unauthorized"
    status = 401
    title = "A key is needed"
    help = "Send the header Authorization: Bearer KEY with a key that is not revoked."
    fixed_headers: ClassVar[Mapping[str, str]] = {"WWW-Authenticate": "Bearer"}


class ForbiddenError(ServiceError):
    """The key has another scope than this needs."""

    slug = "forbidden"
    status = 403
    title = "The key may not do this"
    help = (
        "A key of scope `report` submits reports, one of scope `analyst` reads, and one of "
        "scope `admin` does all."
    )


class ReportKeyNeededError(ServiceError):
    """So many reports in one submission take a report key."""

    slug = "report-key-needed"
    status = 403
    title = "So many reports take a report key"
    help = (
        "Without a key a submission to an open round holds one report (a setting), so that many "
        "reports take as many "
        "submissions. With a key of scope `report` it may hold more."
    )


class InvalidTicketError(ServiceError):
    """A ticket is needed, and none was sent or one that was not minted for this round."""

    slug = "invalid-ticket"
    status = 401
    title = "A ticket of this round is needed"
    help = (
        "Send the header Authorization: Ticket TICKET with a ticket that was minted for this "
        "round. Each admits one "
        "report."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"WWW-Authenticate": "Ticket"}


class RateLimitedError(LaterError):
    """The key has brought as many reports as it may for now; `seconds` from now it may bring
    these.
    """

    slug = "rate-limited"
    status = 429
    title = "The key brings reports too fast"
    help = (
        "Nothing was stored; send it again after the time in Retry-After with the same "
        "idempotency key and the same "
        "bytes."
    )


class WrongTriesError(LaterError):
    """The idempotency key has come with other bytes too often; `seconds` from now it may come
    again.
    """

    slug = "too-many-wrong-tries"
    status = 429
    title = "The key has come with other bytes too often"
    help = (
        "Each try of a stored submission's key or ticket with other bytes makes it wait longer, "
        "so that nobody learns "
        "a report by guessing it. Try again after the time in Retry-After."
    )
