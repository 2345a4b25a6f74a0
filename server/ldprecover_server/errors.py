"""What the service refuses, and why; `problems` gives each its HTTP form.

ServiceError
├── the caller asks for what is not there
│   ├── RoundNotFoundError
│   └── NoCurrentRoundError
├── the caller asks for what the state forbids
│   ├── RoundClosedError, NameTakenError, KeyReusedError, NoReportsError
├── the caller's message cannot be read
│   ├── BadRequestError, BodyTooLargeError, UnsupportedMediaTypeError
│   └── BodyTimeoutError
├── the caller may not
│   └── UnauthorizedError, ForbiddenError, ReportKeyNeededError, InvalidTicketError
└── the service cannot at present
    ├── QueueFullError, StoreUnavailableError
    └── StorageFullError

ConfigurationError      the operator's settings cannot work; the server does not start
KeyNotFoundError        the operator names a key that is not there
"""

__all__ = [
    "BadRequestError",
    "BodyTimeoutError",
    "BodyTooLargeError",
    "ConfigurationError",
    "ForbiddenError",
    "InvalidTicketError",
    "KeyNotFoundError",
    "KeyReusedError",
    "NameTakenError",
    "NoCurrentRoundError",
    "NoReportsError",
    "QueueFullError",
    "ReportKeyNeededError",
    "RoundClosedError",
    "RoundNotFoundError",
    "ServiceError",
    "StorageFullError",
    "StoreUnavailableError",
    "UnauthorizedError",
    "UnsupportedMediaTypeError",
]


class ConfigurationError(Exception):
    """The settings cannot work; the message says what to change."""


class KeyNotFoundError(Exception):
    """No key that is not revoked has this name."""


class ServiceError(Exception):
    """Base of every refusal; its text is the problem's detail."""


class RoundNotFoundError(ServiceError):
    """No round has this id or name."""


class NoCurrentRoundError(ServiceError):
    """No round has been opened, or all are deleted."""


class RoundClosedError(ServiceError):
    """The round takes no more reports."""


class NameTakenError(ServiceError):
    """Another round has this name."""


class KeyReusedError(ServiceError):
    """The idempotency key belongs to a submission with other bytes."""


class NoReportsError(ServiceError):
    """There is nothing to recover from."""


class BadRequestError(ServiceError):
    """A header or the body cannot be read."""


class BodyTimeoutError(ServiceError):
    """The body did not arrive in time."""


class BodyTooLargeError(ServiceError):
    """The body, what it decompresses to, or its number of reports is over the limit."""


class UnsupportedMediaTypeError(ServiceError):
    """Content-Type or Content-Encoding is none the server reads."""


class UnauthorizedError(ServiceError):
    """A key is needed and none was sent, or one that is unknown or revoked."""


class ForbiddenError(ServiceError):
    """The key has another scope than this needs."""


class ReportKeyNeededError(ServiceError):
    """So many reports in one submission take a report key."""


class InvalidTicketError(ServiceError):
    """A ticket is needed, and none was sent or one that was not minted for this round."""


class QueueFullError(ServiceError):
    """Too many submissions wait; nothing of this one was stored."""


class StoreUnavailableError(ServiceError):
    """The database cannot be reached or stays locked."""


class StorageFullError(ServiceError):
    """The disk is full."""
