"""Access control: looks up keys, checks scopes, and identifies the sender of a submission.

Access keys are random, stored as hashes, found by hash, and have a scope.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from anyio import to_thread

from ldprecover import ParameterError
from ldprecover.rounds.tickets import assigned_round
from ldprecover_server.access import tickets
from ldprecover_server.access.rates import ReportRates
from ldprecover_server.errors import (
    ForbiddenError,
    InvalidTicketError,
    StoreUnavailableError,
    UnauthorizedError,
)
from ldprecover_server.limits import Cache, SharedCall
from ldprecover_server.storage import HashedKey, Storage

SCOPES = ("admin", "analyst", "report")
"""admin: everything; analyst: read rounds with read access by key; report: submit reports."""

CACHE_SECONDS = 1.0
"""How long submissions use cached keys, and so how long a revoked `report` key still works."""

_CACHE_KEYS = 10_000
_BATCH_KEYS = 500
"""Keys looked up by one statement."""
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
    """The keys of a server: those in its database, and the admin keys from its settings and of its
    link.

    Submissions use a key for CACHE_SECONDS after it was looked up. All other calls look it up in
    the database, so that a revocation takes effect immediately in every process. An unknown key is
    never cached, because another process may create it. Look-ups that wait share a statement, and
    one runs at a time, so any number of unknown keys takes one connection.
    """

    def __init__(
        self,
        storage: Storage,
        *admin_keys: str | None,
        rates: ReportRates | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._admin_hashes = [_hash(key) for key in admin_keys if key]
        self._rates = rates
        self._clock = clock
        self._ticket_secret: bytes | None = None
        self._secret_call = SharedCall(storage.keys.ticket_secret, 0.0)
        self._cache: Cache[bytes, tuple[HashedKey, float]] = Cache(_CACHE_KEYS, lambda entry: 1)
        self._batch: set[bytes] | None = None
        """The hashes that the last statement looks up, until it starts."""
        self._results: asyncio.Task[dict[bytes, HashedKey]] | None = None
        """The keys that the last statement finds."""

    def require(self, key: str | None, scope: str | None = None) -> HashedKey:
        """Return the key if it has this scope, or any. Raises UnauthorizedError, ForbiddenError."""
        if key is None:
            raise UnauthorizedError("this call needs the header Authorization: Bearer KEY")
        hash = _hash(key)
        return _checked(self._of_settings(hash) or self._storage.keys.find([hash]).get(hash), scope)

    def has(self, key: str | None, scope: str) -> bool:
        """Return whether this is a valid key of this scope."""
        try:
            self.require(key, scope)
        except (UnauthorizedError, ForbiddenError):
            return False
        return True

    async def require_sender(
        self,
        id: str,
        access: str,
        authorization: str | None,
        position: int | None = None,
        size: int | None = None,
    ) -> Sender:
        """Return the sender of a submission from the value of the header Authorization.

        `id` is that of the round or, for a round at a position in a form of this size, of the form.
        Raises UnauthorizedError for an unknown or revoked key, even if the round needs none,
        ForbiddenError for a key without the scope or a ticket that assigns another round, and
        InvalidTicketError for an invalid, missing or unexpected ticket.
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
            submission_key = tickets.submission_key(await self._ticket_key(id), value)
            if size is not None and assigned_round(value, size) != position:
                raise ForbiddenError("the ticket assigns its report to another round of the form")
            return Sender(submission_key=submission_key)
        if scheme.lower() == "ticket":
            raise InvalidTicketError("this round takes no tickets")
        if scheme.lower() != "bearer" or not value:
            raise UnauthorizedError(
                "this submission needs the header Authorization: Bearer KEY with a report key"
            )
        return Sender(key=_checked(await self._look_up(value), "report"))

    def mint(self, id: str, access: str, count: int) -> Iterator[str]:
        """Return new tickets of the round or form with this id.

        Raises ParameterError if its access is not `ticket`.
        """
        if access != "ticket":
            raise ParameterError(
                f"access: the round's is {access!r}, and tickets are for rounds of access 'ticket'"
            )
        return tickets.mint(tickets.round_key(self._storage.keys.ticket_secret(), id), count)

    async def _ticket_key(self, id: str) -> bytes:
        if self._ticket_secret is None:
            self._ticket_secret = await self._secret_call.result()
        return tickets.round_key(self._ticket_secret, id)

    def take(self, key: HashedKey, reports: int) -> None:
        """Count reports against a key's rate limit. Raises RateLimitedError."""
        if self._rates is not None:
            self._rates.take(key.hash, reports)

    async def knows(self, key: str) -> bool:
        """Return whether this is a valid key of any scope, as submissions see it."""
        return await self._look_up(key) is not None

    def ensure_admin_key(self) -> str | None:
        """Create an admin key if the server has no other, and return it to show to the operator."""
        if self._admin_hashes or self._storage.keys.has_admin():
            return None
        return create_key(self._storage, "admin")

    def _of_settings(self, hash: bytes) -> HashedKey | None:
        # In constant time: an operator may have chosen a key that can be guessed from its hash.
        if any(hmac.compare_digest(hash, each) for each in self._admin_hashes):
            return HashedKey(_SETTINGS_KEY, "admin", hash)
        return None

    async def _look_up(self, key: str) -> HashedKey | None:
        """Return a key, from the cache or the database. Raises StoreUnavailableError."""
        # The dictionary and the index do not compare in constant time. Time may tell how a stored
        # hash begins, and not which of 2^256 random keys has such a hash.
        hash = _hash(key)
        if match := self._of_settings(hash):
            return match
        if (entry := self._cache.get(hash)) and self._clock() - entry[1] < CACHE_SECONDS:
            return entry[0]
        if self._batch is None or self._results is None or len(self._batch) >= _BATCH_KEYS:
            self._batch = set()
            self._results = asyncio.create_task(self._read(self._batch, self._results))
        self._batch.add(hash)
        try:
            return (await asyncio.shield(self._results)).get(hash)  # shared with other callers
        except StoreUnavailableError as error:
            # A new error for each caller: a shared one would collect tracebacks.
            raise StoreUnavailableError(str(error)) from None

    async def _read(
        self, batch: set[bytes], previous: asyncio.Task[dict[bytes, HashedKey]] | None
    ) -> dict[bytes, HashedKey]:
        """Return the keys of a batch after the previous one, with which it fails."""
        try:
            if previous is not None and not previous.done():
                await previous
        finally:
            if batch is self._batch:
                self._batch = None  # later hashes need another statement
        read_at = self._clock()
        keys = await to_thread.run_sync(self._storage.keys.find, batch)
        for hash, key in keys.items():
            self._cache.add(hash, (key, read_at))
        return keys


def _hash(key: str) -> bytes:
    """Return the SHA-256 of a key; 256 random bits need neither salt nor a slow hash."""
    return hashlib.sha256(key.encode()).digest()


def _checked(key: HashedKey | None, scope: str | None) -> HashedKey:
    if key is None:
        raise UnauthorizedError("the server does not know this key, or it was revoked")
    if scope is not None and key.scope not in ("admin", scope):
        raise ForbiddenError(
            f"this needs a key of scope {scope}, and the key's scope is {key.scope}"
        )
    return key


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
