"""The one-statement commit on Postgres: prepared in a pinned session, with binary values."""

import re
import struct
import time
from collections.abc import Callable, Sequence
from typing import cast

import psycopg
import sqlalchemy as sa

from ldprecover_server.storage.backends.postgres_arrays import Bigints, Byteas, Uuids
from ldprecover_server.storage.backends.postgres_timeouts import LOST, Prepared, Session
from ldprecover_server.storage.database import PinnedConnection
from ldprecover_server.storage.one_statement import ABORTED, POSTGRES, RoundRows

_BYTEA, _INT8 = (psycopg.postgres.types[name].oid for name in ("bytea", "int8"))
_AS_CAST = 0  # the server takes the type of the cast in the statement
_TYPES = {"process": _INT8, "hour": _INT8, "token": _BYTEA}
_PLACEHOLDER = re.compile(r"%\((\w+)\)[sb]")
_NAMES = list(dict.fromkeys(_PLACEHOLDER.findall(POSTGRES)))
_STATEMENT = Prepared(
    name=b"ldprecover_one_statement",
    text=_PLACEHOLDER.sub(lambda match: f"${_NAMES.index(match[1]) + 1}", POSTGRES).encode(),
    types=[_TYPES.get(name, _AS_CAST) for name in _NAMES],
)
_STORED = struct.pack("!i", 1)
_int8 = struct.Struct("!q").pack


def _prepare(session: Session) -> None:
    """Keep the statement's plan: by default each commit would plan it again for its arrays."""
    with session.checking():
        session.execute("SET plan_cache_mode = 'force_generic_plan'")


class PostgresCommit:
    """Commits in a pinned session of the pool's current `generation`."""

    def __init__(
        self,
        engine: sa.Engine,
        generation: Callable[[], int],
        idle_seconds: float,
    ) -> None:
        self._pinned = PinnedConnection(engine, _prepare)
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

    def commit(self, rows: Sequence[RoundRows], process: int, token: bytes, hour: int) -> bool:
        """Commit rows; return False, with nothing stored, on any conflict. Raises DBAPIError."""
        session = self.session
        parameters = {
            "process": _int8(process),
            "token": token,
            "hour": _int8(hour),
            "rounds": Bigints([_int8(each.round) for each in rows]).binary,
            "befores": Bigints([_int8(each.n_before) for each in rows]).binary,
            "afters": Bigints([_int8(each.n_after) for each in rows]).binary,
            "ns": Bigints([_int8(each.n) for each in rows]).binary,
            "counts": Byteas([each.counts for each in rows]).binary,
            "data": Byteas([each.data for each in rows]).binary,
            "keys": Uuids([key for each in rows for key in each.digests]).binary,
            "digests": Bigints([d for each in rows for d in each.digests.values()]).binary,
        }
        try:
            return session.run(_STATEMENT, [parameters[name] for name in _NAMES]) == _STORED
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
