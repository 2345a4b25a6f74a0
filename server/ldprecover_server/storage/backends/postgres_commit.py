"""The usual commit on Postgres: one statement, prepared in a session that is kept for it, with its
values in binary.
"""

import re
import struct
import time
from collections.abc import Callable, Collection
from typing import Any, cast

import psycopg
import sqlalchemy as sa

from ldprecover_server.storage.backends.postgres_arrays import Bigints, Uuids
from ldprecover_server.storage.backends.postgres_timeouts import Prepared, Session
from ldprecover_server.storage.commit.one_statement import DIVISION_BY_ZERO, POSTGRES, AtOnce
from ldprecover_server.storage.commit.pinned_connection import Kept

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
    """Commits by a session that is kept, of the pool as it is since its present `generation`.

    An error of one of the states `lost` says that the session is of no more use.
    """

    def __init__(
        self,
        engine: sa.Engine,
        generation: Callable[[], int],
        idle_seconds: float,
        lost: Collection[str],
    ) -> None:
        self._kept = Kept(engine)
        self._present = generation
        self._idle_seconds = idle_seconds
        self._lost = lost
        self._generation = -1
        self._used = 0.0

    def begin(self) -> int:
        """See that there is a session, and after an idle time that it lives; return the generation
        that it is of.

        Raises DBAPIError.
        """
        if self._present() != self._generation:
            self._kept.give_back()
        elif self._kept.is_there and time.monotonic() - self._used > self._idle_seconds:
            try:
                self.session.ping()
            except psycopg.Error:
                self._kept.drop()
        _ = self.session
        self._generation = self._present()
        return self._generation

    def store(self, wish: AtOnce) -> bool:
        """Store a batch if nothing stands in its way; otherwise store nothing and return False.
        Raises DBAPIError.
        """
        session = self.session
        try:
            return session.run(_STATEMENT, _values(wish)) == _STORED
        except psycopg.Error as error:
            if error.sqlstate == DIVISION_BY_ZERO:
                return False
            raise self._kept.raised(
                error, is_lost=session.closed or error.sqlstate in self._lost
            ) from error
        finally:
            self._used = time.monotonic()

    def close(self) -> None:
        """Close the session, if there is one."""
        self._kept.drop()

    @property
    def session(self) -> Session:
        """The session that is kept."""
        return cast(Session, self._kept.connection())


def _values(wish: AtOnce) -> list[bytes]:
    arrays = {"keys": Uuids(wish.keys).binary, "digests": Bigints(wish.keys.values()).binary}
    values: dict[str, Any] = {**vars(wish), **arrays, "submissions": len(wish.keys)}
    return [value if isinstance(value := values[name], bytes) else _int8(value) for name in _NAMES]
