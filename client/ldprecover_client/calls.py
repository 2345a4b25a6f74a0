"""Calls of the HTTP interface: one request each, and how its response is parsed.

Nothing here knows an HTTP library.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from pydantic import ValidationError
from pydantic_core import from_json

from ldprecover.protocols.wire import MEDIA_TYPE
from ldprecover_client.errors import (
    ArgumentError,
    InconsistentRoundError,
    InvalidAnswerError,
    RefusedError,
)
from ldprecover_interface import paths
from ldprecover_interface.base import REFERENCE as _REFERENCE
from ldprecover_interface.base import Message
from ldprecover_interface.invalid_fields import invalid_fields
from ldprecover_interface.problems import MEDIA_TYPE as _PROBLEM
from ldprecover_interface.submissions import Accepted

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
        return _problem(object_in(answer), answer.status)
    except InvalidAnswerError:
        return None


def _problem(body: JsonObject, status: int) -> RefusedError:
    text = {
        name: plain(body[name])
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
        (plain(name), plain(reason))
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
        raise InvalidAnswerError(plain(f"{path} {reason}"))

    return read


def object_in(answer: HttpResponse) -> JsonObject:
    """Return the JSON object in a response. Raises InvalidAnswerError."""
    try:
        body = from_json(answer.body, allow_inf_nan=False)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise InvalidAnswerError("the answer must be a JSON object")
    return body


def plain(text: str) -> str:
    """Return the server's text for display: without control characters, and shortened."""
    shown = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: _SHOWN + 1]
    )
    return shown if len(text) <= _SHOWN else shown[:_SHOWN] + "…"


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request of the interface.

    `read` parses a response with `status`, or with `status_if_repeated`. A `repeatable` call is
    idempotent: it may be sent again if its outcome is unknown.
    """

    method: str
    path: str
    read: Callable[[HttpResponse], T]
    _: KW_ONLY
    status: int = 200
    status_if_repeated: int | None = None
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
        if answer.status not in (self.status, self.status_if_repeated):
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


def submission(
    reference: str, packed: bytes, key: str, *, ticket: str | None = None
) -> Call[Accepted]:
    """POST /rounds/{id}/reports: packed reports under an idempotency key or a ticket."""
    if not _KEY.fullmatch(key):
        raise ArgumentError("an idempotency key must be 1 to 64 characters from ASCII 0x21 to 0x7E")
    if ticket is None:
        headers = {"Content-Type": MEDIA_TYPE, "Idempotency-Key": key}
    else:
        headers = {"Content-Type": MEDIA_TYPE, "Authorization": f"Ticket {validate_ticket(ticket)}"}
    return Call(
        "POST",
        path_of(reference, paths.REPORTS),
        reader(Accepted),
        status=202,
        content=packed,
        headers=headers,
    )


def validate_ticket(ticket: str) -> str:
    """Return a ticket without white space around it. Raises ArgumentError if it is malformed."""
    ticket = ticket.strip()
    if not TICKET.fullmatch(ticket):
        raise ArgumentError(
            "a ticket must be 22 characters, a dot, and 22 more, from A-Z a-z 0-9 _ -"
        )
    return ticket


def path_of(reference: str, rest: str = "", base: str = paths.ROUNDS) -> str:
    """Return the path of a round or form, or of something below it. Raises ArgumentError."""
    return f"{base}/{check_reference(reference)}{rest}"


def page_of(base: str, before: str | None) -> str:
    """Return the path of the first page of a list, or of the one after the id `before`."""
    return base if before is None else f"{base}?before={check_reference(before)}"


def check_reference(reference: str) -> str:
    """Return a reference to a round or form. Raises ArgumentError if no path can have it."""
    if not isinstance(reference, str) or not REFERENCE.fullmatch(reference):
        raise ArgumentError(
            'a round must be named by its id, its name or "current", a form by its id or its name'
        )
    return reference


def query_of(path: str, fields: Mapping[str, Any]) -> str:
    """Return a path with a query. Raises ArgumentError for a number that is not finite."""
    check_finite(fields)
    return f"{path}?{urlencode(fields, doseq=True)}"


def check_finite(fields: Mapping[str, Any]) -> None:
    """Raise ArgumentError for a number that is not finite."""
    for name, value in fields.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ArgumentError(f"{name} must be a finite number, not {value}")


def _plain_number(value: Any) -> Any:
    """Return a number of numpy, an array, a fraction or a decimal as JSON has it."""
    return value.tolist() if hasattr(value, "tolist") else float(value)


def post(
    path: str, read: Callable[[HttpResponse], T], fields: Mapping[str, Any], **options: Any
) -> Call[T]:
    """Return a call with a JSON body; `options` are further fields of the call.

    Raises ArgumentError for fields that JSON cannot hold.
    """
    check_finite(fields)
    try:
        content = json.dumps(fields, allow_nan=False, default=_plain_number).encode()
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the fields of a request must be JSON: {error}") from None
    options["headers"] = {"Content-Type": "application/json"}
    return Call("POST", path, read, content=content, **options)
