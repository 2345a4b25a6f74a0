"""Access keys: made at random, kept as hashes, compared in constant time, each with a scope."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

SCOPES = ("admin", "analyst", "report")
"""What a key may do: everything; read rounds that are read with a key; submit reports."""

NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
"""Pattern of a key's name."""


@dataclass(frozen=True)
class AccessKey:
    """What is told of a key; the key itself was shown once, when it was made."""

    name: str
    scope: str
    created_at: str
    revoked_at: str | None


@dataclass(frozen=True)
class HashedKey:
    """A key that counts: not revoked."""

    name: str
    scope: str
    hash: bytes


def make_key() -> str:
    """Return a new key of 256 random bits."""
    return f"ldp-{secrets.token_urlsafe(32)}"


def make_name(scope: str) -> str:
    """Return a name for a key that was given none."""
    return f"{scope}-{secrets.token_hex(4)}"


def hash_key(key: str) -> bytes:
    """Return the SHA-256 of a key; a random key of 256 bits needs no salt and no slow hash."""
    return hashlib.sha256(key.encode()).digest()


def find_key(key: str, known: Sequence[HashedKey]) -> HashedKey | None:
    """Return the known key that this is, in time that does not depend on which, or whether any."""
    given = hash_key(key)
    found = None
    for candidate in known:
        if hmac.compare_digest(given, candidate.hash):
            found = candidate
    return found


def allows(scope: str, wanted: str) -> bool:
    """Tell whether a key of this scope may do what another asks for; an admin key may do all."""
    return scope in ("admin", wanted)
