"""Requests that cannot be read, or do not fit the interface."""

from collections.abc import Mapping
from typing import Any

from ldprecover_server.errors.base import ServiceError


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


class NotHttpError(ServiceError):
    """What was sent is not an HTTP request."""

    slug = "invalid-http"
    status = 400
    title = "Not a request"
    help = "What was sent is not an HTTP request, or HTTP does not know its method."


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
        "A browser asked before it sent a request of a web page. The operator lists the origins "
        "of pages that may, in "
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
    help = (
        "Nothing was stored; send it again with the same key and the same bytes, or in smaller "
        "submissions."
    )


class BodyTooLargeError(ServiceError):
    """The body, or what it decompresses to, is over the limit."""

    slug = "body-too-large"
    status = 413
    title = "The body is too large"
    help = (
        "Split the submission. The limits hold for the body as sent, and for what it decompresses "
        "to. Without a report "
        "key a body is no longer than the reports may be that it may hold."
    )


class UnsupportedMediaTypeError(ServiceError):
    """The server does not read this Content-Type or Content-Encoding."""

    slug = "unsupported-media-type"
    status = 415
    title = "The body is in a form the server does not read"
    help = (
        "Content-Type is application/json, or application/vnd.ldprecover.reports for packed "
        "reports; "
        "Content-Encoding is absent or gzip."
    )


class UnsupportedTransferEncodingError(ServiceError):
    """Transfer-Encoding is not chunked alone."""

    slug = "unsupported-transfer-encoding"
    status = 501
    title = "Transfer-Encoding is not understood"
    help = (
        "Transfer-Encoding is absent or chunked. A compressed body says so in "
        "Content-Encoding: gzip."
    )


class InvalidRequestError(ServiceError):
    """The body or a parameter of the query does not fit the interface; `field` names where, if it
    is known.
    """

    slug = "invalid-request"
    status = 422
    title = "The request does not fit the interface"
    help = (
        "`errors` names the first field that does not fit, and why; of a body that is not JSON "
        "the detail says what is "
        'wrong. Numbers are strict: "0.5", true and NaN are not numbers.'
    )

    def __init__(self, message: str, field: str | None = None) -> None:
        self.field = field
        self.reason = message
        super().__init__(message if field is None else f"{field}: {message}")

    @property
    def members(self) -> Mapping[str, Any]:
        return (
            {} if self.field is None else {"errors": [{"field": self.field, "reason": self.reason}]}
        )


class InvalidParameterError(ServiceError):
    """A parameter is outside its range."""

    slug = "invalid-parameter"
    status = 422
    title = "A parameter is outside its range"
    help = "The detail names the parameter and its range."
