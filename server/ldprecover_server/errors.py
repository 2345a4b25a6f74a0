"""What the service refuses, and why: each refusal is a class, and says how it is answered.

ServiceError
├── the caller asks for what is not there
│   ├── NotFoundError, MethodNotAllowedError
│   └── RoundNotFoundError, NoCurrentRoundError, JobNotFoundError
├── the caller asks for what the state forbids
│   ├── RoundClosedError, NameTakenError, KeyReusedError, NoReportsError
│   └── SeriesMismatchError, ReportsGoneError
├── the caller's message cannot be read, or does not fit
│   ├── NotHttpError, HeadTooLargeError, HeaderError, CrossOriginError
│   ├── MalformedBodyError, BodyTooLargeError, TooManyReportsError, BodyTimeoutError
│   ├── UnsupportedMediaTypeError, UnsupportedTransferEncodingError
│   └── InvalidRequestError, InvalidReportError, InvalidParameterError
├── the caller may not
│   ├── UnauthorizedError, ForbiddenError, ReportKeyNeededError, InvalidTicketError
│   └── RateLimitedError, WrongTriesError
└── the service cannot at present
    ├── QueueFullError, BusyError, StoreUnavailableError, StorageFullError, DatabaseGoneError
    ├── AnalysesBusyError, AnalysisTimeoutError, AnalysisTooLargeError, AnalysisFailedError
    ├── PluginNotLoadedError
    └── InternalError

ConfigurationError      the operator's settings cannot work; the server does not start
KeyNotFoundError        the operator names a key that is not there
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ldprecover.errors import LDPRecoverError, ReportError

__all__ = [
    "AnalysesBusyError",
    "AnalysisFailedError",
    "AnalysisTimeoutError",
    "AnalysisTooLargeError",
    "BodyTimeoutError",
    "BodyTooLargeError",
    "BusyError",
    "ConfigurationError",
    "CrossOriginError",
    "DatabaseGoneError",
    "ForbiddenError",
    "HeadTooLargeError",
    "HeaderError",
    "InternalError",
    "InvalidParameterError",
    "InvalidReportError",
    "InvalidRequestError",
    "InvalidTicketError",
    "JobNotFoundError",
    "KeyNotFoundError",
    "KeyReusedError",
    "MalformedBodyError",
    "MethodNotAllowedError",
    "NameTakenError",
    "NoCurrentRoundError",
    "NoReportsError",
    "NotFoundError",
    "NotHttpError",
    "PluginNotLoadedError",
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
    "WrongTriesError",
    "every_refusal",
    "refusal_of",
]


class ConfigurationError(Exception):
    """The settings cannot work; the message says what to change."""


class KeyNotFoundError(Exception):
    """No key that is not revoked has this name."""


class ServiceError(Exception):
    """Base of every refusal; its text is the problem's detail.

    `slug` names the problem type, and is a heading of the errors page; `title` and `help` stand there; `status` is
    that of the answer, which carries `headers` and the `members` beside the standard ones.
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


class NotFoundError(ServiceError):
    """No call is at this path."""

    slug = "not-found"
    status = 404
    title = "Nothing at this path"
    help = "See /docs for the paths there are."


class MethodNotAllowedError(ServiceError):
    """The path takes other methods: those of `allow`."""

    slug = "method-not-allowed"
    status = 405
    title = "Method not allowed here"
    help = "The Allow header names the methods of this path."

    def __init__(self, message: str, allow: str = "") -> None:
        self.allow = allow
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Allow": self.allow}


class RoundNotFoundError(ServiceError):
    """No round has this id or name."""

    slug = "round-not-found"
    status = 404
    title = "No such round"
    help = "The id or name is wrong, or the round was deleted."


class NoCurrentRoundError(ServiceError):
    """No round has been opened, or all are deleted."""

    slug = "no-current-round"
    status = 404
    title = "No current round"
    help = "/reports, /frequencies and /recover mean the round opened last; open one with POST /rounds."


class JobNotFoundError(ServiceError):
    """The round has no such job; it may have been forgotten."""

    slug = "job-not-found"
    status = 404
    title = "No such job"
    help = (
        "The id is wrong, the job belongs to another round, or it is forgotten: an hour after it was asked for, or "
        "when many came after it."
    )


class RoundClosedError(ServiceError):
    """The round takes no more reports."""

    slug = "round-closed"
    status = 409
    title = "The round is closed"
    help = (
        "It takes no more reports. A submission that was answered before the close is counted, and its retry still "
        "gets its 202."
    )


class NameTakenError(ServiceError):
    """Another round has this name."""

    slug = "name-taken"
    status = 409
    title = "The name is taken"
    help = "Names of rounds are unique; choose another or delete the round."


class SeriesMismatchError(ServiceError):
    """The rounds of this series are over other items."""

    slug = "series-mismatch"
    status = 409
    title = "The series has other items"
    help = "All rounds of a series are over the same items in the same order; name another series, or none."


class ReportsGoneError(ServiceError):
    """The round's reports are not kept, or not all of them."""

    slug = "reports-not-kept"
    status = 409
    title = "The round's reports are not kept"
    help = (
        "What was asked for reads every report, and the round's retention has let them go; ask for what needs counts "
        "alone (GET /rounds/{id}/methods)."
    )


class KeyReusedError(ServiceError):
    """The idempotency key belongs to a submission with other bytes."""

    slug = "idempotency-key-reused"
    status = 409
    title = "The idempotency key belongs to another submission"
    help = (
        "The same key, or ticket, came with other bytes. Nothing of this submission was stored; send it under a fresh "
        "random key, or another ticket."
    )


class NoReportsError(ServiceError):
    """There is nothing to recover from."""

    slug = "no-reports"
    status = 409
    title = "The round has no reports"
    help = "There is nothing to recover from yet."


class NotHttpError(ServiceError):
    """What was sent is no HTTP request."""

    slug = "invalid-http"
    status = 400
    title = "Not a request"
    help = "What was sent is no HTTP request, or its method is none that HTTP knows."


class HeadTooLargeError(ServiceError):
    """The request's line and headers are too long, or the headers too many."""

    slug = "head-too-large"
    status = 431
    title = "The request's head is too large"
    help = "Send fewer or shorter headers, or a shorter path."


class HeaderError(ServiceError):
    """A header cannot be read."""

    slug = "invalid-header"
    status = 422
    title = "A header cannot be read"
    help = "The detail names the header and its form."


class CrossOriginError(ServiceError):
    """A browser asked whether a page of another origin may send this, and it may not."""

    slug = "cross-origin-refused"
    status = 400
    title = "A page of this origin may not send this"
    help = (
        "A browser asked before it sent a request of a web page. The operator lists the origins of pages that may, in "
        "LDPRECOVER_CORS_ORIGINS."
    )

    def __init__(self, message: str, headers: Mapping[str, str] | None = None) -> None:
        self._headers = headers or {}
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers


class MalformedBodyError(ServiceError):
    """The body is not what its Content-Encoding says."""

    slug = "malformed-body"
    status = 400
    title = "The body is malformed"
    help = "Its Content-Encoding is gzip, and it is not one whole gzip member. Nothing was stored."


class BodyTimeoutError(ServiceError):
    """The body did not arrive in time."""

    slug = "body-timeout"
    status = 408
    title = "The body did not arrive in time"
    help = "Nothing was stored; send it again with the same key and the same bytes, or in smaller submissions."


class BodyTooLargeError(ServiceError):
    """The body, or what it decompresses to, is over the limit."""

    slug = "body-too-large"
    status = 413
    title = "The body is too large"
    help = (
        "Split the submission. The limits hold for the body as sent, and for what it decompresses to. Without a report "
        "key a body is no longer than the reports may be that it may hold."
    )


class TooManyReportsError(ServiceError):
    """The submission has more reports than one to its round may hold."""

    slug = "too-many-reports"
    status = 413
    title = "More reports than one submission may hold"
    help = (
        "Split the submission; the detail says how many reports fit. Counting takes time, for OLH in proportion to "
        "reports times items, and holds up everyone, so one submission may take only so much of it."
    )


class UnsupportedMediaTypeError(ServiceError):
    """Content-Type or Content-Encoding is none the server reads."""

    slug = "unsupported-media-type"
    status = 415
    title = "The body is in a form the server does not read"
    help = (
        "Content-Type is application/json, or application/vnd.ldprecover.reports for packed reports; "
        "Content-Encoding is absent or gzip."
    )


class UnsupportedTransferEncodingError(ServiceError):
    """Transfer-Encoding is not chunked alone."""

    slug = "unsupported-transfer-encoding"
    status = 501
    title = "Transfer-Encoding is not understood"
    help = "Transfer-Encoding is absent or chunked. A compressed body says so in Content-Encoding: gzip."


class InvalidRequestError(ServiceError):
    """The body or a parameter of the query does not fit the interface; `field` names where, if it is known."""

    slug = "invalid-request"
    status = 422
    title = "The request does not fit the interface"
    help = (
        "`errors` names the first field that does not fit, and why; of a body that is no JSON the detail says what is "
        'wrong. Numbers are strict: "0.5", true and NaN are no numbers.'
    )

    def __init__(self, message: str, field: str | None = None) -> None:
        self.field = field
        self.reason = message
        super().__init__(message if field is None else f"{field}: {message}")

    @property
    def members(self) -> Mapping[str, Any]:
        return {} if self.field is None else {"errors": [{"field": self.field, "reason": self.reason}]}


class InvalidReportError(ServiceError):
    """A report is malformed; `position` is the index of the first one."""

    slug = "invalid-report"
    status = 422
    title = "A report is malformed"
    help = "`position` is the index of the first bad report; the whole submission was refused and nothing was stored."

    def __init__(self, message: str, position: int | None = None) -> None:
        self.position = position
        super().__init__(message)

    @property
    def members(self) -> Mapping[str, Any]:
        return {} if self.position is None else {"position": self.position}


class InvalidParameterError(ServiceError):
    """A parameter is outside its range."""

    slug = "invalid-parameter"
    status = 422
    title = "A parameter is outside its range"
    help = "The detail names the parameter and its range."


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
    help = "A key of scope `report` submits reports, one of scope `analyst` reads, and one of scope `admin` does all."


class ReportKeyNeededError(ServiceError):
    """So many reports in one submission take a report key."""

    slug = "report-key-needed"
    status = 403
    title = "So many reports take a report key"
    help = (
        "Without a key a submission to an open round holds one report (a setting), so that many reports take as many "
        "submissions. With a key of scope `report` it may hold more."
    )


class InvalidTicketError(ServiceError):
    """A ticket is needed, and none was sent or one that was not minted for this round."""

    slug = "invalid-ticket"
    status = 401
    title = "A ticket of this round is needed"
    help = (
        "Send the header Authorization: Ticket TICKET with a ticket that was minted for this round. Each admits one "
        "report."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"WWW-Authenticate": "Ticket"}


class _LaterError(ServiceError):
    """Base of what may be tried again `seconds` from now."""

    def __init__(self, message: str, seconds: float = 1.0) -> None:
        self.seconds = seconds
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Retry-After": str(math.ceil(self.seconds))}


class RateLimitedError(_LaterError):
    """The key has brought as many reports as it may for now; `seconds` from now it may bring these."""

    slug = "rate-limited"
    status = 429
    title = "The key brings reports too fast"
    help = (
        "Nothing was stored; send it again after the time in Retry-After with the same idempotency key and the same "
        "bytes."
    )


class WrongTriesError(_LaterError):
    """The idempotency key has come with other bytes too often; `seconds` from now it may come again."""

    slug = "too-many-wrong-tries"
    status = 429
    title = "The key has come with other bytes too often"
    help = (
        "Each try of a stored submission's key or ticket with other bytes makes it wait longer, so that nobody learns "
        "a report by guessing it. Try again after the time in Retry-After."
    )


class QueueFullError(ServiceError):
    """Too many submissions wait; nothing of this one was stored."""

    slug = "queue-full"
    status = 503
    title = "Too many submissions wait"
    help = "Nothing was stored; try again after the time in Retry-After with the same key and the same bytes."
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class BusyError(ServiceError):
    """Too many calls of this kind wait for their turn."""

    slug = "busy"
    status = 503
    title = "Too many calls wait"
    help = (
        "Calls that read, calls with a key and submissions each have their own turn, and of this kind too many wait. "
        "Try again after the time in Retry-After."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class AnalysesBusyError(ServiceError):
    """Too many analyses wait for their turn, or they take long."""

    slug = "analyses-busy"
    status = 503
    title = "Too many analyses wait"
    help = (
        "What reads every report takes long, so few such calls run at a time, and few wait, those with a key first; "
        "try again after the time in Retry-After."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "5"}


class AnalysisTimeoutError(ServiceError):
    """The analysis took longer than it may."""

    slug = "analysis-timeout"
    status = 504
    title = "The analysis took too long"
    help = (
        "It was given up. A caller with a key has more time (settings); other options of the method, or another "
        "method, may take less."
    )


class AnalysisTooLargeError(ServiceError):
    """The analysis needs more memory or disk than it may take."""

    slug = "analysis-too-large"
    status = 422
    title = "The analysis needs more than it may take"
    help = (
        "More memory, or more bytes of reports on disk, than the operator allows one analysis. The detail says which; "
        "the same call fails again until the operator allows more."
    )


class AnalysisFailedError(ServiceError):
    """The process that worked on the analysis has ended, or raised what nobody expected."""

    slug = "analysis-failed"
    status = 500
    title = "The analysis failed"
    help = (
        "The process that worked on it has ended, or a fault of the server stopped it: its log has the traceback. "
        "Nothing was changed, and it can be asked again."
    )


class StoreUnavailableError(ServiceError):
    """The database cannot be reached or stays locked."""

    slug = "store-unavailable"
    status = 503
    title = "The database does not answer"
    help = "Whether the submission was stored is not known; try again with the same key and the same bytes."
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
        "Its file was removed or replaced while the server ran, so nothing is stored until the operator has put it "
        "back or restarted the server. Keep the submission, and try again later with the same key and the same bytes."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "30"}


class PluginNotLoadedError(ServiceError):
    """The round's protocol is a plugin that this server has not loaded."""

    slug = "plugin-not-loaded"
    status = 503
    title = "The round's protocol is not loaded"
    help = (
        "The protocol is a plugin, which the detail names. The operator installs the distribution that has it, names "
        "it in LDPRECOVER_PLUGINS and starts the server again. Until then the round can be listed and deleted, and "
        "what is stored of it stays. A submission is safe to send again with the same key and bytes."
    )


class InternalError(ServiceError):
    """A fault of the server."""

    slug = "internal-error"
    status = 500
    title = "The server failed"
    help = (
        "A fault of the server; its log has the traceback. A submission is safe to send again with the same key and "
        "bytes."
    )


def every_refusal() -> Iterator[type[ServiceError]]:
    """Yield the class of every refusal there is, by slug."""
    found: dict[str, type[ServiceError]] = {}
    ahead: list[type[ServiceError]] = [ServiceError]
    while ahead:
        cls = ahead.pop()
        ahead += cls.__subclasses__()
        if "slug" in vars(cls):
            found[cls.slug] = cls
    yield from (found[slug] for slug in sorted(found))


def refusal_of(error: Exception) -> ServiceError:
    """Return a refusal as it is, and what the mathematics refuses as the refusal it is here."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, ReportError):
        return InvalidReportError(error.reason, error.position)
    assert isinstance(error, LDPRecoverError)
    return InvalidParameterError(str(error))
