"""How submission keys are stored.

A submission key takes 16 bytes of round and key hash, and 8 bytes of digest.

A stored key is 4 bytes of the round's sequence number and the first 12 bytes of the key's hash, so
a round's keys are one range of the index. The digest covers the packed reports and is salted with
the key. Postgres stores both in types of fixed length: a row takes 95 bytes with its index, against
141 with two 16-byte columns and the round.

Two of n keys in a round share 12 bytes with probability n² / 2⁹⁷: 6 · 10⁻¹⁰ for 10¹⁰ keys. To get
another user's submission rejected, an attacker must match 96 bits of its key. Other bytes under a
key match the stored digest with probability 2⁻⁶⁴.
"""

import uuid
from typing import Any

import sqlalchemy as sa

KEY_BYTES = 16
DIGEST_BYTES = 8

_ROUND_BYTES = 4
_HASH_BYTES = KEY_BYTES - _ROUND_BYTES


def encode_key(seq: int, key: bytes) -> bytes:
    """Return the stored form of a key's hash (12 bytes or more) in a round."""
    return seq.to_bytes(_ROUND_BYTES, "big") + key[:_HASH_BYTES]


def encode_digest(digest: bytes) -> bytes:
    """Return the stored form of a digest (8 bytes or more)."""
    return digest[:DIGEST_BYTES]


def in_round(
    key: sa.ColumnElement[bytes], seq: int, last: int | None = None
) -> sa.ColumnElement[bool]:
    """Return the condition that a stored key belongs to a round, or to one up to `last`."""
    end = encode_key(seq if last is None else last, b"\xff" * _HASH_BYTES)
    return key.between(encode_key(seq, bytes(_HASH_BYTES)), end)


class _UuidBytes(sa.TypeDecorator[bytes]):
    impl = sa.Uuid
    cache_ok = True

    def process_bind_param(self, value: bytes | None, dialect: sa.Dialect) -> Any:
        return None if value is None else uuid.UUID(bytes=value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> bytes | None:
        return None if value is None else value.bytes


class _BigintBytes(sa.TypeDecorator[bytes]):
    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: bytes | None, dialect: sa.Dialect) -> Any:
        return None if value is None else int.from_bytes(value, "big", signed=True)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> bytes | None:
        return None if value is None else value.to_bytes(DIGEST_BYTES, "big", signed=True)


KEY = sa.LargeBinary(KEY_BYTES).with_variant(_UuidBytes(), "postgresql")
"""16 bytes; on Postgres a `uuid`, which needs no length byte and so no padding to 24 bytes."""

DIGEST = sa.LargeBinary(DIGEST_BYTES).with_variant(_BigintBytes(), "postgresql")
"""8 bytes; on Postgres a `bigint`, most significant byte first."""
