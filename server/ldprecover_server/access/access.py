"""Who may do what: keys looked up, their scopes checked, and which reports a round takes from
whom.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from anyio import to_thread

from ldprecover import ParameterError
from ldprecover.rounds.tickets import ticket_draw
from ldprecover_server.access import tickets
from ldprecover_server.access.rates import ReportRates
from ldprecover_server.errors import (
    ForbiddenError,
    InvalidTicketError,
    StoreUnavailableError,
    UnauthorizedError,
)
from ldprecover_server.keys import (
    NAME,
    SCOPES,
    HashedKey,
    allows,
    find_key,
    hash_key,
    make_key,
    make_name,
)
from ldprecover_server.storage import Storage

CACHE_SECONDS = 1.0
"""How long submissions go by the keys read last: so long may a revoked `report` key live on."""

_SETTINGS_KEY = "settings"


@dataclass(frozen=True)
class Sender:
    """Who submits: the holder of a key, or of a ticket, whose submission has its key by that, or
    anyone.

    `draw` is the ticket's, by which it picks a seed where seeds are given.
    """

    key: HashedKey | None = None
    submission_key: str | None = None
    draw: int | None = None


ANYONE = Sender()
"""Who submits to an open round without a key."""


class Access:
    """The keys of a server: those in its database, and the admin key of its settings.

    Calls but submissions read the keys from the database each time, so that a revocation holds at
    once in every process. Submissions go by a copy of at most `CACHE_SECONDS`; a key that is not in
    it is looked for in the database before it is refused.
    """

    def __init__(
        self,
        store: Storage,
        settings_key: str | None,
        *,
        rates: ReportRates | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._settings = (
            [HashedKey(_SETTINGS_KEY, "admin", hash_key(settings_key))] if settings_key else []
        )
        self._rates = rates
        self._clock = clock
        self._ticket_secret: bytes | None = None
        self._copy: list[HashedKey] = []
        self._read_at = -CACHE_SECONDS
        self._reading: asyncio.Task[None] | None = None

    def require(self, key: str | None, scope: str) -> HashedKey:
        """Return the key if it has this scope. Raises UnauthorizedError or ForbiddenError."""
        return _checked(key, scope, self._known())

    async def require_sender(self, round_id: str, access: str, authorization: str | None) -> Sender:
        """Return who submits to a round, by the value of the header Authorization.

        Raises UnauthorizedError for a key that is unknown or revoked, also where none is needed,
        ForbiddenError for one that may not submit, and InvalidTicketError for anything but a ticket
        of the round, where it takes tickets.
        """
        if authorization is None and access == "open":
            return ANYONE
        scheme, _, value = (authorization or "").partition(" ")
        value = value.strip()
        if access == "ticket":
            if scheme.lower() != "ticket":
                raise InvalidTicketError(
                    "this round takes reports with tickets alone: send Authorization: Ticket TICKET"
                )
            submission_key = tickets.submission_key(await self._ticket_key(round_id), value)
            return Sender(submission_key=submission_key, draw=ticket_draw(value))
        if scheme.lower() == "ticket":
            raise InvalidTicketError("this round takes no tickets")
        if scheme.lower() != "bearer" or not value:
            raise UnauthorizedError(
                "this submission needs the header Authorization: Bearer KEY with a report key"
            )
        return Sender(key=await self._report_key(value))

    def mint(self, round_id: str, access: str, count: int) -> Iterator[str]:
        """Return new tickets of a round. Raises ParameterError for one that takes none."""
        if access != "ticket":
            raise ParameterError(
                f"access: the round's is {access!r}, and tickets are for rounds of access 'ticket'"
            )
        return tickets.mint(tickets.round_key(self._store.keys.ticket_secret(), round_id), count)

    async def _ticket_key(self, round_id: str) -> bytes:
        if self._ticket_secret is None:
            self._ticket_secret = await to_thread.run_sync(self._store.keys.ticket_secret)
        return tickets.round_key(self._ticket_secret, round_id)

    async def _report_key(self, key: str) -> HashedKey:
        if self._clock() - self._read_at >= CACHE_SECONDS:
            await self._refresh()
        if find_key(key, self._copy) is None:
            await self._refresh()
        return _checked(key, "report", self._copy)

    def take(self, key: HashedKey, reports: int) -> None:
        """Count reports that a key brings. Raises RateLimitedError for more than it may by now."""
        if self._rates is not None:
            self._rates.take(key.hash, reports)

    async def knows(self, key: str | None) -> bool:
        """Tell whether this is a key, of whatever scope, as the copy of the keys has it: it waits
        for nobody else.
        """
        if key is None:
            return False
        if self._clock() - self._read_at >= CACHE_SECONDS:
            await self._refresh()
        return find_key(key, self._copy) is not None

    def ensure_admin_key(self) -> str | None:
        """Make an admin key when there is none; return it this once, for the operator to see."""
        if self._settings or any(key.scope == "admin" for key in self._store.keys.active()):
            return None
        return create_key(self._store, "admin")

    async def _refresh(self) -> None:
        """Read the keys once for all who wait, so that nobody waits for the tries of others before
        his own.

        Raises StoreUnavailableError.
        """
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        try:
            await asyncio.shield(self._reading)  # others wait for it too
        except StoreUnavailableError as error:
            raise StoreUnavailableError(
                str(error)
            ) from None  # a shared one would gather tracebacks

    async def _read(self) -> None:
        began = self._clock()
        try:
            self._copy = await to_thread.run_sync(self._known)
            self._read_at = began
        finally:
            self._reading = None

    def _known(self) -> list[HashedKey]:
        return self._settings + self._store.keys.active()


def _checked(key: str | None, scope: str, known: list[HashedKey]) -> HashedKey:
    if key is None:
        raise UnauthorizedError("this call needs the header Authorization: Bearer KEY")
    found = find_key(key, known)
    if found is None:
        raise UnauthorizedError("the server does not know this key, or it was revoked")
    if not allows(found.scope, scope):
        raise ForbiddenError(
            f"this needs a key of scope {scope}, and the key's scope is {found.scope}"
        )
    return found


def create_key(store: Storage, scope: str, name: str | None = None) -> str:
    """Make another key, keep its hash, and return it, this once. Raises NameTakenError or
    ParameterError.
    """
    if scope not in SCOPES:
        raise ParameterError(f"scope: must be one of {', '.join(SCOPES)}, not {scope!r}")
    if name is not None and not re.fullmatch(NAME, name):
        raise ParameterError(
            f"name: must be 1 to 64 of a-z 0-9 . _ -, a letter or digit first, not {name[:80]!r}"
        )
    key = make_key()
    store.keys.add(name or make_name(scope), scope, hash_key(key))
    return key
