"""Tickets: each admits one report to one round, and is verified without being stored.

A ticket is `id.mac`: 128 random bits, and the first 128 bits of their HMAC-SHA256 under the round's
key, both in base64url. The round's key is derived from the server's secret and the round's id
(HKDF, RFC 5869), so that a ticket is invalid in another round and on another server.

A form's ticket is made under a key from the form's id, and admits a report to the one round of the
form that `ldprecover.rounds.tickets.assigned_round` names.
"""

import base64
import functools
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator

from ldprecover_server.errors import InvalidTicketError

_BYTES = 16
_TICKET = re.compile(r"([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{22})")
_CONTEXT = b"ldprecover ticket 1\0"


def hkdf(secret: bytes, *, salt: bytes, info: bytes) -> bytes:
    """Return 32 bytes, one block, derived from a secret by HKDF with SHA-256 (RFC 5869)."""
    pseudorandom = hmac.digest(salt or bytes(32), secret, hashlib.sha256)
    return hmac.digest(pseudorandom, info + b"\x01", hashlib.sha256)


@functools.lru_cache(maxsize=256)
def round_key(secret: bytes, round_id: str) -> bytes:
    """Return the key under which a round's tickets are made."""
    return hkdf(secret, salt=b"", info=_CONTEXT + round_id.encode())


def mint(key: bytes, count: int) -> Iterator[str]:
    """Yield new tickets under a round's key."""
    for _ in range(count):
        id = _text(secrets.token_bytes(_BYTES))
        yield f"{id}.{_mac(key, id)}"


def submission_key(key: bytes, ticket: str) -> str:
    """Return the submission key of a ticket's submission. Raises InvalidTicketError.

    It contains a space, which keys chosen by clients cannot, so the two never collide.
    """
    parts = _TICKET.fullmatch(ticket)
    id, mac = parts.groups() if parts else ("", "")
    if not hmac.compare_digest(mac, _mac(key, id)):
        raise InvalidTicketError("the ticket is not one of this round")
    return f"ticket {id}"


def _mac(key: bytes, id: str) -> str:
    # Over the text, because base64 has several texts for the same bits.
    return _text(hmac.digest(key, id.encode(), hashlib.sha256)[:_BYTES])


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
