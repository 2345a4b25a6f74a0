"""What a server's answers must look like: read, checked and typed. Knows no HTTP library.

Nothing here trusts the server. An answer with a field missing, of another type, outside its range
or at odds with the rest is an InvalidAnswerError that names it, whatever the server is or was.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict

from ldprecover import FrequencyOracle, ParameterError, RoundExport, RoundParameters
from ldprecover.evidence.quarantine import Quarantined
from ldprecover.protocols import PROTOCOLS, own_parameters
from ldprecover_client.errors import (
    InconsistentRoundError,
    InvalidAnswerError,
    RefusedError,
    UnknownProtocolError,
)

_PROBLEM = "application/problem+json"
_TOLERANCE = (
    1e-9  # of p and q: another language's exp may differ in the last bits, never by this much
)
_SHOWN = 300  # characters of a stranger's text that are shown
_MOST_FIELDS = 20  # of a problem that are kept

REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,127}")
"""What a round may be named by in a path."""

TICKET = re.compile(r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{22}")
"""The form of a ticket."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer: status, headers with lower-case names, whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Round:
    """A round's immutable part, as a server states it.

    Raises InconsistentRoundError where p, q or digest are not those of the parameters: the server
    then counts by other rules than the ones a user would perturb by. `access` says who may submit,
    `read_access` who may read the results, `retention` how long reports are kept once counted,
    `series` which rounds it is compared with, None for none.
    """

    id: str
    name: str
    parameters: RoundParameters
    p: float
    q: float
    digest: str
    access: str = field(default="open", kw_only=True)
    read_access: str = field(default="public", kw_only=True)
    retention: str = field(default="forever", kw_only=True)
    series: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        oracle = self.parameters.oracle
        for name, stated, right in (("p", self.p, oracle.p), ("q", self.q, oracle.q)):
            if not math.isclose(stated, right, rel_tol=_TOLERANCE):
                raise InconsistentRoundError(
                    f"the round states {name} = {stated}, but {oracle.protocol} with its "
                    f"parameters has {right}"
                )
        if oracle.listed_seeds is not None and self.access != "ticket":
            raise InconsistentRoundError(
                "the round gives seeds, which tickets pick, and takes reports without"
            )
        if self.digest != self.parameters.digest:
            raise InconsistentRoundError("the round's digest is not that of its parameters")


@dataclass(frozen=True)
class RoundSummary:
    """A round without its items, as a list of rounds has it; p, q and digest are as stated,
    unchecked.

    p and q are None where the server has not loaded the plugin of the round's protocol.

    `own` has every parameter that is some protocols' own by its name, None for one that is not the
    round's.
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
    series: str | None
    opened_at: str
    closed_at: str | None
    canaries: tuple[int, ...] = ()
    quarantine: bool = False
    quarantined: Quarantined | None = None


@dataclass(frozen=True)
class RoundStatus(Round):
    """A round with its state ("open" or "closed"), the number n of reports counted, and its times
    (ISO 8601).

    `quarantined` are the reports that were set aside; None for a round that sets none aside.
    """

    state: str
    n: int
    opened_at: str
    closed_at: str | None
    quarantined: Quarantined | None = field(default=None, kw_only=True)

    @property
    def summary(self) -> RoundSummary:
        """The same without the items."""
        parameters, shared = (
            self.parameters,
            {field.name for field in fields(RoundSummary)} & vars(self).keys(),
        )
        return RoundSummary(
            protocol=parameters.protocol,
            epsilon=parameters.epsilon,
            domain_size=len(parameters.items),
            own={**dict.fromkeys(own_parameters()), **parameters.own},
            canaries=parameters.canaries,
            quarantine=parameters.quarantine,
            **{name: getattr(self, name) for name in shared},
        )


class Submitted(TypedDict):
    """The answer to a submission: `duplicate` says that it had been stored before, under the same
    key.
    """

    round: str
    accepted: int
    duplicate: bool


JOB_STATES = ("queued", "running", "done", "failed", "cancelled")
"""What a job may be; the last three are for good."""


@dataclass(frozen=True)
class JobStatus:
    """What a server says of a recovery it works out on its own; `progress` is from 0 to 1.

    `result` is the recovery, of a job that is done; `problem` why there is none, of one that
    failed.
    """

    id: str
    state: str
    progress: float
    result: dict[str, Any] | None = field(default=None, repr=False)
    problem: RefusedError | None = None


def problem_in(answer: Answer) -> RefusedError | None:
    """Return the problem (RFC 9457) an answer holds, None if it holds none."""
    if answer.headers.get("content-type", "").partition(";")[0].strip().lower() != _PROBLEM:
        return None
    try:
        body = _object(answer)
    except InvalidAnswerError:
        return None
    return _problem(body, answer.status)


def _problem(body: dict[str, Any], status: int) -> RefusedError:
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
        _fields(body),
    )


def _fields(body: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the fields a problem names, each with its reason; whatever else there is is left
    out.
    """
    found = body.get("errors")
    pairs = (
        [(e.get("field"), e.get("reason")) for e in found if isinstance(e, dict)]
        if isinstance(found, list)
        else []
    )
    return tuple(
        (_plain(f), _plain(r))
        for f, r in pairs[:_MOST_FIELDS]
        if isinstance(f, str) and isinstance(r, str)
    )


def read_nothing(answer: Answer) -> None:
    """Read an answer whose status says all."""


def read_version(answer: Answer) -> dict[str, Any]:
    """Read GET /version: its text `version`, and whatever else it says."""
    body = _object(answer)
    _text(body, "version")
    return body


def read_round(answer: Answer) -> Round:
    """Read GET /rounds/{id}/parameters."""
    body = _object(answer)
    round_ = Round(**_immutable(body))
    _check_thresholds(body, round_.parameters.oracle)
    return round_


def read_status(answer: Answer) -> RoundStatus:
    """Read a round with its state, as opening, showing and closing it answer."""
    return _status(_object(answer))


def read_rounds(answer: Answer) -> tuple[RoundSummary, ...]:
    """Read GET /rounds: {"rounds": [...]}."""
    rounds = _list(_object(answer), "rounds")
    if not all(isinstance(row, dict) for row in rounds):
        raise InvalidAnswerError("rounds must be an array of objects")
    return tuple(_summary(row) for row in rounds)


def read_submitted(answer: Answer) -> Submitted:
    """Read the answer to a submission."""
    body = _object(answer)
    if type(body.get("duplicate")) is not bool:
        raise InvalidAnswerError("duplicate must be true or false")
    return {
        "round": _text(body, "round"),
        "accepted": _integer(body, "accepted", 1),
        "duplicate": body["duplicate"],
    }


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
            f"{len(set(tickets))} tickets came for the {count} that were asked for"
        )
    return tickets


def read_frequencies(answer: Answer) -> dict[str, Any]:
    """Read GET /rounds/{id}/frequencies; with n = 0 the estimates are None."""
    body = _object(answer)
    for name in ("round", "protocol"):
        _text(body, name)
    for name in ("epsilon", "p", "q"):
        _number(body, name)
    n, d = _integer(body, "n", 0), len(_labels(body))
    _door(body, d)
    _quarantined(body)
    _column(body, "counts", d, lambda value: type(value) is int and 0 <= value <= n)
    if n:
        _columns(body, d, "frequencies", "standard_errors")
        _number(body, "sum")
    elif any(body.get(name) is not None for name in ("frequencies", "standard_errors", "sum")):
        raise InvalidAnswerError("without reports, the estimates must be null")
    return body


def read_export(answer: Answer) -> dict[str, Any]:
    """Read GET /rounds/{id}/export, and verify its checksum."""
    body = _object(answer)
    try:
        RoundExport.from_dict(body)
    except ParameterError as error:
        raise InvalidAnswerError(str(error)) from error
    return body


def read_recovery(answer: Answer) -> dict[str, Any]:
    """Read the answer of POST /rounds/{id}/recover."""
    return _recovery(_object(answer))


def read_recovery_at_once(answer: Answer) -> JobStatus:
    """Read the answer of a server that keeps no jobs, or that had no need of one."""
    return JobStatus("", "done", 1.0, read_recovery(answer))


def read_job(answer: Answer) -> JobStatus:
    """Read a job, as starting it and asking for it answer."""
    body = _object(answer)
    id_, state, progress = _reference(body, "job"), body.get("state"), _number(body, "progress")
    if state not in JOB_STATES:
        raise InvalidAnswerError(f"state must be one of {', '.join(JOB_STATES)}")
    if not 0 <= progress <= 1:
        raise InvalidAnswerError("progress must be a number from 0 to 1")
    came: Any = body.get({"done": "result", "failed": "problem"}.get(state, ""), {})
    if not isinstance(came, dict):
        raise InvalidAnswerError(f"a job that is {state} does not say what came of it")
    result = _recovery(came) if state == "done" else None
    problem = _problem(came, _integer(came, "status", 400)) if state == "failed" else None
    return JobStatus(id_, state, progress, result, problem)


def _recovery(body: dict[str, Any]) -> dict[str, Any]:
    for name in ("round", "method"):
        _text(body, name)
    for name in ("eta", "malicious_sum"):
        _number(body, name)
    _integer(body, "n", 1)
    d = len(_labels(body))
    _columns(body, d, "poisoned", "malicious", "genuine", "recovered")
    if not all(type(target) is int and 0 <= target < d for target in _list(body, "targets")):
        raise InvalidAnswerError("targets must be an array of item indices")
    concluded = body.get("conclusions")  # of some methods
    if concluded is not None:
        _check_conclusions(concluded, d)
    return body


def _check_conclusions(concluded: Any, d: int) -> None:
    if not isinstance(concluded, dict):
        raise InvalidAnswerError("conclusions must be an object")
    for name in ("standard_deviations", "lower", "upper"):
        if concluded.get(name) is not None:
            _columns(concluded, d, name)
    for name in ("attack_probability", "beta", "beta_low", "beta_high", "history_weight"):
        if concluded.get(name) is not None:
            _number(concluded, name)
    for row in _objects(concluded, "suspects"):
        if _integer(row, "item", 0) >= d:
            raise InvalidAnswerError("the suspects must be items")
        _text(row, "label")
        _number(row, "probability")
    for row in _objects(concluded, "dropped"):
        _text(row, "screen")
        _text(row, "what")
        _integer(row, "reports", 0)


def read_methods(answer: Answer) -> dict[str, Any]:
    """Read GET /rounds/{id}/methods."""
    return _rows(answer, "methods", texts=("name", "summary"))


def read_stats(answer: Answer) -> dict[str, Any]:
    """Read GET /rounds/{id}/stats."""
    body = _object(answer)
    _text(body, "round")
    for name in ("reports", "duplicates"):
        _integer(body, name, 0)
    _quarantined(body)
    refusals = body.get("refusals")
    if not isinstance(refusals, dict):
        raise InvalidAnswerError("refusals must be an object")
    for name in refusals:
        _integer(refusals, name, 0)
    return body


def read_alarms(answer: Answer) -> dict[str, Any]:
    """Read GET /rounds/{id}/alarms."""
    return _rows(
        answer, "alarms", texts=("name", "meaning"), numbers=("statistic", "threshold", "rate")
    )


def read_suspects(answer: Answer) -> dict[str, Any]:
    """Read GET /rounds/{id}/suspects."""
    return _rows(answer, "suspects", texts=("label",), numbers=("before", "now", "z", "p_value"))


def read_plan(answer: Answer) -> dict[str, Any]:
    """Read GET /plan."""
    body = _object(answer)
    solved = _text(body, "solved")
    name = {"error": "standard_error"}.get(solved, solved)
    for row in _objects(body, "protocols"):
        _text(row, "protocol")
        if row.get("reason") is not None:
            _text(row, "reason")
            continue
        _number(row, name)
        for each in _objects(row, "gains"):
            _text(each, "attack")
    return body


def _rows(
    answer: Answer, field: str, *, texts: Sequence[str], numbers: Sequence[str] = ()
) -> dict[str, Any]:
    body = _object(answer)
    _text(body, "round")
    for row in _objects(body, field):
        for name in texts:
            _text(row, name)
        for name in numbers:
            _number(row, name)
    return body


def _object(answer: Answer) -> dict[str, Any]:
    def fail(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        body = json.loads(answer.body, parse_constant=fail)
    except (ValueError, RecursionError):  # not JSON, not Unicode, or nested to exhaust the parser
        raise InvalidAnswerError("the answer is not JSON") from None
    if not isinstance(body, dict):
        raise InvalidAnswerError("the answer must be a JSON object")
    return body


def _reference(body: dict[str, Any], name: str) -> str:
    """Return an id that can stand in a path: one that cannot must not get into a ledger."""
    if not REFERENCE.fullmatch(_text(body, name)):
        raise InvalidAnswerError(f"{name} must be an id of letters, digits and . _ ~ -")
    return str(body[name])


def _immutable(body: dict[str, Any]) -> dict[str, Any]:
    protocol, epsilon, items = _text(body, "protocol"), _number(body, "epsilon"), _labels(body)
    own, kind = _own(body), PROTOCOLS.get(protocol)
    if kind is None:
        raise UnknownProtocolError(
            f"protocol {_plain(protocol)!r} is not known here: install and load the plugin that "
            "has it"
        )
    if kind.parameter is not None and own[kind.parameter] is None:
        raise InvalidAnswerError(
            f"an {protocol} round states its {kind.parameter}; a client never computes it"
        )
    try:
        parameters = RoundParameters.named(protocol, epsilon, items, own, **_door(body, len(items)))
    except ParameterError as error:
        raise InconsistentRoundError(
            f"no round can have these parameters: {_plain(str(error))}"
        ) from None
    return {
        "parameters": parameters,
        "p": _number(body, "p"),
        "q": _number(body, "q"),
        **_stated(body),
    }


def _check_thresholds(body: dict[str, Any], oracle: FrequencyOracle) -> None:
    """Raise InconsistentRoundError where a round states other thresholds than its protocol has.

    Nobody draws by them here; but clients that do would perturb by other rules. A server that does
    not know of them states none.
    """
    stated = body.get("thresholds", {})
    if not isinstance(stated, dict):
        raise InvalidAnswerError("thresholds must be an object")
    for name, right in oracle.thresholds.items():
        if stated.get(name, str(right)) != str(right):
            raise InconsistentRoundError(
                f"the round states another threshold {name} than {right}, which {oracle.protocol} "
                "has with its "
                "parameters"
            )


def _own(body: dict[str, Any]) -> dict[str, int | None]:
    """Return the parameters that are some protocols' own, by name; None for one that is not the
    round's.
    """
    return {
        name: None if body.get(name) is None else _integer(body, name, 0)
        for name in own_parameters()
    }


def _door(body: dict[str, Any], d: int) -> dict[str, Any]:
    """Return a round's canaries, as indices of its d items, and whether it sets reports aside.

    A server that does not know of either says nothing of it.
    """
    canaries = [] if body.get("canaries") is None else _list(body, "canaries")
    if not all(type(item) is int and 0 <= item < d for item in canaries):
        raise InvalidAnswerError("canaries must be an array of item indices")
    quarantine = body.get("quarantine", False)
    if type(quarantine) is not bool:
        raise InvalidAnswerError("quarantine must be true or false")
    return {"canaries": tuple(canaries), "quarantine": quarantine}


def _quarantined(body: dict[str, Any]) -> Quarantined | None:
    found = body.get("quarantined")
    if found is None:
        return None
    if not isinstance(found, dict):
        raise InvalidAnswerError("quarantined must be an object")
    return Quarantined(
        _integer(found, "sizes", 0),
        None if found.get("seeds") is None else _integer(found, "seeds", 0),
    )


def _stated(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": _reference(body, "id"),
        "name": _text(body, "name"),
        "digest": _text(body, "digest"),
        "access": _text({"access": "open"} | body, "access"),
        "read_access": _text({"read_access": "public"} | body, "read_access"),
        "retention": _text({"retention": "forever"} | body, "retention"),
        "series": None if body.get("series") is None else _text(body, "series"),
    }


def _mutable(body: dict[str, Any]) -> dict[str, Any]:
    if body.get("state") not in ("open", "closed"):
        raise InvalidAnswerError('state must be "open" or "closed"')
    return {
        "state": body["state"],
        "n": _integer(body, "n", 0),
        "quarantined": _quarantined(body),
        "opened_at": _text(body, "opened_at"),
        "closed_at": None if body.get("closed_at") is None else _text(body, "closed_at"),
    }


def _status(body: dict[str, Any]) -> RoundStatus:
    return RoundStatus(**_immutable(body), **_mutable(body))


def _summary(body: dict[str, Any]) -> RoundSummary:
    d = _integer(body, "domain_size", 2)
    return RoundSummary(
        protocol=_text(body, "protocol"),
        epsilon=_number(body, "epsilon"),
        domain_size=d,
        **_door(body, d),
        own=_own(body),
        p=None if body.get("p") is None else _number(body, "p"),
        q=None if body.get("q") is None else _number(body, "q"),
        **_stated(body),
        **_mutable(body),
    )


def _plain(text: str) -> str:
    """Return a stranger's text fit to be shown: no control characters, not endless."""
    shown = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: _SHOWN + 1]
    )
    return shown if len(text) <= _SHOWN else shown[:_SHOWN] + "…"


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidAnswerError(f"{name} must be text")
    return value


def _integer(body: dict[str, Any], name: str, least: int) -> int:
    value = body.get(name)
    if type(value) is not int or not least <= value < 1 << 63:
        raise InvalidAnswerError(f"{name} must be an integer of at least {least}")
    return value


def _is_number(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _number(body: dict[str, Any], name: str) -> float:
    value = body.get(name)
    if not _is_number(value):
        raise InvalidAnswerError(f"{name} must be a finite number")
    return float(value)  # type: ignore[arg-type]


def _list(body: dict[str, Any], name: str) -> list[Any]:
    value = body.get(name)
    if not isinstance(value, list):
        raise InvalidAnswerError(f"{name} must be an array")
    return value


def _objects(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = _list(body, name)
    if not all(isinstance(row, dict) for row in rows):
        raise InvalidAnswerError(f"{name} must be an array of objects")
    return rows


def _labels(body: dict[str, Any]) -> list[str]:
    items = _list(body, "items")
    if not all(isinstance(label, str) for label in items):
        raise InvalidAnswerError("items must be an array of strings")
    return items


def _column(body: dict[str, Any], name: str, d: int, fits: Callable[[Any], bool]) -> None:
    column = _list(body, name)
    if len(column) != d:
        raise InvalidAnswerError(f"{name} has {len(column)} values for {d} items")
    for position, value in enumerate(column):
        if not fits(value):
            raise InvalidAnswerError(f"{name}: the value of item {position} is outside its range")


def _columns(body: dict[str, Any], d: int, *names: str) -> None:
    for name in names:
        _column(body, name, d, _is_number)
