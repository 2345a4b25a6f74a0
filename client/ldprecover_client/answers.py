"""Readers of the server's responses: each is read as a message and checked beyond it.

Nothing here trusts the server. A response with a missing field, a wrong type or contradictory
values is an InvalidAnswerError or InconsistentRoundError.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ldprecover.errors import ParameterError
from ldprecover.protocols import PROTOCOLS
from ldprecover_client.calls import TICKET, HttpResponse, JsonObject, object_in, plain, reader
from ldprecover_client.errors import (
    InconsistentRoundError,
    InvalidAnswerError,
    UnknownProtocolError,
)
from ldprecover_interface.base import Message
from ldprecover_interface.certificates import Certified
from ldprecover_interface.changes import Changed
from ldprecover_interface.forms import Form, FormList
from ldprecover_interface.plans import Plans
from ldprecover_interface.results import Frequencies, Recovered
from ldprecover_interface.rounds import Parameters, Round, RoundList, RoundStatus, RoundSummary
from ldprecover_interface.series import Series
from ldprecover_interface.verdicts import TopItem, Verdict

__all__ = [
    "Changed",
    "Form",
    "Frequencies",
    "Recovered",
    "Round",
    "RoundStatus",
    "RoundSummary",
    "Series",
    "TopItem",
    "Verdict",
]

_TOLERANCE = 1e-9
"""Relative tolerance of p and q: exp of another language may differ in the last bits."""


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


def read_opened(answer: HttpResponse) -> RoundStatus | Form:
    """Read POST /series/{series}/next: a round, or a form."""
    return read_form(answer) if "assign" in object_in(answer) else read_status(answer)


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

    body = object_in(answer)
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


def read_changes(answer: HttpResponse) -> Changed:
    """Read POST /rounds/{id}/changes."""
    message = reader(Changed)(answer)
    _check_columns(message, len(message.items))
    for name in ("words", "proven_up_to"):
        if len(getattr(message, name)) != len(message.items):
            raise InvalidAnswerError(f"{name} must have one value for each item")
    return message


def read_plan(answer: HttpResponse) -> Plans:
    """Read GET /plan."""
    message = reader(Plans)(answer)
    solved = "standard_error" if message.solved == "error" else message.solved
    for protocol in message.protocols:
        if protocol.reason is None and getattr(protocol, solved) is None:
            raise InvalidAnswerError(f"{solved} of {protocol.protocol} must be a number")
    return message


def _check_round(message: Round) -> None:
    protocol = PROTOCOLS.get(message.protocol)
    if protocol is None:
        raise UnknownProtocolError(
            f"protocol {plain(message.protocol)!r} is not known here: install and load the plugin "
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
            f"no round can have these parameters: {plain(str(error))}"
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
