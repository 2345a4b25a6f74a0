"""Problems (RFC 9457): the body of every error, and the types of problems."""

from enum import Enum

from pydantic import ConfigDict, Field

from ldprecover_interface.base import Message, optional

MEDIA_TYPE = "application/problem+json"


class ProblemType(Enum):
    """Every type of problem: its HTTP status and its title."""

    ANALYSIS_FAILED = 500, "Analysis failed"
    ANALYSIS_TIMEOUT = 504, "Analysis timeout"
    ANALYSIS_TOO_LARGE = 422, "Analysis too large"
    BODY_TIMEOUT = 408, "Body timeout"
    BODY_TOO_LARGE = 413, "Body too large"
    BUSY = 503, "Too many requests queued"
    DATABASE_GONE = 503, "Database file missing"
    FORBIDDEN = 403, "Not allowed"
    FORM_NOT_FOUND = 404, "Form not found"
    HEAD_TOO_LARGE = 431, "Request head too large"
    HOST_NOT_ALLOWED = 400, "Host or origin not allowed"
    IDEMPOTENCY_KEY_REUSED = 422, "Idempotency key reused"
    INTERNAL_ERROR = 500, "Internal server error"
    INVALID_HTTP = 400, "Not an HTTP request"
    INVALID_PARAMETER = 422, "Invalid parameter"
    INVALID_REPORT = 422, "Invalid report"
    INVALID_REQUEST = 422, "Invalid request"
    INVALID_TICKET = 401, "Ticket required"
    MALFORMED_BODY = 400, "Malformed gzip body"
    METHOD_NOT_ALLOWED = 405, "Method not allowed"
    NAME_TAKEN = 409, "Name taken"
    NOT_NEXT = 409, "Not next in the series"
    NO_REPORTS = 409, "The round has no reports"
    NOT_COMPARABLE = 409, "Rounds not comparable"
    NOT_FOUND = 404, "Path not found"
    PLUGIN_NOT_LOADED = 503, "Protocol plugin not loaded"
    RATE_LIMITED = 429, "Rate exceeded"
    REPORT_KEY_NEEDED = 403, "Report key needed"
    REPORTS_NOT_KEPT = 409, "Reports not stored"
    ROUND_CLOSED = 409, "The round is closed"
    ROUND_DAMAGED = 500, "Round damaged"
    ROUND_NOT_FOUND = 404, "Round not found"
    ROUND_OF_FORM = 409, "Round of a form"
    ROUND_OPEN = 409, "The round is open"
    SERIES_NOT_FOUND = 404, "Series not found"
    SERVER_UNREACHABLE = 502, "Server unreachable"
    SHARE_TOO_SMALL = 409, "Malicious share too small"
    STORAGE_FULL = 507, "Disk full"
    STORE_UNAVAILABLE = 503, "Database unavailable"
    TOO_MANY_REPORTS = 413, "Too many reports"
    UNAUTHORIZED = 401, "Key required"
    UNSUPPORTED_MEDIA_TYPE = 415, "Unsupported media type"
    UNSUPPORTED_TRANSFER_ENCODING = 501, "Unsupported transfer encoding"

    def __init__(self, status: int, title: str) -> None:
        self.status = status
        self.title = title

    @property
    def slug(self) -> str:
        """The last part of the `type` of a problem, and a heading of the errors page."""
        return self.name.lower().replace("_", "-")


class FieldError(Message):
    """An invalid field of the request."""

    field: str
    reason: str


class Problem(Message):
    """RFC 9457 problem; a member that does not apply is absent."""

    model_config = ConfigDict(
        json_schema_extra=optional("detail", "position", "errors", "least_malicious_share")
    )

    type: str
    title: str
    status: int
    detail: str = ""
    position: int | None = Field(default=None, description="Index of the first invalid report.")
    errors: list[FieldError] = Field(
        default=[], description="The first invalid fields of an invalid request."
    )
    least_malicious_share: float | None = Field(
        default=None,
        description="Share of the reports that are proven not to come from honest users.",
    )
