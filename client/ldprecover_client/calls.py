"""The calls of the HTTP interface: request, response reader, and whether it may be repeated."""

import gzip
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from ldprecover.protocols.wire import MEDIA_TYPE
from ldprecover_client import answers
from ldprecover_client.answers import (
    Answer,
    RoundStatus,
    RoundSummary,
)
from ldprecover_client.errors import ArgumentError, InconsistentRoundError, InvalidAnswerError
from ldprecover_interface import analysis, operation, paths
from ldprecover_interface.certificates import Certified
from ldprecover_interface.plans import Plans
from ldprecover_interface.results import Recovered
from ldprecover_interface.submissions import Accepted

T = TypeVar("T")

_KEY = re.compile(r"[\x21-\x7e]{1,64}")


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request of the interface.

    `read` parses a response with `status`. A `repeatable` call is idempotent: it may be sent again
    if its outcome is unknown.
    """

    method: str
    path: str
    read: Callable[[Answer], T]
    status: int = 200
    content: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    is_analysis: bool = False
    """Whether the server may compute for minutes."""

    def parse(self, answer: Answer) -> T:
        """Return the parsed response.

        Raises RefusedError for a problem, InvalidAnswerError or InconsistentRoundError for a
        response that does not fit this interface.
        """
        if answer.status != self.status:
            problem = answers.problem_in(answer)
            if problem is not None and answer.status >= 400:
                raise problem
            raise InvalidAnswerError(f"{self}: {_unexpected_status(answer)}")
        try:
            return self.read(answer)
        except (InvalidAnswerError, InconsistentRoundError) as error:
            raise type(error)(f"{self}: {error}") from None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def _unexpected_status(answer: Answer) -> str:
    if 300 <= answer.status < 400:
        return f"the server redirects (status {answer.status}); give the URL it redirects to"
    return f"status {answer.status} without a problem, so this is not an LDPRecover server"


def open_round(fields: Mapping[str, Any]) -> Call[RoundStatus]:
    """POST /rounds. Not repeatable: without a name it would open a second round."""
    body = {name: value for name, value in fields.items() if value is not None}
    return _post(paths.ROUNDS, answers.read_status, body, status=201, repeatable=False)


def rounds(before: str | None = None) -> Call[tuple[RoundSummary, ...]]:
    """GET /rounds: the first page, or the page after the round with id `before`."""
    page = "" if before is None else f"?before={_reference(before)}"
    return Call("GET", f"{paths.ROUNDS}{page}", answers.read_rounds)


def _round_call(
    rest: str, read: Callable[[Answer], T], method: str = "GET", status: int = 200
) -> Callable[[str], Call[T]]:
    """Return the function from a round reference to its call, for a call without a body."""
    return lambda reference: Call(method, _path(reference, rest), read, status)


round_ = _round_call("", answers.read_status)
"""GET /rounds/{id}."""
parameters = _round_call(paths.PARAMETERS, answers.read_parameters)
"""GET /rounds/{id}/parameters."""
close_round = _round_call(paths.CLOSE, answers.read_status, "POST")
"""POST /rounds/{id}/close."""
delete_round = _round_call("", answers.read_nothing, "DELETE", 204)
"""DELETE /rounds/{id}."""
frequencies = _round_call(paths.FREQUENCIES, answers.read_frequencies)
"""GET /rounds/{id}/frequencies."""
export = _round_call(paths.EXPORT, answers.read_export)
"""GET /rounds/{id}/export."""
methods = _round_call(paths.METHODS, answers.reader(analysis.Methods))
"""GET /rounds/{id}/methods."""


def submit(
    reference: str, packed: bytes, key: str, *, compress: bool = False, ticket: str | None = None
) -> Call[Accepted]:
    """POST /rounds/{id}/reports: packed reports under an idempotency key or a ticket."""
    if not _KEY.fullmatch(key):
        raise ArgumentError("an idempotency key must be 1 to 64 characters from ASCII 0x21 to 0x7E")
    if ticket is None:
        headers = {"Content-Type": MEDIA_TYPE, "Idempotency-Key": key}
    else:
        headers = {"Content-Type": MEDIA_TYPE, "Authorization": f"Ticket {validate_ticket(ticket)}"}
    if compress:
        headers["Content-Encoding"] = "gzip"
        # Without a time in the header the bytes are the same each time.
        packed = gzip.compress(packed, compresslevel=1, mtime=0)
    return Call(
        "POST", _path(reference, paths.REPORTS), answers.reader(Accepted), 202, packed, headers
    )


def validate_ticket(ticket: str) -> str:
    """Return a ticket. Raises ArgumentError if it is malformed."""
    if not answers.TICKET.fullmatch(ticket):
        raise ArgumentError(
            "a ticket must be 22 characters, a dot, and 22 more, from A-Z a-z 0-9 _ -"
        )
    return ticket


def mint_tickets(reference: str, count: int) -> Call[tuple[str, ...]]:
    """POST /rounds/{id}/tickets. Repeatable: nobody can use tickets that were lost."""
    return _post(
        _path(reference, paths.TICKETS),
        lambda answer: answers.read_tickets(answer, count),
        {"count": count},
    )


def recover(reference: str, fields: Mapping[str, Any]) -> Call[Recovered]:
    """POST /rounds/{id}/recover, by `auto` unless named. Repeatable: it changes nothing."""
    fields = {"method": "auto", **fields}
    return replace(
        _post(_path(reference, paths.RECOVER), answers.read_recovery, fields), is_analysis=True
    )


def certify(reference: str, fields: Mapping[str, Any]) -> Call[Certified]:
    """POST /rounds/{id}/certificate. Repeatable: it changes nothing."""
    questions = len(fields.get("questions") or ())
    call = _post(
        _path(reference, paths.CERTIFICATE),
        lambda answer: answers.read_certificate(answer, questions),
        fields,
    )
    return replace(call, is_analysis=True)


def alarms(reference: str, rate: float, canaries: Iterable[str] = ()) -> Call[analysis.Alarms]:
    """GET /rounds/{id}/alarms."""
    _check_finite({"rate": rate})
    query = urlencode([("rate", repr(rate)), *(("canary", label) for label in canaries)])
    return Call(
        "GET",
        _path(reference, f"{paths.ALARMS}?{query}"),
        answers.reader(analysis.Alarms),
        is_analysis=True,
    )


def plan(fields: Mapping[str, Any]) -> Call[Plans]:
    """GET /plan."""
    present = {name: value for name, value in fields.items() if value is not None}
    _check_finite(present)
    query = urlencode(
        {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in present.items()
        }
    )
    return Call("GET", f"{paths.PLAN}?{query}", answers.read_plan)


def version() -> Call[operation.Version]:
    """GET /version."""
    return Call("GET", paths.VERSION, answers.reader(operation.Version))


def ready() -> Call[None]:
    """GET /readyz."""
    return Call("GET", paths.READYZ, answers.read_nothing)


def _path(reference: str, rest: str = "") -> str:
    return paths.round_path(_reference(reference)) + rest


def _reference(reference: str) -> str:
    if not isinstance(reference, str) or not answers.REFERENCE.fullmatch(reference):
        raise ArgumentError('a round must be named by its id, its name or "current"')
    return reference


def _check_finite(fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ArgumentError(f"{name} must be a finite number, not {value}")


def _post(
    path: str,
    read: Callable[[Answer], T],
    fields: Mapping[str, Any],
    *,
    status: int = 200,
    repeatable: bool = True,
) -> Call[T]:
    _check_finite(fields)
    try:
        content = json.dumps(fields, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the fields of a request must be JSON: {error}") from None
    return Call(
        "POST", path, read, status, content, {"Content-Type": "application/json"}, repeatable
    )
