"""One table from exception to problem type (RFC 9457), and the handlers that answer with it."""

import http
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from ldprecover.errors import LDPRecoverError, ParameterError, ReportError
from ldprecover_server import errors

__all__ = ["DOCS_PATH", "MEDIA_TYPE", "PROBLEMS", "STANDARD_PROBLEMS", "Problem", "answer", "install", "problem_of"]

MEDIA_TYPE = "application/problem+json"
DOCS_PATH = "/docs/errors"
GONE = 499
"""What metrics show of a caller who did not wait for the answer, as nginx has it; nobody reads it."""


@dataclass(frozen=True)
class Problem:
    """A problem type: its slug is a heading of the errors page."""

    slug: str
    status: int
    title: str
    help: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """The type URL: a reference to the heading on the server's own errors page."""
        return f"{DOCS_PATH}#{self.slug}"


_RETRY = {"Retry-After": "1"}

NOT_FOUND = Problem("not-found", 404, "Nothing at this path", "See /docs for the paths there are.")
METHOD_NOT_ALLOWED = Problem(
    "method-not-allowed", 405, "Method not allowed here", "The Allow header names the methods of this path."
)
INVALID_REQUEST = Problem(
    "invalid-request",
    422,
    "The request does not fit the interface",
    "`errors` names each field and what is wrong with it; of a body that is no JSON the detail says what is wrong. "
    'Numbers are strict: "0.5", true and NaN are no numbers.',
)
NOT_HTTP = Problem(
    "invalid-http", 400, "Not a request", "What was sent is no HTTP request, or its method is none that HTTP knows."
)
HEAD_TOO_LARGE = Problem(
    "head-too-large", 431, "The request's head is too large", "Send fewer or shorter headers, or a shorter path."
)
INTERNAL_ERROR = Problem(
    "internal-error",
    500,
    "The server failed",
    "A fault of the server; its log has the traceback. A submission is safe to send again with the same key and bytes.",
)

CROSS_ORIGIN = Problem(
    "cross-origin-refused",
    400,
    "A page of this origin may not send this",
    "A browser asked before it sent a request of a web page. The operator lists the origins of pages that may, in "
    "LDPRECOVER_CORS_ORIGINS.",
)

STANDARD_PROBLEMS = (
    NOT_HTTP,
    HEAD_TOO_LARGE,
    NOT_FOUND,
    METHOD_NOT_ALLOWED,
    INVALID_REQUEST,
    CROSS_ORIGIN,
    INTERNAL_ERROR,
)
"""Problems that come from HTTP itself, not from an exception of ours."""

PROBLEMS: dict[type[Exception], Problem] = {
    errors.RoundNotFoundError: Problem(
        "round-not-found", 404, "No such round", "The id or name is wrong, or the round was deleted."
    ),
    errors.NoCurrentRoundError: Problem(
        "no-current-round",
        404,
        "No current round",
        "/reports, /frequencies and /recover mean the round opened last; open one with POST /rounds.",
    ),
    errors.JobNotFoundError: Problem(
        "job-not-found",
        404,
        "No such job",
        "The id is wrong, the job belongs to another round, or it is forgotten: an hour after it was asked for, or "
        "when many came after it.",
    ),
    errors.RoundClosedError: Problem(
        "round-closed",
        409,
        "The round is closed",
        "It takes no more reports. A submission that was answered before the close is counted, and its retry still "
        "gets its 202.",
    ),
    errors.NameTakenError: Problem(
        "name-taken", 409, "The name is taken", "Names of rounds are unique; choose another or delete the round."
    ),
    errors.SeriesMismatchError: Problem(
        "series-mismatch",
        409,
        "The series has other items",
        "All rounds of a series are over the same items in the same order; name another series, or none.",
    ),
    errors.ReportsGoneError: Problem(
        "reports-not-kept",
        409,
        "The round's reports are not kept",
        "What was asked for reads every report, and the round's retention has let them go; ask for what needs counts "
        "alone (GET /rounds/{id}/methods).",
    ),
    errors.KeyReusedError: Problem(
        "idempotency-key-reused",
        409,
        "The idempotency key belongs to another submission",
        "The same key came with other bytes. Nothing of this submission was stored; send it under a fresh random key.",
    ),
    errors.NoReportsError: Problem(
        "no-reports", 409, "The round has no reports", "There is nothing to recover from yet."
    ),
    errors.BadRequestError: Problem(
        "invalid-header", 422, "A header cannot be read", "The detail names the header and its form."
    ),
    errors.BodyTimeoutError: Problem(
        "body-timeout",
        408,
        "The body did not arrive in time",
        "Nothing was stored; send it again with the same key and the same bytes, or in smaller submissions.",
    ),
    errors.BodyTooLargeError: Problem(
        "body-too-large",
        413,
        "The body is too large",
        "Split the submission. The limits hold for the body as sent, and for what it decompresses to.",
    ),
    errors.TooManyReportsError: Problem(
        "too-many-reports",
        413,
        "More reports than one submission may hold",
        "Split the submission; the detail says how many reports fit. Counting takes time, for OLH in proportion to "
        "reports times items, and holds up everyone, so one submission may take only so much of it.",
    ),
    errors.UnsupportedMediaTypeError: Problem(
        "unsupported-media-type",
        415,
        "The body is in a form the server does not read",
        "Content-Type is application/json, or application/vnd.ldprecover.reports for packed reports; "
        "Content-Encoding is absent or gzip.",
    ),
    errors.UnsupportedTransferEncodingError: Problem(
        "unsupported-transfer-encoding",
        501,
        "Transfer-Encoding is not understood",
        "Transfer-Encoding is absent or chunked. A compressed body says so in Content-Encoding: gzip.",
    ),
    errors.UnauthorizedError: Problem(
        "unauthorized",
        401,
        "A key is needed",
        "Send the header Authorization: Bearer KEY with a key that is not revoked.",
        {"WWW-Authenticate": "Bearer"},
    ),
    errors.ForbiddenError: Problem(
        "forbidden",
        403,
        "The key may not do this",
        "A key of scope `report` submits reports, one of scope `analyst` reads, and one of scope `admin` does all.",
    ),
    errors.ReportKeyNeededError: Problem(
        "report-key-needed",
        403,
        "So many reports take a report key",
        "Without a key a submission to an open round holds one report (a setting), so that many reports take as many "
        "submissions. With a key of scope `report` it may hold more.",
    ),
    errors.InvalidTicketError: Problem(
        "invalid-ticket",
        401,
        "A ticket of this round is needed",
        "Send the header Authorization: Ticket TICKET with a ticket that was minted for this round. Each admits one "
        "report.",
        {"WWW-Authenticate": "Ticket"},
    ),
    errors.RateLimitedError: Problem(
        "rate-limited",
        429,
        "The key brings reports too fast",
        "Nothing was stored; send it again after the time in Retry-After with the same idempotency key and the same "
        "bytes.",
    ),
    errors.QueueFullError: Problem(
        "queue-full",
        503,
        "Too many submissions wait",
        "Nothing was stored; try again after the time in Retry-After with the same key and the same bytes.",
        _RETRY,
    ),
    errors.AnalysesBusyError: Problem(
        "analyses-busy",
        503,
        "Too many analyses wait",
        "What reads every report takes long, so few such calls run at a time, and few wait, those with a key first; "
        "try again after the time in Retry-After.",
        {"Retry-After": "5"},
    ),
    errors.AnalysisTimeoutError: Problem(
        "analysis-timeout",
        504,
        "The analysis took too long",
        "It was given up. A caller with a key has more time (settings); other options of the method, or another "
        "method, may take less.",
    ),
    errors.AnalysisTooLargeError: Problem(
        "analysis-too-large",
        503,
        "The analysis needs more than it may take",
        "More memory, or more bytes of reports on disk, than the operator allows one analysis. The detail says which; "
        "the same call fails again until the operator allows more.",
    ),
    errors.AnalysisFailedError: Problem(
        "analysis-failed",
        500,
        "The analysis failed",
        "The process that worked on it has ended, or a fault of the server stopped it: its log has the traceback. "
        "Nothing was changed, and it can be asked again.",
    ),
    errors.StoreUnavailableError: Problem(
        "store-unavailable",
        503,
        "The database does not answer",
        "Whether the submission was stored is not known; try again with the same key and the same bytes.",
        _RETRY,
    ),
    errors.StorageFullError: Problem(
        "storage-full",
        507,
        "The disk is full",
        "Nothing was stored; try again later with the same key and the same bytes.",
        {"Retry-After": "10"},
    ),
    errors.DatabaseGoneError: Problem(
        "database-gone",
        503,
        "The database is not there",
        "Its file was removed or replaced while the server ran, so nothing is stored until the operator has put it "
        "back or restarted the server. Keep the submission, and try again later with the same key and the same bytes.",
        {"Retry-After": "30"},
    ),
    ReportError: Problem(
        "invalid-report",
        422,
        "A report is malformed",
        "`position` is the index of the first bad report; the whole submission was refused and nothing was stored.",
    ),
    ParameterError: Problem(
        "invalid-parameter", 422, "A parameter is outside its range", "The detail names the parameter and its range."
    ),
}


def problem_of(error: Exception) -> Problem:
    """Return the problem type of a refusal, by the nearest class in the table."""
    return next(PROBLEMS[cls] for cls in type(error).__mro__ if cls in PROBLEMS)


def answer(
    problem: Problem, detail: str | None = None, headers: Mapping[str, str] | None = None, **extra: Any
) -> Response:
    """Return the problem+json response."""
    body = {"type": problem.type, "title": problem.title, "status": problem.status}
    body |= {"detail": detail} if detail else {}
    body |= {name: value for name, value in extra.items() if value is not None}
    response = _Refusal(
        msgspec.json.encode(body),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers={**problem.headers, **(headers or {})},
    )
    response.problem = problem.slug
    return response


class _Refusal(Response):
    """A problem that tells whoever watches the request which one it is."""

    problem: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["problem"] = self.problem
        await super().__call__(scope, receive, send)


def refuse(error: Exception) -> Response:
    """Return the answer to a refusal of the service or of the mathematics."""
    if isinstance(error, ReportError):
        return answer(problem_of(error), error.reason, position=error.position)
    headers = {"Retry-After": str(math.ceil(error.seconds))} if isinstance(error, errors.RateLimitedError) else None
    return answer(problem_of(error), str(error), headers)


def install(app: FastAPI) -> None:
    """Make every error of the app a problem."""

    async def on_refusal(request: Request, error: Exception) -> Response:
        return refuse(error)

    async def on_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        if (malformed := error.errors()[0])["type"] == "json_invalid":
            why, position = malformed["ctx"]["error"], malformed["loc"][-1]
            return answer(INVALID_REQUEST, f"the body is not JSON: {why} (character {position + 1})")
        reasons: dict[str, list[str]] = {}
        for e in error.errors():
            reasons.setdefault(_field(e["loc"], error.body, missing=e["type"] == "missing"), []).append(e["msg"])
        found = [{"field": field, "reason": _either(said)} for field, said in reasons.items()]
        return answer(INVALID_REQUEST, "; ".join(f"{e['field']}: {e['reason']}" for e in found[:3]), errors=found[:20])

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        table = {404: NOT_FOUND, 405: METHOD_NOT_ALLOWED, 400: INVALID_REQUEST}
        if error.status_code in table:
            detail = f"{request.method} {request.url.path}" if error.status_code != 400 else _unread(error)
            headers = {"Allow": _methods_of_path(request)} if error.status_code == 405 else error.headers
            return answer(table[error.status_code], detail, headers)
        title = http.HTTPStatus(error.status_code).phrase
        generic = Problem(title.lower().replace(" ", "-"), error.status_code, title, "")
        return answer(generic, str(error.detail), error.headers)

    async def on_gone(request: Request, error: Exception) -> Response:
        return Response(status_code=GONE)

    async def on_failure(request: Request, error: Exception) -> Response:
        # The framework raises the error again for the log, and the connection is cut after this answer.
        return answer(INTERNAL_ERROR, headers={"Connection": "close"})

    app.add_exception_handler(errors.ServiceError, on_refusal)
    app.add_exception_handler(LDPRecoverError, on_refusal)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(ClientDisconnect, on_gone)
    app.add_exception_handler(Exception, on_failure)


def _methods_of_path(request: Request) -> str:
    """Return the methods of all routes at a path; the framework would name those of the first one."""
    routes = request.app.router.routes
    scopes = [{**request.scope, "method": method} for method in ("DELETE", "GET", "PATCH", "POST", "PUT")]
    allowed = [s["method"] for s in scopes if any(route.matches(s)[0] is Match.FULL for route in routes)]
    return ", ".join([*allowed, "HEAD"] if "GET" in allowed else allowed)


def _field(location: Sequence[int | str], body: Any, *, missing: bool) -> str:
    """Return where in the request an error is: the names of JSON, without those that pydantic gives to types."""
    source, *parts = location  # body, query or path
    if source == "body":
        found = []
        for i, part in enumerate(parts):
            absent = missing and i == len(parts) - 1
            if (isinstance(body, dict) and part in body) or (isinstance(body, list) and isinstance(part, int)):
                body = body[part]  # type: ignore[index]
            elif not absent:
                continue  # what was tried of a union
            found.append(part)
        parts = found
    return ".".join(map(str, parts)) or str(source)


def _either(reasons: Sequence[str]) -> str:
    """Return in one what is wrong with a field that may be one thing or another."""
    first, *others = dict.fromkeys(reasons)
    return " or ".join([first, *(other.removeprefix("Input should ") for other in others)])


def _unread(error: HTTPException) -> str:
    """Return why the framework could not read a body."""
    cause = error.__cause__
    if isinstance(cause, UnicodeDecodeError):
        return "the body is not UTF-8"
    if isinstance(cause, RecursionError):
        return "the body is nested too deeply"
    if isinstance(cause, ValueError):  # what else it raises is a JSONDecodeError, and never gets here
        return f"the body has a number of more than {sys.get_int_max_str_digits()} digits"
    return str(error.detail)
