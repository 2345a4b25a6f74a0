"""Postgres arrays in binary form, joined from values that are bytes already.

Every commit sends some of them.
"""

import struct
from collections.abc import Collection
from typing import Any, ClassVar

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format


class _Array:
    """An array: its shape, then each value after its length."""

    element: ClassVar[int]

    def __init__(self, values: Collection[bytes]) -> None:
        if not values:
            self.binary = struct.pack("!iii", 0, 0, self.element)
            return
        # One dimension, no nulls, indexed from 1.
        header = struct.pack("!iiiii", 1, 0, self.element, len(values), 1)
        self.binary = header + self._joined(values)

    def _joined(self, values: Collection[bytes]) -> bytes:
        length = struct.pack("!i", len(next(iter(values))))  # of every value
        return length + length.join(values)


class Uuids(_Array):
    """An array of uuid, 16 bytes each."""

    element = psycopg.postgres.types["uuid"].oid


class Bigints(_Array):
    """An array of bigint, 8 bytes each, most significant byte first."""

    element = psycopg.postgres.types["int8"].oid


class Byteas(_Array):
    """An array of bytea, of any lengths."""

    element = psycopg.postgres.types["bytea"].oid

    def _joined(self, values: Collection[bytes]) -> bytes:
        return b"".join(part for each in values for part in (struct.pack("!i", len(each)), each))


class _Dumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return bytes(obj.binary)


class _Uuids(_Dumper):
    oid = psycopg.postgres.types["uuid"].array_oid


class _Bigints(_Dumper):
    oid = psycopg.postgres.types["int8"].array_oid


def register(connection: psycopg.Connection[Any]) -> None:
    """Register the arrays as parameters of statements on a connection."""
    connection.adapters.register_dumper(Uuids, _Uuids)
    connection.adapters.register_dumper(Bigints, _Bigints)
