"""Dependencies of the routes: the services, the round in the path, and the caller."""

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from ldprecover_server.access.access import Access
from ldprecover_server.analysis.analyses import Analyses
from ldprecover_server.analysis.verdicts import Verdicts
from ldprecover_server.errors import ServiceError
from ldprecover_server.http.bodies import BodyMemory
from ldprecover_server.memory_budget import MemoryBudget
from ldprecover_server.metrics import Metrics
from ldprecover_server.results import Results
from ldprecover_server.rounds import RoundInfo, Rounds
from ldprecover_server.settings import Settings
from ldprecover_server.storage import CURRENT
from ldprecover_server.submissions import Submissions
from ldprecover_server.thread_pools import SharedCall, ThreadPool

T = TypeVar("T")

ANONYMOUS_BYTES = 1 << 20
"""The largest body of an anonymous caller."""
DECODED_BYTES = 4 * ANONYMOUS_BYTES
"""Bytes of large bodies of anonymous callers that may be in progress in all processes."""
UNWRITTEN_BYTES = 16 << 20
"""Bytes of results that wait for a thread to write them, of anonymous callers."""
_LARGE_ITEMS = 4096
"""Items of a round from which on its responses are written one at a time."""


@dataclass(frozen=True)
class Services:
    """The services that routes call, as the application composes them."""

    settings: Settings
    rounds: Rounds
    submissions: Submissions
    results: Results
    analyses: Analyses
    verdicts: Verdicts
    access: Access
    bodies: BodyMemory
    decoded: MemoryBudget
    """For large bodies of anonymous callers, from decoding to the response. Decoded they take up to
    20 times the memory, and an analysis may wait for minutes with them."""
    unwritten: MemoryBudget
    """For results of anonymous callers that wait for a thread to write them."""
    writing: threading.Lock
    submitting: ThreadPool
    """For the lookups of submissions."""
    reading: ThreadPool
    """For anonymous callers."""
    keyed: ThreadPool
    """For callers with a key."""
    readiness: SharedCall[ServiceError | None]
    """Returns why a submission could not be stored now, or None."""
    metrics: Metrics
    scrape: SharedCall[bytes]
    """Returns the metrics in Prometheus' text format."""

    def write(self, round: RoundInfo) -> AbstractContextManager[object]:
        """Return the context in which a response with a round's items is written.

        The items, columns and text of a large one take 100 MiB, so one is written at a time.
        """
        return self.writing if round.oracle.domain_size >= _LARGE_ITEMS else nullcontext()


def get_services(request: Request) -> Services:
    """Return the services of the request's application."""
    services: Services = request.app.state.services
    return services


RoundReference = Annotated[str, Path(alias="round", description="An id, a name, or `current`.")]
"""The round in the path."""


def round_or_current(request: Request) -> str:
    """Return the round in the path, or the current one if the path has none."""
    reference: str = request.path_params.get("round", CURRENT)
    return reference


RoundOrCurrent = Annotated[str, Depends(round_or_current)]
"""The round in the path, or the current one if the path has none."""


@dataclass(frozen=True)
class Caller:
    """The caller of a request: its key, and whether the key is valid."""

    services: Services
    key: str | None
    is_known: bool

    @property
    def max_bytes(self) -> int:
        """The largest body that the caller may send to any call."""
        return sys.maxsize if self.is_known else ANONYMOUS_BYTES

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in the caller's thread pool. Raises BusyError, and what it raises."""
        pool = self.services.keyed if self.is_known else self.services.reading
        return await pool.run(function, *arguments)

    async def read(self, round: str) -> RoundInfo:
        """Return a round that the caller may read. Raises as `Results.readable` does."""
        return await self.run(self.services.results.readable, round, self.key)


async def get_caller(request: Request) -> Caller:
    """Return the caller, who may be anonymous; the key is looked up once per request."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        credentials = await _bearer(request)
        key = credentials.credentials if credentials else None
        services = get_services(request)
        caller = Caller(services, key, await services.access.knows(key))
        request.state.caller = caller
    return caller


async def require_admin(request: Request) -> Caller:
    """Return the caller. Raises UnauthorizedError or ForbiddenError without an admin key."""
    caller = await get_caller(request)
    await caller.run(caller.services.access.require, caller.key, "admin")
    return caller


SECURITY_SCHEME: Final = "Key"
_bearer = HTTPBearer(
    scheme_name=SECURITY_SCHEME, auto_error=False, description="A key with the call's scope."
)
_Documented = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def _reader(request: Request, credentials: _Documented) -> Caller:
    return await get_caller(request)


async def _admin(request: Request, credentials: _Documented) -> Caller:
    return await require_admin(request)


Anyone = Annotated[Caller, Depends(get_caller)]
"""The caller of a call that needs no key."""
Reader = Annotated[Caller, Depends(_reader)]
"""The caller of a call that needs a key if the round's `read_access` says so."""
Admin = Annotated[Caller, Depends(_admin)]
"""The caller of a call that needs an admin key."""

KEY_IF_NEEDED: dict[str, Any] = {"security": [{}]}
"""The `openapi_extra` of the routes of a `Reader`: the key is optional."""
