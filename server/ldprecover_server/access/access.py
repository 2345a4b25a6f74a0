"""Access control: looks up keys, checks scopes, and identifies the sender of a submission.

Access keys are random, stored as hashes, compared in constant time, and have a scope.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from anyio import to_thread

from ldprecover import ParameterError
from ldprecover_server.access import tickets
from ldprecover_server.access.rates import ReportRates
from ldprecover_server.errors import (
    ForbiddenError,
    InvalidTicketError,
    StoreUnavailableError,
    UnauthorizedError,
)
from ldprecover_server.storage import HashedKey, Storage

SCOPES = ("admin", "analyst", "report")
"""admin: everything; analyst: read rounds with read access by key; report: submit reports."""

CACHE_SECONDS = 1.0
"""How long submissions use cached keys, and so how long a revoked `report` key still works."""

_SETTINGS_KEY = "settings"


@dataclass(frozen=True)
class Sender:
    """The sender of a submission: the holder of a key or of a ticket, or an anonymous caller.

    A sender has a report key, or a ticket, or neither. A ticket determines the submission key,
    which is None for the others.
    """

    key: HashedKey | None = None
    submission_key: str | None = None


ANYONE = Sender()
"""An anonymous caller, for open rounds."""


class Access:
    """The keys of a server: those in its database, and the admin key from its settings.

    Submissions use a copy of the keys that is at most `CACHE_SECONDS` old; a key that is not in it
    is looked up in the database. All other calls read the keys from the database, so that a
    revocation takes effect immediately in every process.
    """

    def __init__(
        self,
        storage: Storage,
        settings_key: str | None,
        *,
        rates: ReportRates | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._settings = (
            [HashedKey(_SETTINGS_KEY, "admin", _hash(settings_key))] if settings_key else []
        )
        self._rates = rates
        self._clock = clock
        self._ticket_secret: bytes | None = None
        self._copy: list[HashedKey] = []
        self._read_at = -CACHE_SECONDS
        self._reading: asyncio.Task[None] | None = None

    def require(self, key: str | None, scope: str) -> HashedKey:
        """Return the key if it has this scope. Raises UnauthorizedError or ForbiddenError."""
        return _checked(key, scope, self._keys())

    def has(self, key: str | None, scope: str) -> bool:
        """Return whether this is a valid key of this scope."""
        try:
            self.require(key, scope)
        except (UnauthorizedError, ForbiddenError):
            return False
        return True

    def identify(self, key: str | None) -> HashedKey:
        """Return the key, whatever its scope. Raises UnauthorizedError."""
        return _checked(key, None, self._keys())

    async def require_sender(self, round_id: str, access: str, authorization: str | None) -> Sender:
        """Return the sender of a submission from the value of the header Authorization.

        Raises UnauthorizedError for an unknown or revoked key, even if the round needs none,
        ForbiddenError for a key without the scope, and InvalidTicketError for an invalid, missing
        or unexpected ticket.
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
            return Sender(submission_key=submission_key)
        if scheme.lower() == "ticket":
            raise InvalidTicketError("this round takes no tickets")
        if scheme.lower() != "bearer" or not value:
            raise UnauthorizedError(
                "this submission needs the header Authorization: Bearer KEY with a report key"
            )
        return Sender(key=await self._report_key(value))

    def mint(self, round_id: str, access: str, count: int) -> Iterator[str]:
        """Return new tickets of a round. Raises ParameterError if its access is not `ticket`."""
        if access != "ticket":
            raise ParameterError(
                f"access: the round's is {access!r}, and tickets are for rounds of access 'ticket'"
            )
        return tickets.mint(tickets.round_key(self._storage.keys.ticket_secret(), round_id), count)

    async def _ticket_key(self, round_id: str) -> bytes:
        if self._ticket_secret is None:
            self._ticket_secret = await to_thread.run_sync(self._storage.keys.ticket_secret)
        return tickets.round_key(self._ticket_secret, round_id)

    async def _report_key(self, key: str) -> HashedKey:
        if not await self.knows(key):
            await self._refresh()
        return _checked(key, "report", self._copy)

    def take(self, key: HashedKey, reports: int) -> None:
        """Count reports against a key's rate limit. Raises RateLimitedError."""
        if self._rates is not None:
            self._rates.take(key.hash, reports)

    async def knows(self, key: str | None) -> bool:
        """Return whether this is a valid key of any scope, from the copy of the keys."""
        if key is None:
            return False
        if self._clock() - self._read_at >= CACHE_SECONDS:
            await self._refresh()
        return _find(key, self._copy) is not None

    def ensure_admin_key(self) -> str | None:
        """Create an admin key if the server has no other, and return it to show to the operator."""
        if self._settings or any(key.scope == "admin" for key in self._storage.keys.active()):
            return None
        return create_key(self._storage, "admin")

    async def _refresh(self) -> None:
        """Read the keys once for all waiting callers. Raises StoreUnavailableError."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        try:
            await asyncio.shield(self._reading)  # shared with other callers
        except StoreUnavailableError as error:
            # A new error for each caller: a shared one would collect tracebacks.
            raise StoreUnavailableError(str(error)) from None

    async def _read(self) -> None:
        started = self._clock()
        try:
            self._copy = await to_thread.run_sync(self._keys)
            self._read_at = started
        finally:
            self._reading = None

    def _keys(self) -> list[HashedKey]:
        return self._settings + self._storage.keys.active()


def _hash(key: str) -> bytes:
    """Return the SHA-256 of a key; 256 random bits need neither salt nor a slow hash."""
    return hashlib.sha256(key.encode()).digest()


def _find(key: str, candidates: Sequence[HashedKey]) -> HashedKey | None:
    """Return the matching key or None; the time does not depend on which one matches."""
    hash = _hash(key)
    match = None
    for candidate in candidates:
        if hmac.compare_digest(hash, candidate.hash):
            match = candidate
    return match


def _checked(key: str | None, scope: str | None, keys: list[HashedKey]) -> HashedKey:
    if key is None:
        raise UnauthorizedError("this call needs the header Authorization: Bearer KEY")
    match = _find(key, keys)
    if match is None:
        raise UnauthorizedError("the server does not know this key, or it was revoked")
    if scope is not None and match.scope not in ("admin", scope):
        raise ForbiddenError(
            f"this needs a key of scope {scope}, and the key's scope is {match.scope}"
        )
    return match


def create_key(storage: Storage, scope: str, name: str | None = None) -> str:
    """Create a key, store its hash and return it. Raises NameTakenError or ParameterError."""
    if scope not in SCOPES:
        raise ParameterError(f"scope: must be one of {', '.join(SCOPES)}, not {scope!r}")
    if name is not None and not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", name):
        raise ParameterError(
            f"name: must be 1 to 64 of a-z 0-9 . _ -, a letter or digit first, not {name[:80]!r}"
        )
    key = f"ldp-{secrets.token_urlsafe(32)}"  # 256 random bits
    storage.keys.add(name or f"{scope}-{secrets.token_hex(4)}", scope, _hash(key))
    return key
