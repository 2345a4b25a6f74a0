"""The calls of the HTTP interface: their requests, and the readers of their responses.

A response is read as a model of the interface and checked beyond it. Nothing here trusts the
server, and nothing knows an HTTP library. A response with a missing field, a wrong type or
contradictory values is an InvalidAnswerError or InconsistentRoundError.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import numpy as np
from pydantic import ValidationError
from pydantic_core import from_json

from ldprecover.errors import ParameterError
from ldprecover.protocols import PROTOCOLS
from ldprecover.protocols.wire import MEDIA_TYPE
from ldprecover_client.errors import (
    ArgumentError,
    InconsistentRoundError,
    InvalidAnswerError,
    RefusedError,
    UnknownProtocolError,
)
from ldprecover_interface import analysis, operation, paths
from ldprecover_interface.base import REFERENCE as _REFERENCE
from ldprecover_interface.base import Message
from ldprecover_interface.certificates import Certified
from ldprecover_interface.forms import Form, FormList
from ldprecover_interface.invalid_fields import invalid_fields
from ldprecover_interface.plans import Plans
from ldprecover_interface.problems import MEDIA_TYPE as _PROBLEM
from ldprecover_interface.results import Frequencies, Recovered
from ldprecover_interface.rounds import (
    Parameters,
    Round,
    RoundList,
    RoundStatus,
    RoundSummary,
)
from ldprecover_interface.submissions import Accepted
from ldprecover_interface.verdicts import (
    TopItem,
    Verdict,
)

__all__ = [
    "Form",
    "Frequencies",
    "Recovered",
    "Round",
    "RoundStatus",
    "RoundSummary",
    "TopItem",
    "Verdict",
]

_TOLERANCE = 1e-9
"""Relative tolerance of p and q: exp of another language may differ in the last bits."""
_SHOWN = 300  # characters of the server's text that are shown
_MAX_FIELDS = 20  # of a problem that are kept

_KEY = re.compile(r"[\x21-\x7e]{1,64}")
REFERENCE = re.compile(_REFERENCE)
"""Identifiers of a round in a path."""

TICKET = re.compile(r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{22}")
"""The form of a ticket."""

JsonObject = dict[str, Any]
"""A JSON object as a server sent it."""

T = TypeVar("T")
M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class HttpResponse:
    """An HTTP response: status, headers by lower-case name, whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def problem_in(answer: HttpResponse) -> RefusedError | None:
    """Return the problem (RFC 9457) in a response, None if it has none.

    Any server or proxy may have written it, so members of other types are ignored.
    """
    if answer.headers.get("content-type", "").partition(";")[0].strip().lower() != _PROBLEM:
        return None
    try:
        return _problem(_object(answer), answer.status)
    except InvalidAnswerError:
        return None


def _problem(body: JsonObject, status: int) -> RefusedError:
    text = {
        name: _plain(body[name])
        for name in ("type", "title", "detail")
        if isinstance(body.get(name), str)
    }
    position = body.get("position")
    return RefusedError(
        status,
        text.get("title") or f"the server refused ({status})",
        text.get("detail"),
        text.get("type", "about:blank"),
        position if type(position) is int else None,
        _fields(body.get("errors")),
    )


def _fields(errors: Any) -> tuple[tuple[str, str], ...]:
    """Return the invalid fields that a problem names, with their reasons."""
    pairs = [
        (error.get("field"), error.get("reason"))
        for error in (errors if isinstance(errors, list) else [])
        if isinstance(error, dict)
    ]
    return tuple(
        (_plain(name), _plain(reason))
        for name, reason in pairs[:_MAX_FIELDS]
        if isinstance(name, str) and isinstance(reason, str)
    )


def read_nothing(answer: HttpResponse) -> None:
    """Read a response of which only the status matters."""


def reader(model: type[M]) -> Callable[[HttpResponse], M]:
    """Return a reader of the responses of a model that need no further checks."""

    def read(answer: HttpResponse) -> M:
        try:
            return model.model_validate_json(answer.body)
        except ValidationError as invalid:
            errors = invalid.errors(include_url=False, include_input=False)
        if not errors[0]["loc"] and errors[0]["type"] != "value_error":
            raise InvalidAnswerError("the answer must be a JSON object")
        schema = model.model_json_schema()
        (path, reason), *_ = invalid_fields(errors, from_json(answer.body), schema, show=False)
        raise InvalidAnswerError(_plain(f"{path} {reason}"))

    return read


def read_parameters(answer: HttpResponse) -> Parameters:
    """Read GET /rounds/{id}/parameters.

    Raises InconsistentRoundError if p, q, the digest or the thresholds do not follow from the
    parameters: the server would then count by other rules than those by which a user perturbs.
    """
    message = reader(Parameters)(answer)
    _check_round(message)
    # This client does not use them, but clients in other languages would perturb by other rules.
    for name, right in message.parameters.oracle.thresholds.items():
        if message.thresholds.get(name, str(right)) != str(right):
            raise InconsistentRoundError(
                f"the round states another threshold {name} than {right}, which "
                f"{message.protocol} has with its parameters"
            )
    return message


def read_status(answer: HttpResponse) -> RoundStatus:
    """Read a round with its state, the response of opening, showing and closing it."""
    status = reader(RoundStatus)(answer)
    _check_round(status)
    _check_verdict(status)
    return status


def read_rounds(answer: HttpResponse) -> tuple[RoundSummary, ...]:
    """Read GET /rounds; p, q and digest are not checked."""
    summaries = reader(RoundList)(answer).rounds
    for summary in summaries:
        _check_verdict(summary)
    return tuple(summaries)


def read_form(answer: HttpResponse) -> Form:
    """Read a form, the response of opening, showing and closing it."""
    return _checked_form(reader(Form)(answer))


def read_forms(answer: HttpResponse) -> tuple[Form, ...]:
    """Read GET /forms."""
    return tuple(map(_checked_form, reader(FormList)(answer).forms))


def _checked_form(form: Form) -> Form:
    for summary in form.rounds:
        _check_verdict(summary)
    return form


def read_tickets(answer: HttpResponse, count: int) -> tuple[str, ...]:
    """Read POST /rounds/{id}/tickets, or that of a form: one ticket a line."""
    try:
        tickets = tuple(answer.body.decode("ascii").split())
    except UnicodeDecodeError:
        raise InvalidAnswerError("the tickets are not ASCII") from None
    if not all(map(TICKET.fullmatch, tickets)):
        raise InvalidAnswerError("the tickets must have the form of tickets")
    if len(set(tickets)) != count:
        raise InvalidAnswerError(
            f"the server sent {len(set(tickets))} different tickets instead of {count}"
        )
    return tickets


def read_frequencies(answer: HttpResponse) -> Frequencies:
    """Read GET /rounds/{id}/frequencies; with n = 0 the estimates are None."""
    message = reader(Frequencies)(answer)
    _check_columns(message, len(message.items))
    for position in np.flatnonzero(message.counts > message.n):
        raise InvalidAnswerError(
            f"counts: the value of item {position} exceeds the {message.n} reports"
        )
    for name in ("frequencies", "standard_errors", "sum"):
        if (getattr(message, name) is None) is (message.n > 0):
            state = "present in a round with reports" if message.n else "null without reports"
            raise InvalidAnswerError(f"{name} must be {state}")
    return message


def read_export(answer: HttpResponse) -> JsonObject:
    """Read GET /rounds/{id}/export, and verify its checksum."""
    from ldprecover.rounds.export import RoundExport

    body = _object(answer)
    try:
        RoundExport.from_dict(body)
    except ParameterError as error:
        raise InvalidAnswerError(str(error)) from error
    return body


def read_recovery(answer: HttpResponse) -> Recovered:
    """Read POST /rounds/{id}/recover."""
    message = reader(Recovered)(answer)
    d = len(message.items)
    _check_columns(message, d)
    _check_items("targets", message.targets, d)
    if (conclusions := message.conclusions) is not None:
        _check_columns(conclusions, d)
        _check_items("suspects", [suspect.item for suspect in conclusions.suspects], d)
    return message


def read_certificate(answer: HttpResponse, questions: int) -> Certified:
    """Read POST /rounds/{id}/certificate."""
    message = reader(Certified)(answer)
    d = len(message.items)
    _check_columns(message, d)
    if len(message.answers) != questions:
        raise InvalidAnswerError(
            f"answers must be those of the {questions} questions, not {len(message.answers)}"
        )
    for each in message.answers:
        for name in ("items", "ahead", "certain", "possible"):
            _check_items(name, getattr(each, name), d)
    return message


def read_plan(answer: HttpResponse) -> Plans:
    """Read GET /plan."""
    message = reader(Plans)(answer)
    solved = "standard_error" if message.solved == "error" else message.solved
    for protocol in message.protocols:
        if protocol.reason is None and getattr(protocol, solved) is None:
            raise InvalidAnswerError(f"{solved} of {protocol.protocol} must be a number")
    return message


def _object(answer: HttpResponse) -> JsonObject:
    try:
        body = from_json(answer.body, allow_inf_nan=False)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise InvalidAnswerError("the answer must be a JSON object")
    return body


def _check_round(message: Round) -> None:
    protocol = PROTOCOLS.get(message.protocol)
    if protocol is None:
        raise UnknownProtocolError(
            f"protocol {_plain(message.protocol)!r} is not known here: install and load the plugin "
            "that has it"
        )
    own = protocol.parameter
    if own is not None and message.own[own.name] is None:
        raise InvalidAnswerError(
            f"an {message.protocol} round states its {own.name}; a client never computes it"
        )
    try:
        parameters = message.parameters
    except ParameterError as error:
        raise InconsistentRoundError(
            f"no round can have these parameters: {_plain(str(error))}"
        ) from None
    oracle = parameters.oracle
    for name, stated, right in (("p", message.p, oracle.p), ("q", message.q, oracle.q)):
        if not math.isclose(stated, right, rel_tol=_TOLERANCE):
            raise InconsistentRoundError(
                f"the round states {name} = {stated}, but {oracle.protocol} with its "
                f"parameters has {right}"
            )
    if message.digest != parameters.digest:
        raise InconsistentRoundError("the round's digest is not that of its parameters")


def _check_verdict(summary: RoundSummary) -> None:
    if (verdict := summary.verdict) is not None:
        _check_items("raised", verdict.raised, summary.domain_size)
        _check_items("top", (each.item for each in verdict.top), summary.domain_size)


def _check_items(name: str, items: Iterable[int], d: int) -> None:
    if not all(0 <= item < d for item in items):
        raise InvalidAnswerError(f"{name} must be indices of the {d} items")


def _check_columns(message: Message, d: int) -> None:
    for name, column in vars(message).items():
        if isinstance(column, np.ndarray) and column.size != d:
            raise InvalidAnswerError(f"{name} has {column.size} values for {d} items")


def _plain(text: str) -> str:
    """Return the server's text for display: without control characters, and shortened."""
    shown = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: _SHOWN + 1]
    )
    return shown if len(text) <= _SHOWN else shown[:_SHOWN] + "…"


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request of the interface.

    `read` parses a response with `status`. A `repeatable` call is idempotent: it may be sent again
    if its outcome is unknown.
    """

    method: str
    path: str
    read: Callable[[HttpResponse], T]
    _: KW_ONLY
    status: int = 200
    content: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    repeatable: bool = True
    is_analysis: bool = False
    """Whether the server may compute for minutes."""

    def parse(self, answer: HttpResponse) -> T:
        """Return the parsed response.

        Raises RefusedError for a problem, InvalidAnswerError or InconsistentRoundError for a
        response that does not fit this interface.
        """
        if answer.status != self.status:
            problem = problem_in(answer)
            if problem is not None and answer.status >= 400:
                raise problem
            raise InvalidAnswerError(f"{self}: {_unexpected_status(answer)}")
        try:
            return self.read(answer)
        except (InvalidAnswerError, InconsistentRoundError) as error:
            raise type(error)(f"{self}: {error}") from None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def _unexpected_status(answer: HttpResponse) -> str:
    if 300 <= answer.status < 400:
        return f"the server redirects (status {answer.status}); give the URL it redirects to"
    return f"status {answer.status} without a problem, so this is not an LDPRecover server"


def open_round(fields: Mapping[str, Any]) -> Call[RoundStatus]:
    """POST /rounds. Not repeatable: without a name it would open a second round."""
    body = {name: value for name, value in fields.items() if value is not None}
    return _post(paths.ROUNDS, read_status, body, status=201, repeatable=False)


def rounds(before: str | None = None) -> Call[tuple[RoundSummary, ...]]:
    """GET /rounds: the first page, or the page after the round with id `before`."""
    page = "" if before is None else f"?before={_reference(before)}"
    return Call("GET", f"{paths.ROUNDS}{page}", read_rounds)


def open_form(fields: Mapping[str, Any]) -> Call[Form]:
    """POST /forms. Not repeatable: without a name it would open a second form."""
    return _post(paths.FORMS, read_form, fields, status=201, repeatable=False)


def forms(before: str | None = None) -> Call[tuple[Form, ...]]:
    """GET /forms, as `rounds`."""
    page = "" if before is None else f"?before={_reference(before)}"
    return Call("GET", f"{paths.FORMS}{page}", read_forms)


def _round_call(
    rest: str,
    read: Callable[[HttpResponse], T],
    method: str = "GET",
    status: int = 200,
    base: str = paths.ROUNDS,
) -> Callable[[str], Call[T]]:
    """Return the function from a reference to a round or form to its call without a body."""
    return lambda reference: Call(method, _path(reference, rest, base), read, status=status)


round_ = _round_call("", read_status)
"""GET /rounds/{id}."""
parameters = _round_call(paths.PARAMETERS, read_parameters)
"""GET /rounds/{id}/parameters."""
close_round = _round_call(paths.CLOSE, read_status, "POST")
"""POST /rounds/{id}/close."""
delete_round = _round_call("", read_nothing, "DELETE", 204)
"""DELETE /rounds/{id}."""
frequencies = _round_call(paths.FREQUENCIES, read_frequencies)
"""GET /rounds/{id}/frequencies."""
export = _round_call(paths.EXPORT, read_export)
"""GET /rounds/{id}/export."""
methods = _round_call(paths.METHODS, reader(analysis.Methods))
"""GET /rounds/{id}/methods."""
form = _round_call("", read_form, base=paths.FORMS)
"""GET /forms/{form}."""
close_form = _round_call(paths.CLOSE, read_form, "POST", base=paths.FORMS)
"""POST /forms/{form}/close."""
delete_form = _round_call("", read_nothing, "DELETE", 204, paths.FORMS)
"""DELETE /forms/{form}."""


def submit(reference: str, packed: bytes, key: str, *, ticket: str | None = None) -> Call[Accepted]:
    """POST /rounds/{id}/reports: packed reports under an idempotency key or a ticket."""
    if not _KEY.fullmatch(key):
        raise ArgumentError("an idempotency key must be 1 to 64 characters from ASCII 0x21 to 0x7E")
    if ticket is None:
        headers = {"Content-Type": MEDIA_TYPE, "Idempotency-Key": key}
    else:
        headers = {"Content-Type": MEDIA_TYPE, "Authorization": f"Ticket {validate_ticket(ticket)}"}
    return Call(
        "POST",
        _path(reference, paths.REPORTS),
        reader(Accepted),
        status=202,
        content=packed,
        headers=headers,
    )


def validate_ticket(ticket: str) -> str:
    """Return a ticket. Raises ArgumentError if it is malformed."""
    if not TICKET.fullmatch(ticket):
        raise ArgumentError(
            "a ticket must be 22 characters, a dot, and 22 more, from A-Z a-z 0-9 _ -"
        )
    return ticket


def mint_tickets(reference: str, count: int, base: str = paths.ROUNDS) -> Call[tuple[str, ...]]:
    """POST /rounds/{id}/tickets, or that of a form. Nobody can use lost tickets: repeatable."""
    return _post(
        _path(reference, paths.TICKETS, base),
        lambda answer: read_tickets(answer, count),
        {"count": count},
    )


def recover(reference: str, fields: Mapping[str, Any]) -> Call[Recovered]:
    """POST /rounds/{id}/recover, by `auto` unless named. Repeatable: it changes nothing."""
    fields = {"method": "auto", **fields}
    return _post(_path(reference, paths.RECOVER), read_recovery, fields, is_analysis=True)


def certify(reference: str, fields: Mapping[str, Any]) -> Call[Certified]:
    """POST /rounds/{id}/certificate. Repeatable: it changes nothing."""
    questions = len(fields.get("questions") or ())
    return _post(
        _path(reference, paths.CERTIFICATE),
        lambda answer: read_certificate(answer, questions),
        fields,
        is_analysis=True,
    )


def alarms(reference: str, rate: float, canaries: Iterable[str] = ()) -> Call[analysis.Alarms]:
    """GET /rounds/{id}/alarms."""
    _check_finite({"rate": rate})
    query = urlencode([("rate", rate), *(("canary", label) for label in canaries)])
    return Call(
        "GET",
        _path(reference, f"{paths.ALARMS}?{query}"),
        reader(analysis.Alarms),
        is_analysis=True,
    )


def plan(fields: Mapping[str, Any]) -> Call[Plans]:
    """GET /plan."""
    present = {name: value for name, value in fields.items() if value is not None}
    _check_finite(present)
    return Call("GET", f"{paths.PLAN}?{urlencode(present, doseq=True)}", read_plan)


def version() -> Call[operation.Version]:
    """GET /version."""
    return Call("GET", paths.VERSION, reader(operation.Version))


def ready() -> Call[None]:
    """GET /readyz."""
    return Call("GET", paths.READYZ, read_nothing)


def _path(reference: str, rest: str = "", base: str = paths.ROUNDS) -> str:
    return f"{base}/{_reference(reference)}{rest}"


def _reference(reference: str) -> str:
    if not isinstance(reference, str) or not REFERENCE.fullmatch(reference):
        raise ArgumentError(
            'a round must be named by its id, its name or "current", a form by its id or its name'
        )
    return reference


def _check_finite(fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ArgumentError(f"{name} must be a finite number, not {value}")


def _plain_number(value: Any) -> Any:
    """Return a number of numpy, an array, a fraction or a decimal as JSON has it."""
    return value.tolist() if hasattr(value, "tolist") else float(value)


def _post(
    path: str, read: Callable[[HttpResponse], T], fields: Mapping[str, Any], **options: Any
) -> Call[T]:
    """Return a call with a JSON body; `options` are further fields of the call."""
    _check_finite(fields)
    try:
        content = json.dumps(fields, allow_nan=False, default=_plain_number).encode()
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the fields of a request must be JSON: {error}") from None
    options["headers"] = {"Content-Type": "application/json"}
    return Call("POST", path, read, content=content, **options)
