"""Errors of the service: each class states the problem type, the status and the help for callers.

The comments group the classes by what is wrong: the request, the caller, the round, the
submission, the analysis, or the service itself. `ConfigurationError` and `KeyNotFoundError` are
for the operator at the command line; no HTTP response carries them.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ldprecover.errors import ContractError, LDPRecoverError, ReportError


class ServiceError(Exception):
    """Base of every error that is answered with a problem; its text is the problem's detail.

    `slug` is the problem type and a heading of the errors page, which shows `title` and `help`;
    `status` is the HTTP status; the response carries `headers`, and `members` beside the standard
    members of a problem.
    """

    slug: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]
    help: ClassVar[str]
    fixed_headers: ClassVar[Mapping[str, str]] = {}

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the response."""
        return self.fixed_headers

    @property
    def members(self) -> Mapping[str, Any]:
        """The members of the problem beside the standard ones."""
        return {}


class LaterError(ServiceError):
    """Base of errors after which the call may be repeated in `seconds`."""

    def __init__(self, message: str, seconds: float = 1.0) -> None:
        self.seconds = seconds
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Retry-After": str(math.ceil(self.seconds))}


# The request cannot be read, or does not fit the interface.


class NotFoundError(ServiceError):
    """The path has no call."""

    slug = "not-found"
    status = 404
    title = "Path not found"
    help = "No call has this path. /docs lists the paths."


class MethodNotAllowedError(ServiceError):
    """The path has other methods: those in `allow`."""

    slug = "method-not-allowed"
    status = 405
    title = "Method not allowed"
    help = "The Allow header lists the methods of this path."

    def __init__(self, message: str, allow: str = "") -> None:
        self.allow = allow
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Allow": self.allow}


class NotHttpError(ServiceError):
    """The bytes on the connection are not an HTTP request."""

    slug = "invalid-http"
    status = 400
    title = "Not an HTTP request"
    help = "The bytes are not an HTTP request, or its method is not an HTTP method."


class HeadTooLargeError(ServiceError):
    """The request line and headers are too long, or the headers are too many."""

    slug = "head-too-large"
    status = 431
    title = "Request head too large"
    help = "Send fewer headers, shorter headers or a shorter path."


class HeaderError(ServiceError):
    """A header has an invalid value."""

    slug = "invalid-header"
    status = 422
    title = "Invalid header"
    help = "The detail names the header and the values that it may have."


class CrossOriginError(ServiceError):
    """A browser asked whether a page of another origin may send this request; it may not."""

    slug = "cross-origin-refused"
    status = 400
    title = "Origin not allowed"
    help = (
        "A browser asked before it sent a request from a web page. The operator lists the allowed "
        "origins in LDPRECOVER_CORS_ORIGINS."
    )

    def __init__(self, message: str, headers: Mapping[str, str] | None = None) -> None:
        self._headers = headers or {}
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers


class MalformedBodyError(ServiceError):
    """The body does not have its Content-Encoding."""

    slug = "malformed-body"
    status = 400
    title = "Malformed gzip body"
    help = (
        "Content-Encoding is gzip, but the body is not exactly one complete gzip member. Nothing "
        "was stored."
    )


class BodyTimeoutError(ServiceError):
    """The body did not arrive in time."""

    slug = "body-timeout"
    status = 408
    title = "Body timeout"
    help = (
        "The body did not arrive in time. Nothing was stored. Send it again with the same "
        "idempotency key and the same bytes, or split it into smaller submissions."
    )


class BodyTooLargeError(ServiceError):
    """The body, as sent or decompressed, exceeds its limit."""

    slug = "body-too-large"
    status = 413
    title = "Body too large"
    help = (
        "Split the submission. The limits apply to the body as sent and to the decompressed body. "
        "Without a report key the limit is the size of the reports that one submission may have."
    )


class UnsupportedMediaTypeError(ServiceError):
    """The server does not read this Content-Type or Content-Encoding."""

    slug = "unsupported-media-type"
    status = 415
    title = "Unsupported media type"
    help = (
        "Content-Type must be application/json, or application/vnd.ldprecover.reports for packed "
        "reports. Content-Encoding must be gzip or absent."
    )


class UnsupportedTransferEncodingError(ServiceError):
    """Transfer-Encoding is something else than chunked."""

    slug = "unsupported-transfer-encoding"
    status = 501
    title = "Unsupported transfer encoding"
    help = (
        "Transfer-Encoding must be chunked or absent. Declare a compressed body with "
        "Content-Encoding: gzip."
    )


class InvalidRequestError(ServiceError):
    """The body or a query parameter is invalid.

    `errors` are pairs of a field and the reason why it is invalid. They are empty for a body that
    is not JSON.
    """

    slug = "invalid-request"
    status = 422
    title = "Invalid request"
    help = (
        "`errors` lists the first invalid fields and why they are invalid. For a body that is not "
        'JSON the detail says why. Numbers are strict: "0.5", true and NaN are not numbers.'
    )

    def __init__(self, message: str, field: str | None = None, *others: tuple[str, str]) -> None:
        self.errors = () if field is None else ((field, message), *others)
        super().__init__("; ".join(": ".join(each) for each in self.errors) or message)

    @property
    def members(self) -> Mapping[str, Any]:
        errors = [{"field": field, "reason": reason} for field, reason in self.errors]
        return {"errors": errors} if errors else {}


class InvalidParameterError(ServiceError):
    """A parameter has a value that is not allowed."""

    slug = "invalid-parameter"
    status = 422
    title = "Invalid parameter"
    help = "The detail names the parameter and the values that it may have."


# The caller may not make this call, or not yet.


class UnauthorizedError(ServiceError):
    """The call needs a key; the request has none, or an unknown or revoked one."""

    slug = "unauthorized"
    status = 401
    title = "Key required"
    help = "Send the header Authorization: Bearer KEY with a key that is not revoked."
    fixed_headers: ClassVar[Mapping[str, str]] = {"WWW-Authenticate": "Bearer"}


class ForbiddenError(ServiceError):
    """The key does not have the scope that the call needs."""

    slug = "forbidden"
    status = 403
    title = "Wrong key scope"
    help = (
        "A key of scope `report` may submit reports, one of scope `analyst` may read results, and "
        "one of scope `admin` may make every call."
    )


class ReportKeyNeededError(ServiceError):
    """A submission of this many reports needs a report key."""

    slug = "report-key-needed"
    status = 403
    title = "Report key needed"
    help = (
        "Without a key a submission to an open round may have one report (a setting). Send more "
        "with a key of scope `report`, or one submission per report."
    )


class InvalidTicketError(ServiceError):
    """The round needs a ticket; the request has none, or one of another round."""

    slug = "invalid-ticket"
    status = 401
    title = "Ticket required"
    help = (
        "Send the header Authorization: Ticket TICKET with a ticket that was minted for this "
        "round. Each ticket admits one report."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"WWW-Authenticate": "Ticket"}


class RateLimitedError(LaterError):
    """The key has submitted as many reports as its rate allows."""

    slug = "rate-limited"
    status = 429
    title = "Report rate exceeded"
    help = (
        "Nothing was stored. Send the submission again after the seconds in Retry-After, with the "
        "same idempotency key and the same bytes."
    )


class WrongTriesError(LaterError):
    """An idempotency key was sent with different bytes too often."""

    slug = "too-many-wrong-tries"
    status = 429
    title = "Too many mismatched retries"
    help = (
        "Each submission that repeats a stored key or ticket with different bytes lengthens the "
        "wait before the next one. This keeps others from guessing a report. Try again after the "
        "seconds in Retry-After."
    )


# The round does not exist, or its state does not allow the call.


class RoundNotFoundError(ServiceError):
    """No round has this id or name."""

    slug = "round-not-found"
    status = 404
    title = "Round not found"
    help = "The id or name is wrong, or the round was deleted."


class RoundReplacedError(ServiceError):
    """The name belonged to a round that was deleted, and now belongs to another round."""

    slug = "round-replaced"
    status = 503
    title = "Round replaced"
    help = (
        "Another round took the name while the submission was on its way. Nothing was stored. Send "
        "it again with the same idempotency key and the same bytes."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class NoCurrentRoundError(ServiceError):
    """No round was opened, or all were deleted."""

    slug = "no-current-round"
    status = 404
    title = "No current round"
    help = (
        "/reports, /frequencies and /recover use the round that was opened last. Open one with "
        "POST /rounds."
    )


class RoundClosedError(ServiceError):
    """The round is closed and accepts no reports."""

    slug = "round-closed"
    status = 409
    title = "The round is closed"
    help = (
        "A closed round accepts no reports. A submission that was accepted before is counted, and "
        "its retry is answered 202."
    )


class NameTakenError(ServiceError):
    """Another round has this name."""

    slug = "name-taken"
    status = 409
    title = "Round name taken"
    help = "Names of rounds are unique. Choose another name, or delete the other round."


class SeriesMismatchError(ServiceError):
    """The rounds of this series have other items."""

    slug = "series-mismatch"
    status = 409
    title = "Items differ from series"
    help = (
        "All rounds of a series have the same items in the same order. Name another series, or "
        "none."
    )


class PluginNotLoadedError(ServiceError):
    """The round's protocol is a plugin that this server has not loaded."""

    slug = "plugin-not-loaded"
    status = 503
    title = "Protocol plugin not loaded"
    help = (
        "The protocol is a plugin, which the detail names. The operator installs its distribution, "
        "names it in LDPRECOVER_PLUGINS and restarts the server. Until then the round can be "
        "listed and deleted, and its reports stay stored. A submission can safely be sent again "
        "with the same idempotency key and the same bytes."
    )


# The submission cannot be stored.


class TooManyReportsError(ServiceError):
    """The submission has more reports than the round allows in one submission."""

    slug = "too-many-reports"
    status = 413
    title = "Too many reports"
    help = (
        "Split the submission; the detail says how many reports fit into one. Counting blocks "
        "other submissions, and takes time in proportion to reports times items for OLH, so the "
        "work per submission is limited."
    )


class InvalidReportError(ServiceError):
    """A report is invalid; `position` is the index of the first one."""

    slug = "invalid-report"
    status = 422
    title = "Invalid report"
    help = (
        "`position` is the index of the first invalid report. The whole submission was rejected "
        "and nothing was stored."
    )

    def __init__(self, message: str, position: int | None = None) -> None:
        self.position = position
        super().__init__(message)

    @property
    def members(self) -> Mapping[str, Any]:
        return {} if self.position is None else {"position": self.position}


class KeyReusedError(ServiceError):
    """The idempotency key belongs to a submission with different bytes."""

    slug = "idempotency-key-reused"
    status = 409
    title = "Idempotency key reused"
    help = (
        "The same key or ticket was sent with different bytes. Nothing of this submission was "
        "stored. Send it with a fresh random key, or another ticket."
    )


# The analysis cannot run, or not now.


class JobNotFoundError(ServiceError):
    """The round has no such job, or the job was removed."""

    slug = "job-not-found"
    status = 404
    title = "Job not found"
    help = (
        "The id is wrong, the job belongs to another round, or it was removed: one hour after it "
        "was requested, or because many newer jobs followed."
    )


class NoReportsError(ServiceError):
    """The round has no reports to analyse."""

    slug = "no-reports"
    status = 409
    title = "The round has no reports"
    help = "Submit reports first."


class ReportsGoneError(ServiceError):
    """Not all of the round's reports are stored."""

    slug = "reports-not-kept"
    status = 409
    title = "Reports not stored"
    help = (
        "The analysis reads every report, and the round's retention has deleted some of them. Use "
        "a method that needs only counts (GET /rounds/{id}/methods)."
    )


class AnalysesBusyError(ServiceError):
    """Too many analyses are queued."""

    slug = "analyses-busy"
    status = 503
    title = "Too many analyses queued"
    help = (
        "Few analyses that read every report run at a time, and few are queued; callers with a key "
        "come first. Try again after the seconds in Retry-After."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "5"}


class AnalysisTimeoutError(ServiceError):
    """The analysis exceeded its time limit."""

    slug = "analysis-timeout"
    status = 504
    title = "Analysis timeout"
    help = (
        "The analysis was stopped. A caller with a key has more time (a setting). Other options of "
        "the method, or another method, may take less."
    )


class AnalysisTooLargeError(ServiceError):
    """The analysis needs more memory or disk than its limit."""

    slug = "analysis-too-large"
    status = 422
    title = "Analysis too large"
    help = (
        "The analysis needs more memory, or more bytes of reports on disk, than the operator "
        "allows; the detail says which. The same call fails until the operator raises the limit."
    )


class AnalysisFailedError(ServiceError):
    """The worker of the analysis ended, or raised an unexpected error."""

    slug = "analysis-failed"
    status = 500
    title = "Analysis failed"
    help = (
        "The worker process ended, or an error of the server or of a plugin's recovery method "
        "stopped it. The detail names the plugin; the server's log has the traceback. Nothing was "
        "changed, and the call can be repeated."
    )


# The service cannot answer at present.


class QueueFullError(ServiceError):
    """Too many submissions are queued; nothing of this one was stored."""

    slug = "queue-full"
    status = 503
    title = "Submission queue full"
    help = (
        "Nothing was stored. Try again after the seconds in Retry-After, with the same idempotency "
        "key and the same bytes."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class BusyError(ServiceError):
    """Too many requests of this kind are queued, or this one was queued for too long."""

    slug = "busy"
    status = 503
    title = "Too many requests queued"
    help = (
        "Too many requests of this kind are queued, or this one was queued for too long. Retry "
        "after the seconds in Retry-After."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class StoreUnavailableError(ServiceError):
    """The database cannot be reached, or stays locked."""

    slug = "store-unavailable"
    status = 503
    title = "Database unavailable"
    help = (
        "It is unknown whether the submission was stored. Try again with the same idempotency key "
        "and the same bytes."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class StorageFullError(ServiceError):
    """The disk is full."""

    slug = "storage-full"
    status = 507
    title = "Disk full"
    help = "Nothing was stored. Try again later with the same idempotency key and the same bytes."
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "10"}


class DatabaseGoneError(ServiceError):
    """The database file was removed or replaced while the server ran."""

    slug = "database-gone"
    status = 503
    title = "Database file missing"
    help = (
        "The database file was removed or replaced while the server ran. Nothing is stored until "
        "the operator restores it or restarts the server. Keep the submission, and try again later "
        "with the same idempotency key and the same bytes."
    )
    fixed_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "30"}


class InternalError(ServiceError):
    """The server failed."""

    slug = "internal-error"
    status = 500
    title = "Internal server error"
    help = (
        "The server's log has the traceback. A submission can safely be sent again with the same "
        "idempotency key and the same bytes."
    )


# For the operator at the command line.


class ConfigurationError(Exception):
    """The settings cannot work; the message says what to change."""


class KeyNotFoundError(Exception):
    """No key that is not revoked has this name."""


def service_errors() -> Iterator[type[ServiceError]]:
    """Yield every class of error that has a slug, sorted by slug."""
    classes: list[type[ServiceError]] = [
        *ServiceError.__subclasses__(),
        *LaterError.__subclasses__(),
    ]
    yield from sorted((cls for cls in classes if "slug" in vars(cls)), key=lambda cls: cls.slug)


def as_service_error(error: Exception) -> ServiceError:
    """Return the error of the service that answers an error of the service or of the core."""
    match error:
        case ServiceError():
            return error
        case ContractError():
            return AnalysisFailedError(str(error))
        case ReportError():
            return InvalidReportError(error.reason, error.position)
    assert isinstance(error, LDPRecoverError)
    return InvalidParameterError(str(error))
