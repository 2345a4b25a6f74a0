"""Admin keys: made at random, kept as hashes, compared in constant time."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence

__all__ = ["hash_key", "is_known", "make_key"]


def make_key() -> str:
    """Return a new key of 256 random bits."""
    return f"ldp-{secrets.token_urlsafe(32)}"


def hash_key(key: str) -> bytes:
    """Return the SHA-256 of a key; a random key of 256 bits needs no salt and no slow hash."""
    return hashlib.sha256(key.encode()).digest()


def is_known(key: str, hashes: Sequence[bytes]) -> bool:
    """Tell whether a key is among the hashed ones, in time that does not depend on which."""
    given = hash_key(key)
    found = False
    for known in hashes:
        found |= hmac.compare_digest(given, known)
    return found
