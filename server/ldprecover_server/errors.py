"""Errors of the service: one class for each type of problem, with the help for callers.

The comments group the classes by what is wrong: the request, the caller, the round, the
submission, the analysis, or the service itself. `ConfigurationError` and `KeyNotFoundError` are
for the operator at the command line; no HTTP response carries them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ldprecover.errors import LDPRecoverError, ParameterError, ReportError
from ldprecover_interface import paths
from ldprecover_interface.problems import Problem, ProblemType

_MAX_FIELDS = 3
"""Invalid fields that an error names."""


class ServiceError(Exception):
    """Base of every error that is answered with a problem; its text is the problem's detail.

    The first paragraph of a subclass's docstring is for readers of the code. The others are the
    help for callers on the errors page. A response with `retry_after` tells its client to repeat
    the request after these seconds, one with `challenge` how to authenticate.
    """

    type: ClassVar[ProblemType]
    challenge: ClassVar[str | None] = None
    retry_after: float | None = None

    def __init__(self, message: str = "", retry_after: float | None = None, **members: Any) -> None:
        if retry_after is not None:
            self.retry_after = retry_after
        self.members = members
        """The members of the problem beside the standard ones."""
        super().__init__(message)

    @classmethod
    def help(cls) -> str:
        """Return the help for callers."""
        return " ".join((cls.__doc__ or "").partition("\n\n")[2].split())

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the response."""
        headers = {}
        if self.retry_after is not None:
            headers["Retry-After"] = str(math.ceil(self.retry_after))
        if self.challenge is not None:
            headers["WWW-Authenticate"] = self.challenge
        return headers

    @property
    def problem(self) -> Problem:
        """The body of the response; its type links to the server's own errors page."""
        members: dict[str, Any] = {
            "type": f"{paths.ERRORS}#{self.type.slug}",
            "title": self.type.title,
            "status": self.type.status,
            **self.members,
        }
        if detail := str(self):
            members["detail"] = detail
        return Problem(**members)


# The request cannot be read, or does not fit the interface.


class NotFoundError(ServiceError):
    """The path has no call.

    No call has this path. /docs lists the paths.
    """

    type = ProblemType.NOT_FOUND


class MethodNotAllowedError(ServiceError):
    """The path has other methods: those in `allow`.

    The Allow header lists the methods of this path.
    """

    type = ProblemType.METHOD_NOT_ALLOWED

    def __init__(self, message: str, allow: str) -> None:
        self.allow = allow
        super().__init__(message)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Allow": self.allow}


class NotHttpError(ServiceError):
    """The bytes on the connection are not an HTTP request.

    The bytes are not an HTTP request, or its method is not an HTTP method. The proxy in front of
    the server answers this.
    """

    type = ProblemType.INVALID_HTTP


class HeadTooLargeError(ServiceError):
    """The request line, a header or all headers are too long.

    Send fewer or shorter headers, or a shorter path. The proxy in front of the server answers this.
    """

    type = ProblemType.HEAD_TOO_LARGE


class ServerUnreachableError(ServiceError):
    """The proxy cannot reach the server, lost it before its answer, or waits too long for it.

    It is unknown whether a submission was stored. Try again with the same idempotency key and the
    same bytes. The proxy in front of the server answers this, with status 504 after too long a
    wait.
    """

    type = ProblemType.SERVER_UNREACHABLE
    retry_after = 1


class HostError(ServiceError):
    """The request names no host, two, or another one, or comes from a page that may not call it.

    The server answers under the names in LDPRECOVER_ALLOWED_HOSTS, under localhost and under its IP
    addresses. If the name is the server's, the operator adds it to the setting. The origins of web
    pages that may call the server are in LDPRECOVER_CORS_ORIGINS.
    """

    type = ProblemType.HOST_NOT_ALLOWED


class MalformedBodyError(ServiceError):
    """The body does not have its Content-Encoding.

    Content-Encoding is gzip, but the body is not exactly one complete gzip member. Nothing was
    stored.
    """

    type = ProblemType.MALFORMED_BODY


class BodyTimeoutError(ServiceError):
    """The body did not arrive in time.

    The body did not arrive in time. Nothing was stored. Send it again with the same idempotency
    key and the same bytes, or split it into smaller submissions.
    """

    type = ProblemType.BODY_TIMEOUT

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Connection": "close"}


class BodyTooLargeError(ServiceError):
    """The body, as sent or decompressed, exceeds its limit.

    Split the submission. The limits apply to the body as sent and to the decompressed body.
    Without a report key the limit is the size of the reports that one submission may have.
    """

    type = ProblemType.BODY_TOO_LARGE


class UnsupportedMediaTypeError(ServiceError):
    """The server does not read this Content-Type or Content-Encoding.

    Content-Type must be application/json, or application/vnd.ldprecover.reports for packed
    reports. Content-Encoding must be gzip or absent.
    """

    type = ProblemType.UNSUPPORTED_MEDIA_TYPE


class UnsupportedTransferEncodingError(ServiceError):
    """Transfer-Encoding is something else than chunked.

    Transfer-Encoding must be chunked or absent. Declare a compressed body with
    Content-Encoding: gzip.
    """

    type = ProblemType.UNSUPPORTED_TRANSFER_ENCODING


class InvalidRequestError(ServiceError):
    """The body or a query parameter is invalid.

    `errors` lists the first invalid fields and why they are invalid. For a body that is not
    JSON the detail says why. Numbers are strict: "0.5", true and NaN are not numbers.
    """

    type = ProblemType.INVALID_REQUEST

    def __init__(self, reason: str | Sequence[tuple[str, str]]) -> None:
        if isinstance(reason, str):  # for a body that is not JSON
            super().__init__(reason)
            return
        # Pairs of a field and the reason why it is invalid.
        fields = reason[:_MAX_FIELDS]
        errors = [{"field": field, "reason": why} for field, why in fields]
        super().__init__("; ".join(map(" ".join, fields)), errors=errors)


class InvalidParameterError(ServiceError):
    """A parameter or a header has a value that is not allowed.

    The detail names the parameter or header and the values that it may have.
    """

    type = ProblemType.INVALID_PARAMETER


# The caller may not make this call, or not yet.


class UnauthorizedError(ServiceError):
    """The call needs a key; the request has none, or an unknown or revoked one.

    Send the header Authorization: Bearer KEY with a key that is not revoked.
    """

    type = ProblemType.UNAUTHORIZED
    challenge = "Bearer"


class ForbiddenError(ServiceError):
    """The key does not have the scope that the call needs, or the ticket is for another round.

    A key of scope `report` may submit reports, one of scope `analyst` may read results, and one
    of scope `admin` may make every call. A ticket of a form admits its report to the round that the
    ticket assigns, and to no other. The proxy in front of the server serves `/metrics` and
    `/readyz` to nobody.
    """

    type = ProblemType.FORBIDDEN


class ReportKeyNeededError(ServiceError):
    """A submission of this many reports needs a report key.

    Without a key a submission to an open round may have one report (a setting). Send more with
    a key of scope `report`, or one submission per report.
    """

    type = ProblemType.REPORT_KEY_NEEDED


class InvalidTicketError(ServiceError):
    """The round needs a ticket; the request has none, or one of another round.

    Send the header Authorization: Ticket TICKET with a ticket that was minted for this round, or
    for its form.
    Each ticket admits one report.
    """

    type = ProblemType.INVALID_TICKET
    challenge = "Ticket"


class RateLimitedError(ServiceError):
    """The key has submitted as many reports as its rate allows.

    Nothing was stored. Send the submission again after the seconds in Retry-After, with the
    same idempotency key and the same bytes. An address with too many wrong keys or tickets gets
    this too, and from the proxy in front of the server one with too many requests.
    """

    type = ProblemType.RATE_LIMITED
    retry_after = 1


# The round does not exist, or its state does not allow the call.


class RoundNotFoundError(ServiceError):
    """No round has this id or name, or there is no current round.

    The id or name is wrong, or the round was deleted. /reports, /frequencies and /recover use the
    round that was opened last, outside forms: open one with POST /rounds.
    """

    type = ProblemType.ROUND_NOT_FOUND


class FormNotFoundError(ServiceError):
    """No form has this id or name.

    The id or name is wrong, or the form was deleted. GET /forms lists the forms.
    """

    type = ProblemType.FORM_NOT_FOUND


class SeriesNotFoundError(ServiceError):
    """No series has this name, or all of its rounds were deleted.

    The name is wrong, or the rounds of the series were deleted. GET /series lists the series.
    """

    type = ProblemType.SERIES_NOT_FOUND


class NotNextError(ServiceError):
    """The series has another next number, or a round of it is open.

    A series has one open round, or one open form. POST /series/{series}/next closes it and opens
    the number that follows the last, once; GET /series/{series} has the last number.
    """

    type = ProblemType.NOT_NEXT


class RoundOfFormError(ServiceError):
    """The round belongs to a form, and the call is one for the form.

    The rounds of a form are closed and deleted together, and its tickets assign them. Use the same
    call of the form, /forms/{form}, whose name the detail has.
    """

    type = ProblemType.ROUND_OF_FORM


class RoundClosedError(ServiceError):
    """The round is closed and accepts no reports.

    A closed round accepts no reports. A submission that was accepted before is counted, and its
    retry is answered 202.
    """

    type = ProblemType.ROUND_CLOSED


class RoundOpenError(ServiceError):
    """The round is open, and the call needs a closed one.

    Close the round first. Until then an attacker could still choose reports by the answer.
    """

    type = ProblemType.ROUND_OPEN


class NameTakenError(ServiceError):
    """Another round, or another form, has this name.

    Names of rounds are unique, and so are those of forms. Choose another name, or delete what has
    it.
    """

    type = ProblemType.NAME_TAKEN


class PluginNotLoadedError(ServiceError):
    """The round's protocol is a plugin that this server has not loaded.

    The protocol is a plugin, which the detail names. The operator installs its distribution, names
    it in LDPRECOVER_PLUGINS and restarts the server. Until then the round can be listed and
    deleted. A submission can be sent again with the same idempotency key and the same bytes.
    """

    type = ProblemType.PLUGIN_NOT_LOADED


# The submission cannot be stored.


class TooManyReportsError(ServiceError):
    """The submission has more reports than the round allows in one submission.

    Split the submission; the detail says how many reports fit into one. Counting blocks other
    submissions, so the work per submission is limited.
    """

    type = ProblemType.TOO_MANY_REPORTS


class InvalidReportError(ServiceError):
    """A report is invalid; `position` is the index of the first one.

    `position` is the index of the first invalid report. The whole submission was rejected and
    nothing was stored.
    """

    type = ProblemType.INVALID_REPORT


class KeyReusedError(ServiceError):
    """The idempotency key belongs to a submission with different bytes.

    The same key or ticket was sent with different bytes. Nothing of this submission was stored.
    Send it with a fresh random key, or another ticket.
    """

    type = ProblemType.IDEMPOTENCY_KEY_REUSED


# The analysis cannot run, or not now.


class NoReportsError(ServiceError):
    """The round has no reports to analyse.

    Submit reports first.
    """

    type = ProblemType.NO_REPORTS


class NotComparableError(ServiceError):
    """Two rounds or windows do not ask the same, or one report would be in both.

    A change is from one round, or window of rounds, to a later one with the same protocol, epsilon,
    items and question.
    """

    type = ProblemType.NOT_COMPARABLE


class ShareTooSmallError(ServiceError):
    """The reports prove that more of them are malicious than the request assumes.

    The round cannot be certified for this share of malicious reports: no frequencies of honest
    users, with so few malicious reports, lead to these counts. `least_malicious_share` is the share
    that is proven; assume a larger one.
    """

    type = ProblemType.SHARE_TOO_SMALL


class ReportsGoneError(ServiceError):
    """Not all of the round's reports are stored.

    The analysis reads every report, and the round retains none, or was deleted meanwhile. Use a
    method that needs only counts (GET /rounds/{id}/methods).
    """

    type = ProblemType.REPORTS_NOT_KEPT


class AnalysisTimeoutError(ServiceError):
    """The analysis exceeded its time limit.

    The analysis was stopped. A caller with a key has more time; one without has less while others
    wait. Other options, or another method, may take less.
    """

    type = ProblemType.ANALYSIS_TIMEOUT


class AnalysisTooLargeError(ServiceError):
    """The analysis needs more memory or disk than its limit.

    The analysis needs more memory, or more bytes of reports on disk, than the operator allows;
    the detail says which. The same call fails until the operator raises the limit.
    """

    type = ProblemType.ANALYSIS_TOO_LARGE


class AnalysisFailedError(ServiceError):
    """The worker of the analysis ended, or raised an unexpected error.

    The worker process ended, or an error of the server or of a plugin stopped it. The server's log
    has the traceback. The call can be repeated.
    """

    type = ProblemType.ANALYSIS_FAILED


# The service cannot answer at present.


class BusyError(ServiceError):
    """Too many requests of this kind are queued, or this one was queued for too long.

    Too many requests of this kind are queued, or this one was queued for too long. Retry after the
    seconds in Retry-After. Of queued analyses those with a key come first, and without a key the
    oldest of the round that has most makes room for newer ones. Nothing of a submission was stored:
    send it again with the same idempotency key and the same bytes.
    """

    type = ProblemType.BUSY
    retry_after = 1


class AnalysesBusyError(BusyError):
    """Too many analyses are queued."""

    retry_after = 5


class RoundDamagedError(ServiceError):
    """What is stored of the round was changed.

    What is stored of the round was changed in the database: its parameters do not have its digest
    or its p and q, or its counts do not fit them. So there are no numbers, and no report is taken,
    until the operator restores a backup. `ldprecover admin check` finds such rounds.
    """

    type = ProblemType.ROUND_DAMAGED


class StoreUnavailableError(ServiceError):
    """The database cannot be reached, or stays locked.

    It is unknown whether the submission was stored. Try again with the same idempotency key and
    the same bytes.
    """

    type = ProblemType.STORE_UNAVAILABLE
    retry_after = 1


class StorageFullError(ServiceError):
    """The disk is full.

    Nothing was stored. Try again later with the same idempotency key and the same bytes.
    """

    type = ProblemType.STORAGE_FULL
    retry_after = 10


class DatabaseGoneError(ServiceError):
    """The database file was removed or replaced while the server ran.

    The database file was removed or replaced while the server ran. Nothing is stored until the
    operator restores it or restarts the server. Try again later with the same idempotency key and
    the same bytes.
    """

    type = ProblemType.DATABASE_GONE
    retry_after = 30


class InternalError(ServiceError):
    """The server failed.

    The server's log has the traceback, also of a plugin that failed. A submission can safely be
    sent again with the same idempotency key and the same bytes.
    """

    type = ProblemType.INTERNAL_ERROR


# For the operator at the command line.


class ConfigurationError(Exception):
    """The settings cannot work; the message says what to change."""


class DatabaseAwayError(ConfigurationError):
    """The database does not answer, and may do so later without other settings."""


class KeyNotFoundError(Exception):
    """No key has this name, or it is revoked."""


def service_errors() -> Iterator[type[ServiceError]]:
    """Yield the error of every type of problem, sorted by slug."""
    yield from sorted(ServiceError.__subclasses__(), key=lambda error: error.type.slug)


def as_service_error(error: Exception) -> ServiceError:
    """Return the error of the service that answers an error of the service or of the core."""
    match error:
        case ServiceError():
            return error
        case ReportError():
            position = {} if error.position is None else {"position": error.position}
            return InvalidReportError(error.reason, **position)
        case ParameterError(field=str(field)):
            return InvalidRequestError([(field, str(error).removeprefix(f"{field} "))])
    assert isinstance(error, LDPRecoverError)
    return InvalidParameterError(str(error))
