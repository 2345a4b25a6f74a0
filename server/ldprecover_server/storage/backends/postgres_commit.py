"""The one-statement commit on Postgres: prepared in a pinned session, with binary values."""

import re
import struct
import time
from collections.abc import Callable, Mapping
from typing import cast

import psycopg
import sqlalchemy as sa

from ldprecover_server.storage.backends.postgres_arrays import Bigints, Uuids
from ldprecover_server.storage.backends.postgres_timeouts import LOST, Prepared, Session
from ldprecover_server.storage.database import PinnedConnection
from ldprecover_server.storage.one_statement import ABORTED, POSTGRES

_BYTEA, _INT8 = (psycopg.postgres.types[name].oid for name in ("bytea", "int8"))
_AS_CAST = 0  # the server takes the type of the cast in the statement
_TYPES = {"keys": _AS_CAST, "digests": _AS_CAST, "token": _BYTEA, "data": _BYTEA, "counts": _BYTEA}
_PLACEHOLDER = re.compile(r"%\((\w+)\)[sb]")
_NAMES = list(dict.fromkeys(_PLACEHOLDER.findall(POSTGRES)))
_STATEMENT = Prepared(
    name=b"ldprecover_one_statement",
    text=_PLACEHOLDER.sub(lambda match: f"${_NAMES.index(match[1]) + 1}", POSTGRES).encode(),
    types=[_TYPES.get(name, _INT8) for name in _NAMES],
)
_STORED = struct.pack("!i", 1)
_int8 = struct.Struct("!q").pack


class PostgresCommit:
    """Commits in a pinned session of the pool's current `generation`."""

    def __init__(
        self,
        engine: sa.Engine,
        generation: Callable[[], int],
        idle_seconds: float,
    ) -> None:
        self._pinned = PinnedConnection(engine)
        self._current_generation = generation
        self._idle_seconds = idle_seconds
        self._generation = -1
        self._used_at = 0.0

    def begin(self) -> int:
        """Ensure a session, checked after idle time; return its generation. Raises DBAPIError."""
        if self._current_generation() != self._generation:
            self._pinned.release()
        elif self._pinned.is_open and time.monotonic() - self._used_at > self._idle_seconds:
            try:
                self.session.ping()
            except psycopg.Error:
                self._pinned.drop()
        _ = self.session
        self._generation = self._current_generation()
        return self._generation

    def commit(self, digests: Mapping[bytes, bytes], values: Mapping[str, int | bytes]) -> bool:
        """Commit a batch; return False, with nothing stored, on any conflict. Raises DBAPIError."""
        session = self.session
        parameters = {
            **values,
            "submissions": len(digests),
            "keys": Uuids(digests).binary,
            "digests": Bigints(digests.values()).binary,
        }
        encoded = []
        for name in _NAMES:
            value = parameters[name]
            encoded.append(value if isinstance(value, bytes) else _int8(value))
        try:
            return session.run(_STATEMENT, encoded) == _STORED
        except psycopg.Error as error:
            if error.sqlstate == ABORTED:
                return False
            is_lost = session.closed or error.sqlstate in LOST
            raise self._pinned.translate(error, is_lost=is_lost) from error
        finally:
            self._used_at = time.monotonic()

    def close(self) -> None:
        """Close the session."""
        self._pinned.drop()

    @property
    def session(self) -> Session:
        """The pinned session."""
        return cast(Session, self._pinned.get())
