"""Submission keys as they are stored: the round and a hash in 16 bytes, and 8 bytes of a digest.

A submission's key comes as a hash, and its digest as one of its packed reports, salted with the
key. Stored are 4 bytes of the round and the first 12 of the key's hash, as one key, and the first 8
of the digest. On Postgres these have types of a fixed length: so a row takes 95 bytes with its
index, which two columns of 16 bytes and the round beside them bring to 141. Stored keys sort by
their rounds, so a round's keys are those between two.

Of n keys in a round two share 12 bytes with a probability of n² / 2⁹⁷: of 10¹⁰ keys, 6 · 10⁻¹⁰. Who
would have another's submission refused would have to hit its key's 96 bits with one that is
stored. Other bytes under a key have the 8 bytes of the first ones with a probability of 2⁻⁶⁴.
"""

import uuid
from typing import Any

import sqlalchemy as sa

KEY_BYTES = 16
DIGEST_BYTES = 8

_ROUND_BYTES = 4
_HASH_BYTES = KEY_BYTES - _ROUND_BYTES


def stored_key(seq: int, key: bytes) -> bytes:
    """Return what is stored of a submission's key, 12 bytes of a hash or more, in the round at this
    place.
    """
    return seq.to_bytes(_ROUND_BYTES, "big") + key[:_HASH_BYTES]


def stored_digest(digest: bytes) -> bytes:
    """Return what is stored of a submission's digest, of 8 bytes or more."""
    return digest[:DIGEST_BYTES]


def of_round(key: sa.ColumnElement[bytes], seq: int) -> sa.ColumnElement[bool]:
    """Return which stored keys are those of the round at this place."""
    return key.between(stored_key(seq, bytes(_HASH_BYTES)), stored_key(seq, b"\xff" * _HASH_BYTES))


class Key(sa.TypeDecorator[bytes]):
    """16 bytes, on Postgres a `uuid`: a `bytea` would tell its length in a byte more, which makes
    it eight.
    """

    impl = sa.LargeBinary(KEY_BYTES)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        return dialect.type_descriptor(
            sa.Uuid() if dialect.name == "postgresql" else sa.LargeBinary(KEY_BYTES)
        )

    def process_bind_param(self, value: bytes | None, dialect: sa.Dialect) -> Any:
        return (
            uuid.UUID(bytes=value) if value is not None and dialect.name == "postgresql" else value
        )

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> bytes | None:
        return value.bytes if isinstance(value, uuid.UUID) else value


class Digest(sa.TypeDecorator[bytes]):
    """8 bytes, on Postgres a `bigint`, the most significant byte first."""

    impl = sa.LargeBinary(DIGEST_BYTES)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        return dialect.type_descriptor(
            sa.BigInteger() if dialect.name == "postgresql" else sa.LargeBinary(DIGEST_BYTES)
        )

    def process_bind_param(self, value: bytes | None, dialect: sa.Dialect) -> Any:
        if value is None or dialect.name != "postgresql":
            return value
        return int.from_bytes(value, "big", signed=True)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> bytes | None:
        return value.to_bytes(DIGEST_BYTES, "big", signed=True) if isinstance(value, int) else value
