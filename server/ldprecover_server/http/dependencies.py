"""What routes share: the rooms they call, the round a path means, who calls, and what a body
says.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from anyio import to_thread
from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from ldprecover.evidence.quarantine import Quarantined
from ldprecover_server.access.access import Access
from ldprecover_server.analysis.analyses import Analyses
from ldprecover_server.analysis.jobs import Jobs
from ldprecover_server.errors import ServiceError
from ldprecover_server.http.bodies import THREAD_BYTES, Body, BodyLimit, BodyMemory
from ldprecover_server.http.csv import MEDIA_TYPE as CSV
from ldprecover_server.http.decoding import decode
from ldprecover_server.http.messages import ProblemDetails, SetAside
from ldprecover_server.http.problems import MEDIA_TYPE
from ldprecover_server.memory_budget import MemoryBudget
from ldprecover_server.metrics import Metrics
from ldprecover_server.results import Results
from ldprecover_server.rounds import Rounds
from ldprecover_server.settings import Settings
from ldprecover_server.storage import CURRENT
from ldprecover_server.submissions import Submissions
from ldprecover_server.thread_pools import ThreadPool

KEY, OPTIONAL_KEY = "Key", "OptionalKey"
"""Names of the security schemes: of a call that needs a key, and of one that may."""


T = TypeVar("T")

_ANONYMOUS_BYTES = 1 << 20
DECODED_BYTES = 4 * _ANONYMOUS_BYTES
"""Bytes of large bodies of anonymous callers that may be in progress."""
_UNCOUNTED_BYTES = 1 << 10
"""Smaller bodies are accepted even if others use that memory."""


@dataclass(frozen=True)
class Services:
    """What routes call; the application puts it together."""

    settings: Settings
    rounds: Rounds
    submissions: Submissions
    results: Results
    analyses: Analyses
    jobs: Jobs
    access: Access
    metrics: Metrics
    bodies: BodyMemory
    decoded: MemoryBudget
    """For large bodies of anonymous callers, from decoding to the response. Decoded they take up to
    20 times the memory, and an analysis may wait for minutes with them."""
    submitting: ThreadPool
    """For what a submission has to look up."""
    reading: ThreadPool
    """For callers without a key."""
    keyed: ThreadPool
    """For callers with one."""
    operating: ThreadPool
    """For whoever watches over the server."""


def get_services(request: Request) -> Services:
    """Return the rooms of the app that a request came to."""
    services: Services = request.app.state.services
    return services


def set_aside(quarantined: Quarantined | None) -> SetAside | None:
    """Return how many reports are set aside, as answers have it."""
    return None if quarantined is None else SetAside(quarantined.sizes, quarantined.seeds)


_ROUND = "An id, a name, or `current`."

Named = Annotated[str, Path(alias="round", description=_ROUND)]
"""The round in the path."""


def _current_or_named(request: Request) -> str:
    identifier: str = request.path_params.get("round", CURRENT)
    return identifier


CurrentOrNamed = Annotated[str, Depends(_current_or_named)]
"""The round in the path, or the current one where the path names none."""

_needed = HTTPBearer(
    scheme_name=KEY, auto_error=False, description="A key, of the scope that the call needs."
)
_optional = HTTPBearer(scheme_name=OPTIONAL_KEY, auto_error=False)

_Needed = Annotated[HTTPAuthorizationCredentials | None, Depends(_needed)]
_Optional = Annotated[HTTPAuthorizationCredentials | None, Depends(_optional)]


@dataclass(frozen=True)
class _Caller:
    """Who calls: the key that came, whether it is one, and the lane for such as have or have not
    one.
    """

    key: str | None
    is_known: bool
    lane: ThreadPool

    @property
    def largest(self) -> int:
        """Bytes that a body may have at most, however large the round is."""
        return sys.maxsize if self.is_known else _ANONYMOUS_BYTES

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in a thread of the caller's lane. Raises BusyError, and what it
        raises.
        """
        return await self.lane.run(function, *arguments)


async def _called(request: Request, key: str | None) -> _Caller:
    services = get_services(request)
    known = await services.access.knows(key)
    return _Caller(key, known, services.keyed if known else services.reading)


async def _anyone(request: Request) -> _Caller:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return await _called(request, key.strip() if scheme.lower() == "bearer" else None)


Anyone = Annotated[_Caller, Depends(_anyone)]
"""Who calls what needs no key."""


async def _caller(request: Request, credentials: _Optional) -> _Caller:
    return await _called(request, credentials.credentials if credentials else None)


Caller = Annotated[_Caller, Depends(_caller)]
"""Who calls what may need a key."""


async def _admin(request: Request, credentials: _Needed) -> _Caller:
    caller = await _called(request, credentials.credentials if credentials else None)
    await caller.run(get_services(request).access.require, caller.key, "admin")
    return caller


Admin = Annotated[_Caller, Depends(_admin)]
"""Who calls, with an admin key; everyone else is refused before a body is read."""


async def read(
    request: Request,
    type: type[T],
    largest: int,
    caller: _Caller,
    *,
    optional: bool = False,
    held: ExitStack | None = None,
) -> T | None:
    """Return what the body of a request says, of at most so many bytes; None where there is none.

    An `optional` one may also be null. A call that takes bodies of callers without a key gives
    `held`, and closes it when it needs no more what was said.

    Raises InvalidRequestError for what does not fit `type`, BusyError, and what `Body.read` raises.
    """
    services = get_services(request)
    body = Body(services.bodies, request.scope, request.receive)
    try:
        sent = await body.read(
            BodyLimit(min(largest, services.settings.max_body_bytes), largest, not caller.is_known)
        )
        if not sent or (optional and sent.strip() == b"null"):
            return None
        if held is not None and not caller.is_known and len(sent) > _UNCOUNTED_BYTES:
            held.enter_context(services.decoded.hold(len(sent)))
        if len(sent) > THREAD_BYTES:
            return await to_thread.run_sync(decode, type, sent, limiter=services.bodies.threads)
        return decode(type, sent)
    finally:
        body.release()


def described(
    answer: type | None,
    *refusals: type[ServiceError],
    takes: type | None = None,
    later: type | None = None,
    as_csv: bool = False,
    status: int = 200,
    **options: Any,
) -> dict[str, Any]:
    """Return what the framework is told of a route, so that the API reference describes it.

    `answer` and `takes` are the JSON of the answer and of the body, `later` that of an answer
    before the work is done, `as_csv` tells that the answer may be CSV too, `refusals` what the call
    itself may refuse.
    """
    problem = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}}}
    responses: dict[int | str, dict[str, Any]] = {}
    for refusal in sorted(refusals, key=lambda refusal: (refusal.status, refusal.slug)):
        known = responses.setdefault(refusal.status, {"description": "", "content": problem})
        known["description"] += f"{', ' if known['description'] else ''}{refusal.slug}"
    if answer is not None:
        content: dict[str, Any] = {"application/json": {"schema": _reference(answer)}}
        if as_csv:
            content[CSV] = {"schema": {"type": "string"}}
        responses[status] = {"content": content}
    if later is not None:
        content = {"application/json": {"schema": _reference(later)}}
        responses[202] = {"description": "The work goes on", "content": content}
    told: dict[str, Any] = {
        "status_code": status,
        "response_model": None,
        "responses": responses,
        **options,
    }
    if takes is not None:
        told["openapi_extra"] = {
            "requestBody": {"content": {"application/json": {"schema": _reference(takes)}}}
        }
    return told


def _reference(type: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{type.__name__}"}
