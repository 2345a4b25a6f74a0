"""The usual commit on Postgres: one statement, prepared in a session that is kept for it, with its values in binary."""

import re
import struct
import time
from collections.abc import Collection
from typing import Any, cast

import psycopg
import sqlalchemy as sa
from sqlalchemy.pool import PoolProxiedConnection

from ldprecover_server.store.arrays import Bigints, Uuids
from ldprecover_server.store.at_once import DIVISION_BY_ZERO, POSTGRES, AtOnce
from ldprecover_server.store.sessions import Prepared, Session

__all__ = ["UsualCommit"]

_BYTEA, _INT8 = (psycopg.postgres.types[name].oid for name in ("bytea", "int8"))
_AS_CAST = 0  # the type that the statement casts to
_TYPES = {"keys": _AS_CAST, "digests": _AS_CAST, "token": _BYTEA, "data": _BYTEA, "counts": _BYTEA}
_PLACE = re.compile(r"%\((\w+)\)[sb]")
_NAMES = list(dict.fromkeys(_PLACE.findall(POSTGRES)))
_STATEMENT = Prepared(
    name=b"ldprecover_at_once",
    text=_PLACE.sub(lambda place: f"${_NAMES.index(place[1]) + 1}", POSTGRES).encode(),
    types=[_TYPES.get(name, _INT8) for name in _NAMES],
)
_STORED = struct.pack("!i", 1)
_int8 = struct.Struct("!q").pack


class UsualCommit:
    """Keeps a session of an engine's pool from one commit to the next.

    To take one from the pool for each, and to turn its values into SQL through layers that know
    every type, costs 0.4 ms of processor time for 16 submissions; this costs 0.07. An error of one
    of the states `lost` says that the session is of no more use.
    """

    def __init__(self, engine: sa.Engine, idle_seconds: float, lost: Collection[str]) -> None:
        self._engine = engine
        self._idle_seconds = idle_seconds
        self._lost = lost
        self._kept: PoolProxiedConnection | None = None
        self._generation = -1
        self._used = 0.0

    def begin(self, generation: int) -> None:
        """See that there is a session, which lives, and is of the pool as it is since this generation.

        After an idle time it is asked whether it lives. Raises DBAPIError.
        """
        if self._kept is not None and generation != self._generation:
            self._kept.close()  # back into the pool, which knows whether it may still be used
            self._kept = None
        elif self._kept is not None and time.monotonic() - self._used > self._idle_seconds:
            try:
                self.session.ping()
            except psycopg.Error:
                self.give_up()
        if self._kept is None:
            self._kept = self._engine.raw_connection()

    def store(self, wish: AtOnce, generation: int) -> bool:
        """Store a batch if nothing stands in its way; otherwise store nothing and return False. Raises DBAPIError."""
        self._generation = generation
        try:
            return self.session.run(_STATEMENT, _values(wish)) == _STORED
        except psycopg.Error as error:
            if error.sqlstate == DIVISION_BY_ZERO:
                return False
            lost = self.session.closed or error.sqlstate in self._lost
            if lost:
                self.give_up()
            raise sa.exc.DBAPIError.instance(
                None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=lost
            ) from error
        finally:
            self._used = time.monotonic()

    def give_up(self) -> None:
        """Close the session, if there is one."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.invalidate()

    @property
    def session(self) -> Session:
        """The session that is kept."""
        assert self._kept is not None
        return cast(Session, self._kept.driver_connection)


def _values(wish: AtOnce) -> list[bytes]:
    arrays = {"keys": Uuids(wish.keys).binary, "digests": Bigints(wish.keys.values()).binary}
    values: dict[str, Any] = {**vars(wish), **arrays, "submissions": len(wish.keys)}
    return [value if isinstance(value := values[name], bytes) else _int8(value) for name in _NAMES]
