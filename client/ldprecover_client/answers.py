"""Responses of a server: decoded with the models of the interface, and checked beyond them.

Nothing here trusts the server, and nothing knows an HTTP library. A response with a missing field,
a wrong type or contradictory values is an InvalidAnswerError or InconsistentRoundError.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, TypedDict, TypeVar

import numpy as np
from pydantic import ValidationError

from ldprecover import FrequencyOracle, ParameterError, RoundExport, RoundParameters
from ldprecover.items import highest
from ldprecover.protocols import PROTOCOLS, own_parameters
from ldprecover.types import FloatArray, Int64Array
from ldprecover_client.errors import (
    InconsistentRoundError,
    InvalidAnswerError,
    RefusedError,
    UnknownProtocolError,
)
from ldprecover_client.notebook import data_frame, html_table
from ldprecover_interface import certificates, plans, results, rounds, submissions
from ldprecover_interface.base import REFERENCE as _REFERENCE
from ldprecover_interface.base import Message
from ldprecover_interface.invalid_fields import invalid_fields
from ldprecover_interface.problems import MEDIA_TYPE as _PROBLEM

_TOLERANCE = 1e-9
"""Relative tolerance of p and q: exp of another language may differ in the last bits."""
_SHOWN = 300  # characters of the server's text that are shown
_MAX_FIELDS = 20  # of a problem that are kept
_ROWS = 10  # of a table in a notebook

REFERENCE = re.compile(_REFERENCE)
"""Identifiers of a round in a path."""

TICKET = re.compile(r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{22}")
"""The form of a ticket."""

JsonObject = dict[str, Any]
"""A JSON object as a server sent it."""

M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class Answer:
    """An HTTP response: status, headers with lower-case names, whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Round:
    """The immutable part of a round, as a server states it.

    `access` says who may submit, `read_access` who may read results, `retention` how long reports
    are stored after they are counted.

    Raises InconsistentRoundError if p, q or digest do not follow from the parameters: the server
    would then count by other rules than the ones by which a user perturbs.
    """

    id: str
    name: str
    parameters: RoundParameters
    p: float
    q: float
    digest: str
    _: KW_ONLY
    access: str = "open"
    read_access: str = "public"
    retention: str = "forever"

    def __post_init__(self) -> None:
        oracle = self.parameters.oracle
        for name, stated, right in (("p", self.p, oracle.p), ("q", self.q, oracle.q)):
            if not math.isclose(stated, right, rel_tol=_TOLERANCE):
                raise InconsistentRoundError(
                    f"the round states {name} = {stated}, but {oracle.protocol} with its "
                    f"parameters has {right}"
                )
        if self.digest != self.parameters.digest:
            raise InconsistentRoundError("the round's digest is not that of its parameters")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self._shown})"

    @property
    def _shown(self) -> str:
        """Protocol, epsilon and number of items, as `repr` shows them."""
        round_ = self.parameters
        return f"{round_.protocol}, epsilon {round_.epsilon:g}, {len(round_.items):,} items"


@dataclass(frozen=True)
class TopItem:
    """One of the most frequent items of a recovery: its index, label and recovered frequency.

    Of a label that is longer than 80 characters these are the first.
    """

    item: int
    label: str
    estimate: float


@dataclass(frozen=True)
class Verdict:
    """What the recommended recovery, the alarms and a certificate conclude of a closed round.

    `attack` is "none_seen", "possible" or "near_certain". `attack_probability` and the visible
    `malicious_share`, an estimate, are None if the recovery states none.
    `least_malicious_share` is what the counts prove with a confidence of 95 %. `raised` are the
    indices of at most 20 items that reports raised, the most probable first. `top` are the ten
    most frequent items by the recommended recovery, or all of fewer, the first first.
    """

    attack: str
    attack_probability: float | None
    malicious_share: float | None
    least_malicious_share: float
    raised: tuple[int, ...]
    top: tuple[TopItem, ...]


@dataclass(frozen=True)
class RoundSummary:
    """A round without its items, as a list of rounds has it; p, q and digest are not checked.

    p and q are None if the server has not loaded the plugin of the round's protocol. `own` has the
    parameters of all protocols by name, None for those that the round does not have. `verdict` is
    None where the server has none for this caller.
    """

    id: str
    name: str
    state: str
    n: int
    protocol: str
    epsilon: float
    domain_size: int
    own: dict[str, int | None]
    p: float | None
    q: float | None
    digest: str
    access: str
    read_access: str
    retention: str
    opened_at: str
    closed_at: str | None
    verdict: Verdict | None = None

    def __repr__(self) -> str:
        return (
            f"RoundSummary({self.name}, {self.state}, {self.protocol}, epsilon {self.epsilon:g}, "
            f"{self.domain_size:,} items, {self.n:,} reports)"
        )


@dataclass(frozen=True)
class RoundStatus(Round):
    """A round with its state ("open" or "closed"), the number n of reports, and its ISO 8601 times.

    `verdict` is None where the server has none for this caller.
    """

    state: str
    n: int
    opened_at: str
    closed_at: str | None
    verdict: Verdict | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return f"RoundStatus({self.name}, {self.state}, {self._shown}, {self.n:,} reports)"

    @property
    def summary(self) -> RoundSummary:
        """The same without the items."""
        parameters = self.parameters
        return RoundSummary(
            protocol=parameters.protocol,
            epsilon=parameters.epsilon,
            domain_size=len(parameters.items),
            own={**dict.fromkeys(own_parameters()), **parameters.own},
            **_common(self, RoundSummary),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Frequencies:
    """The unbiased, unclipped estimates of a round, which `Client.frequencies` returns.

    Arrays have shape (d,), one entry for each item. `to_frame` returns them by label.

    `n` is the number of reports, `counts` the support counts. `frequencies`, `standard_errors` and
    their `sum` are None in a round without reports. `notes` are sentences on what the estimates
    cannot tell. `body` is the JSON object as the server sent it, with all its fields.
    """

    round: str
    protocol: str
    epsilon: float
    n: int
    items: tuple[str, ...]
    counts: Int64Array
    frequencies: FloatArray | None
    standard_errors: FloatArray | None
    sum: float | None
    notes: tuple[str, ...]
    body: JsonObject

    def __repr__(self) -> str:
        top = "" if self.frequencies is None else f": {highest(self.frequencies, self.items)}"
        return (
            f"Frequencies({self.protocol}, epsilon {self.epsilon:g}, {self.n:,} reports, "
            f"{len(self.items):,} items{top})"
        )

    def to_frame(self) -> Any:
        """Return a pandas data frame: a row for each label; counts, estimates, standard errors.

        Raises ImportError without pandas.
        """
        names = ("counts", "frequencies", "standard_errors")
        columns = {name: getattr(self, name) for name in names}
        return data_frame({k: v for k, v in columns.items() if v is not None}, self.items)

    def _repr_html_(self) -> str:
        if self.frequencies is None or self.standard_errors is None:
            return html_table(["item"], [[label] for label in self.items[:_ROWS]], repr(self))
        highest_first = (-self.frequencies).argsort(kind="stable")[:_ROWS]
        rows = [
            [
                self.items[i],
                f"{100 * self.frequencies[i]:.2f} %",
                f"± {100 * self.standard_errors[i]:.2f} points",
            ]
            for i in highest_first
        ]
        return html_table(["item", "frequency", "standard error"], rows, repr(self))


class Submitted(TypedDict):
    """The response to a submission; a `duplicate` was already stored under the same key."""

    round: str
    accepted: int
    duplicate: bool


def problem_in(answer: Answer) -> RefusedError | None:
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


def read_nothing(answer: Answer) -> None:
    """Read a response of which only the status matters."""


def read_round(answer: Answer) -> Round:
    """Read GET /rounds/{id}/parameters."""
    message, _ = _read(rounds.Parameters, answer)
    round_ = Round(**_immutable(message))
    _check_thresholds(message.thresholds, round_.parameters.oracle)
    return round_


def read_status(answer: Answer) -> RoundStatus:
    """Read a round with its state, the response of opening, showing and closing it."""
    message, _ = _read(rounds.Round, answer)
    shared = _common(message, RoundStatus) | _immutable(message)
    return RoundStatus(**shared | _verdict(message))


def read_rounds(answer: Answer) -> tuple[RoundSummary, ...]:
    """Read GET /rounds."""
    message, _ = _read(rounds.Rounds, answer)
    return tuple(
        RoundSummary(**_common(each, RoundSummary) | {"own": each.own} | _verdict(each))
        for each in message.rounds
    )


def read_submitted(answer: Answer) -> Submitted:
    """Read the response to a submission."""
    message, _ = _read(submissions.Accepted, answer)
    return {"round": message.round, "accepted": message.accepted, "duplicate": message.duplicate}


def read_tickets(answer: Answer, count: int) -> tuple[str, ...]:
    """Read POST /rounds/{id}/tickets: one ticket a line."""
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


def read_frequencies(answer: Answer) -> Frequencies:
    """Read GET /rounds/{id}/frequencies; with n = 0 the estimates are None."""
    message, body = _read(results.Frequencies, answer)
    d = len(message.items)
    _check_columns(message, d, "counts")
    for position, count in enumerate(message.counts):
        if count > message.n:
            raise InvalidAnswerError(
                f"counts: the value of item {position} exceeds the {message.n} reports"
            )
    for name in ("frequencies", "standard_errors", "sum"):
        if (getattr(message, name) is None) is (message.n > 0):
            state = "present in a round with reports" if message.n else "null without reports"
            raise InvalidAnswerError(f"{name} must be {state}")
    if message.n:
        _check_columns(message, d, "frequencies", "standard_errors")
    frequencies, errors = (
        None if column is None else np.array(column, dtype=np.float64)
        for column in (message.frequencies, message.standard_errors)
    )
    return Frequencies(
        message.round,
        message.protocol,
        message.epsilon,
        message.n,
        tuple(message.items),
        np.array(message.counts, dtype=np.int64),
        frequencies,
        errors,
        message.sum,
        tuple(message.notes or ()),
        body,
    )


def read_export(answer: Answer) -> JsonObject:
    """Read GET /rounds/{id}/export, and verify its checksum."""
    body = _object(answer)
    try:
        RoundExport.from_dict(body)
    except ParameterError as error:
        raise InvalidAnswerError(str(error)) from error
    return body


def read_recovery(answer: Answer) -> JsonObject:
    """Read POST /rounds/{id}/recover."""
    message, body = _read(results.Recovered, answer)
    d = len(message.items)
    _check_columns(message, d, "poisoned", "malicious", "genuine", "recovered")
    _check_items("targets", message.targets, d)
    if (conclusions := message.conclusions) is not None:
        columns = ("standard_deviations", "lower", "upper")
        _check_columns(
            conclusions, d, *(name for name in columns if getattr(conclusions, name) is not None)
        )
        _check_items("suspects", [suspect.item for suspect in conclusions.suspects], d)
    return body


def read_certificate(answer: Answer, questions: int) -> JsonObject:
    """Read POST /rounds/{id}/certificate."""
    message, body = _read(certificates.Certified, answer)
    d = len(message.items)
    _check_columns(message, d, "lower", "upper")
    if len(message.answers) != questions:
        raise InvalidAnswerError(
            f"answers must be those of the {questions} questions, not {len(message.answers)}"
        )
    for each in message.answers:
        for name in ("items", "ahead", "certain", "possible"):
            _check_items(name, getattr(each, name, []), d)
    return body


def body_of(model: type[Message]) -> Callable[[Answer], JsonObject]:
    """Return a reader of the bodies of a model that need no further checks."""
    return lambda answer: _read(model, answer)[1]


def read_plan(answer: Answer) -> JsonObject:
    """Read GET /plan."""
    message, body = _read(plans.Plans, answer)
    solved = "standard_error" if message.solved == "error" else message.solved
    for protocol in message.protocols:
        if protocol.reason is None and getattr(protocol, solved) is None:
            raise InvalidAnswerError(f"{solved} of {protocol.protocol} must be a number")
    return body


def _read(model: type[M], answer: Answer) -> tuple[M, JsonObject]:
    """Return the body of a response as its model and as it was sent, fields of later versions
    included.
    """
    body = _object(answer)
    try:
        return model.model_validate(body), body
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False, include_input=False)
    (path, reason), *_ = invalid_fields(errors, body, model.model_json_schema(), show=False)
    raise InvalidAnswerError(_plain(f"{path} {reason}"))


def _object(answer: Answer) -> JsonObject:
    def fail(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        body = json.loads(answer.body, parse_constant=fail)
    except (ValueError, RecursionError):  # not JSON, not Unicode, or nested too deeply
        raise InvalidAnswerError("the answer is not JSON") from None
    if not isinstance(body, dict):
        raise InvalidAnswerError("the answer must be a JSON object")
    return body


def _immutable(message: rounds.Parameters | rounds.Round) -> JsonObject:
    """Return the fields of a `Round`."""
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
        parameters = RoundParameters.named(
            message.protocol,
            message.epsilon,
            message.items,
            message.own,
        )
    except ParameterError as error:
        raise InconsistentRoundError(
            f"no round can have these parameters: {_plain(str(error))}"
        ) from None
    return _common(message, Round) | {"parameters": parameters}


def _common(source: object, target: type) -> JsonObject:
    """Return the fields of a dataclass that an object has as well."""
    names = (each.name for each in fields(target))
    return {name: getattr(source, name) for name in names if hasattr(source, name)}


def _check_thresholds(stated: Mapping[str, str], oracle: FrequencyOracle) -> None:
    """Raise InconsistentRoundError for thresholds other than the protocol's.

    This client does not use them, but clients in other languages would perturb by other rules.
    """
    for name, right in oracle.thresholds.items():
        if stated.get(name, str(right)) != str(right):
            raise InconsistentRoundError(
                f"the round states another threshold {name} than {right}, which {oracle.protocol} "
                "has with its parameters"
            )


def _verdict(message: rounds.RoundSummary) -> JsonObject:
    """Return the verdict of a round, by the name of its field."""
    verdict, d = message.verdict, message.domain_size
    if verdict is None:
        return {"verdict": None}
    top = tuple(TopItem(**vars(each)) for each in verdict.top)
    _check_items("raised", verdict.raised, d)
    _check_items("top", (each.item for each in top), d)
    return {"verdict": Verdict(**vars(verdict) | {"raised": tuple(verdict.raised), "top": top})}


def _check_items(name: str, items: Iterable[int], d: int) -> None:
    if not all(0 <= item < d for item in items):
        raise InvalidAnswerError(f"{name} must be indices of the {d} items")


def _check_columns(message: Message, d: int, *names: str) -> None:
    for name in names:
        if len(getattr(message, name)) != d:
            raise InvalidAnswerError(
                f"{name} has {len(getattr(message, name))} values for {d} items"
            )


def _plain(text: str) -> str:
    """Return the server's text for display: without control characters, and shortened."""
    shown = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: _SHOWN + 1]
    )
    return shown if len(text) <= _SHOWN else shown[:_SHOWN] + "…"
