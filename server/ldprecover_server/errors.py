"""What the service refuses, and why; `problems` gives each its HTTP form.

ServiceError
├── the caller asks for what is not there
│   ├── RoundNotFoundError
│   └── NoCurrentRoundError
├── the caller asks for what the state forbids
│   ├── RoundClosedError, NameTakenError, KeyReusedError, NoReportsError
├── the caller's message cannot be read
│   ├── BadRequestError, BodyTooLargeError, UnsupportedMediaTypeError
├── the caller may not
│   └── UnauthorizedError
└── the service cannot at present
    ├── QueueFullError, StoreUnavailableError
    └── StorageFullError

ConfigurationError      the operator's settings cannot work; the server does not start
"""

__all__ = [
    "BadRequestError",
    "BodyTooLargeError",
    "ConfigurationError",
    "KeyReusedError",
    "NameTakenError",
    "NoCurrentRoundError",
    "NoReportsError",
    "QueueFullError",
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


class BodyTooLargeError(ServiceError):
    """The body, or what it decompresses to, is over the limit."""


class UnsupportedMediaTypeError(ServiceError):
    """Content-Type or Content-Encoding is none the server reads."""


class UnauthorizedError(ServiceError):
    """An admin key is needed, and none or a wrong one was sent."""


class QueueFullError(ServiceError):
    """Too many submissions wait; nothing of this one was stored."""


class StoreUnavailableError(ServiceError):
    """The database cannot be reached or stays locked."""


class StorageFullError(ServiceError):
    """The disk is full."""
