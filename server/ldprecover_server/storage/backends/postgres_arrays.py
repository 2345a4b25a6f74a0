"""Arrays as Postgres reads them, made at once of values that are bytes already: a commit writes two
of them.
"""

import struct
from collections.abc import Collection
from typing import Any, ClassVar

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format


class _Array:
    """Values of one length, in Postgres' binary form of an array: its shape, then each with its
    length before it.
    """

    element: ClassVar[int]

    def __init__(self, values: Collection[bytes]) -> None:
        if not values:
            self.binary = struct.pack("!iii", 0, 0, self.element)
            return
        length = struct.pack("!i", len(next(iter(values))))
        # One dimension, no nulls, numbered from 1.
        self.binary = (
            struct.pack("!iiiii", 1, 0, self.element, len(values), 1) + length + length.join(values)
        )


class Uuids(_Array):
    """An array of uuid, of 16 bytes each."""

    element = psycopg.postgres.types["uuid"].oid


class Bigints(_Array):
    """An array of bigint, of 8 bytes each, the most significant one first."""

    element = psycopg.postgres.types["int8"].oid


class _Dumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return bytes(obj.binary)


class _Uuids(_Dumper):
    oid = psycopg.postgres.types["uuid"].array_oid


class _Bigints(_Dumper):
    oid = psycopg.postgres.types["int8"].array_oid


def register(connection: psycopg.Connection[Any]) -> None:
    """Let statements on this connection take such arrays."""
    connection.adapters.register_dumper(Uuids, _Uuids)
    connection.adapters.register_dumper(Bigints, _Bigints)
