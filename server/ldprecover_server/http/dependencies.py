"""Dependencies of the routes: the services, the round in the path, and the caller."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.responses import Response

from ldprecover_server.access.access import Access
from ldprecover_server.analysis.analyses import Analyses
from ldprecover_server.errors import InvalidRequestError
from ldprecover_server.http.responses import accepts_gzip, compress
from ldprecover_server.limits import ANONYMOUS_BYTES, Limits
from ldprecover_server.rounds import Rounds
from ldprecover_server.storage import CURRENT, StoredRound
from ldprecover_server.submissions import Submissions

T = TypeVar("T")


@dataclass(frozen=True)
class Services:
    """The services that routes call, as the application composes them."""

    rounds: Rounds
    submissions: Submissions
    analyses: Analyses
    access: Access
    limits: Limits


def get_services(request: Request) -> Services:
    """Return the services of the request's application."""
    services: Services = request.app.state.services
    return services


RoundReference = Annotated[str, Path(alias="round", description="An id, a name, or `current`.")]
"""The round in the path."""


def _round_or_current(request: Request) -> str:
    reference: str = request.path_params.get("round", CURRENT)
    return reference


RoundOrCurrent = Annotated[str, Depends(_round_or_current)]
"""The round in the path, or the current one if the path has none."""


@dataclass(frozen=True)
class Caller:
    """The caller of a request: its key, whether it is valid, and what responses it accepts.

    Of a caller who needs an admin key `key_name` is its name.
    """

    services: Services
    key: str | None
    is_known: bool
    accepts_gzip: bool
    key_name: str | None = None

    @property
    def max_bytes(self) -> int:
        """The largest body that the caller may send to any call."""
        return sys.maxsize if self.is_known else ANONYMOUS_BYTES

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in the caller's thread pool. Raises BusyError, and what it raises."""
        limits = self.services.limits
        pool = limits.keyed if self.is_known else limits.reading
        return await pool.run(function, *arguments)

    async def respond(self, write: Callable[[], Response]) -> Response:
        """Return the response that `write` makes in a thread, where it is compressed if large."""
        return await self.run(lambda: compress(write(), self.accepts_gzip))


_bearer = HTTPBearer(
    scheme_name="Key", auto_error=False, description="A key with the call's scope."
)
_Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


async def _reader(request: Request, credentials: _Credentials) -> Caller:
    allowed = [field.alias for field in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in allowed:
            reason = f"is not known; there are {', '.join(allowed) or 'no parameters'}"
            raise InvalidRequestError([(ascii(name[:60])[1:-1], reason)])
    key = credentials.credentials if credentials else None
    services = get_services(request)
    is_known = key is not None and await services.access.knows(key)
    return Caller(services, key, is_known, accepts_gzip(request))


Reader = Annotated[Caller, Depends(_reader)]
"""The caller of a call that needs a key if the round's `read_access` says so."""


async def _anyone(request: Request) -> Caller:
    return await _reader(request, await _bearer(request))


Anyone = Annotated[Caller, Depends(_anyone)]
"""The caller of a call that needs no key."""


async def _admin(caller: Reader) -> Caller:
    key = await caller.run(caller.services.access.require, caller.key, "admin")
    return replace(caller, key_name=key.name)


Admin = Annotated[Caller, Depends(_admin)]
"""The caller of a call that needs an admin key."""


async def _readable(round: RoundOrCurrent, caller: Reader) -> StoredRound:
    return await caller.run(caller.services.rounds.readable, round, caller.key)


ReadableRound = Annotated[StoredRound, Depends(_readable)]
"""The round in the path, or the current one, which the caller may read.

As a dependency it is read before the other parameters are checked: without a key a call learns
nothing else about the round.
"""

KEY_IF_NEEDED: dict[str, Any] = {"security": [{}]}
"""The `openapi_extra` of the routes of a `Reader`: the key is optional."""
