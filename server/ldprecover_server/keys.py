"""Access keys: random, stored as hashes, compared in constant time, each with a scope."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

SCOPES = ("admin", "analyst", "report")
"""admin: everything; analyst: read rounds with read access by key; report: submit reports."""

NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
"""Pattern of a key's name."""


@dataclass(frozen=True)
class AccessKey:
    """A key's metadata; the key itself is shown once, when it is created."""

    name: str
    scope: str
    created_at: str
    revoked_at: str | None


@dataclass(frozen=True)
class HashedKey:
    """The hash of a key that is not revoked."""

    name: str
    scope: str
    hash: bytes


def make_key() -> str:
    """Return a new key of 256 random bits."""
    return f"ldp-{secrets.token_urlsafe(32)}"


def make_name(scope: str) -> str:
    """Return a random name for a key."""
    return f"{scope}-{secrets.token_hex(4)}"


def hash_key(key: str) -> bytes:
    """Return the SHA-256 of a key; 256 random bits need neither salt nor a slow hash."""
    return hashlib.sha256(key.encode()).digest()


def find_key(key: str, candidates: Sequence[HashedKey]) -> HashedKey | None:
    """Return the matching key or None; the time does not depend on which one matches."""
    hash = hash_key(key)
    match = None
    for candidate in candidates:
        if hmac.compare_digest(hash, candidate.hash):
            match = candidate
    return match


def allows(scope: str, required: str) -> bool:
    """Return whether a key of this scope has the required scope; admin has all."""
    return scope in ("admin", required)
