"""What the service refuses, and why; `problems` gives each its HTTP form.

ServiceError
├── the caller asks for what is not there
│   └── RoundNotFoundError, NoCurrentRoundError, JobNotFoundError
├── the caller asks for what the state forbids
│   ├── RoundClosedError, NameTakenError, KeyReusedError, NoReportsError
│   └── SeriesMismatchError, ReportsGoneError
├── the caller's message cannot be read
│   ├── BadRequestError, BodyTooLargeError, TooManyReportsError
│   └── UnsupportedMediaTypeError, UnsupportedTransferEncodingError, BodyTimeoutError
├── the caller may not
│   └── UnauthorizedError, ForbiddenError, ReportKeyNeededError, InvalidTicketError, RateLimitedError
└── the service cannot at present
    ├── QueueFullError, StoreUnavailableError, StorageFullError, DatabaseGoneError
    └── AnalysesBusyError, AnalysisTimeoutError, AnalysisTooLargeError, AnalysisFailedError

ConfigurationError      the operator's settings cannot work; the server does not start
KeyNotFoundError        the operator names a key that is not there
"""

__all__ = [
    "AnalysesBusyError",
    "AnalysisFailedError",
    "AnalysisTimeoutError",
    "AnalysisTooLargeError",
    "BadRequestError",
    "BodyTimeoutError",
    "BodyTooLargeError",
    "ConfigurationError",
    "DatabaseGoneError",
    "ForbiddenError",
    "InvalidTicketError",
    "JobNotFoundError",
    "KeyNotFoundError",
    "KeyReusedError",
    "NameTakenError",
    "NoCurrentRoundError",
    "NoReportsError",
    "QueueFullError",
    "RateLimitedError",
    "ReportKeyNeededError",
    "ReportsGoneError",
    "RoundClosedError",
    "RoundNotFoundError",
    "SeriesMismatchError",
    "ServiceError",
    "StorageFullError",
    "StoreUnavailableError",
    "TooManyReportsError",
    "UnauthorizedError",
    "UnsupportedMediaTypeError",
    "UnsupportedTransferEncodingError",
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


class JobNotFoundError(ServiceError):
    """The round has no such job; it may have been forgotten."""


class RoundClosedError(ServiceError):
    """The round takes no more reports."""


class NameTakenError(ServiceError):
    """Another round has this name."""


class SeriesMismatchError(ServiceError):
    """The rounds of this series are over other items."""


class ReportsGoneError(ServiceError):
    """The round's reports are not kept, or not all of them."""


class KeyReusedError(ServiceError):
    """The idempotency key belongs to a submission with other bytes."""


class NoReportsError(ServiceError):
    """There is nothing to recover from."""


class BadRequestError(ServiceError):
    """A header or the body cannot be read."""


class BodyTimeoutError(ServiceError):
    """The body did not arrive in time."""


class BodyTooLargeError(ServiceError):
    """The body, or what it decompresses to, is over the limit."""


class TooManyReportsError(ServiceError):
    """The submission has more reports than one to its round may hold."""


class UnsupportedMediaTypeError(ServiceError):
    """Content-Type or Content-Encoding is none the server reads."""


class UnsupportedTransferEncodingError(ServiceError):
    """Transfer-Encoding is not chunked alone."""


class UnauthorizedError(ServiceError):
    """A key is needed and none was sent, or one that is unknown or revoked."""


class ForbiddenError(ServiceError):
    """The key has another scope than this needs."""


class ReportKeyNeededError(ServiceError):
    """So many reports in one submission take a report key."""


class InvalidTicketError(ServiceError):
    """A ticket is needed, and none was sent or one that was not minted for this round."""


class RateLimitedError(ServiceError):
    """The key has brought as many reports as it may for now; `seconds` from now it may bring these."""

    def __init__(self, message: str, seconds: float = 1.0) -> None:
        self.seconds = seconds
        super().__init__(message)


class QueueFullError(ServiceError):
    """Too many submissions wait; nothing of this one was stored."""


class AnalysesBusyError(ServiceError):
    """Too many analyses wait for their turn, or they take long."""


class AnalysisTimeoutError(ServiceError):
    """The analysis took longer than it may."""


class AnalysisTooLargeError(ServiceError):
    """The analysis needs more memory or disk than it may take."""


class AnalysisFailedError(ServiceError):
    """The process that worked on the analysis has ended, or raised what nobody expected."""


class StoreUnavailableError(ServiceError):
    """The database cannot be reached or stays locked."""


class StorageFullError(ServiceError):
    """The disk is full."""


class DatabaseGoneError(ServiceError):
    """The database's file was removed or replaced under the running server."""
