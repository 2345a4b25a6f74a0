"""What the service cannot do at present, whoever asks."""

from collections.abc import Mapping
from typing import ClassVar

from ldprecover_server.errors.base import ServiceError


class QueueFullError(ServiceError):
    """Too many submissions wait; nothing of this one was stored."""

    slug = "queue-full"
    status = 503
    title = "Too many submissions wait"
    help = (
        "Nothing was stored; try again after the time in Retry-After with the same key and the "
        "same bytes."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class BusyError(ServiceError):
    """Too many calls of this kind wait for their turn, or one has for too long."""

    slug = "busy"
    status = 503
    title = "Too many calls wait"
    help = (
        "Calls that read, calls with a key and submissions each have their own turn, and of this "
        "kind too many wait, "
        "or this one has for too long. Try again after the time in Retry-After."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class StoreUnavailableError(ServiceError):
    """The database cannot be reached or stays locked."""

    slug = "store-unavailable"
    status = 503
    title = "The database does not answer"
    help = (
        "Whether the submission was stored is not known; try again with the same key and the "
        "same bytes."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class StorageFullError(ServiceError):
    """The disk is full."""

    slug = "storage-full"
    status = 507
    title = "The disk is full"
    help = "Nothing was stored; try again later with the same key and the same bytes."
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "10"}


class DatabaseGoneError(ServiceError):
    """The database's file was removed or replaced under the running server."""

    slug = "database-gone"
    status = 503
    title = "The database is not there"
    help = (
        "Its file was removed or replaced while the server ran, so nothing is stored until the "
        "operator has put it "
        "back or restarted the server. Keep the submission, and try again later with the same key "
        "and the same bytes."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "30"}


class InternalError(ServiceError):
    """A fault of the server."""

    slug = "internal-error"
    status = 500
    title = "The server failed"
    help = (
        "A fault of the server; its log has the traceback. A submission is safe to send again "
        "with the same key and "
        "bytes."
    )
