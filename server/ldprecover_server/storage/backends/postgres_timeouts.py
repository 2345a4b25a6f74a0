"""Postgres connections with client-side timeouts, because a hung server answers nothing."""

import contextlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.errors import error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

PING_SECONDS = 5.0
"""Timeout for a new connection, and for the check of an idle one."""

LOST = frozenset({"25006", "0A000", "57P01", "57P02", "57P03"})
"""SQLSTATEs of an unusable session: it ends (57P0x), or its server accepts no writes, as after a
switchover (25006; 0A000 for a write transaction on a standby).
"""


@dataclass(frozen=True)
class Prepared:
    """A statement with one result value, its name in sessions, and the types of $1, $2, ..."""

    name: bytes
    text: bytes
    types: Sequence[int]


class _BinaryCursor(psycopg.Cursor[Any]):
    """A cursor with binary results: as text, bytes have twice the length."""

    def __init__(self, connection: psycopg.Connection[Any], **options: Any) -> None:
        super().__init__(connection, **options)
        self.format = Format.BINARY


class Session(psycopg.Connection[Any]):
    """A connection that is closed if a statement has no answer in `seconds` (OperationalError)."""

    seconds: float | None = None
    check: tuple[str, set[Any]] = ("SELECT 1", {(1,)})
    """A query, and the one row that it returns while the connection has the same session."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cursor_factory = _BinaryCursor
        self._prepared_names: set[bytes] = set()

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        try:
            return super().wait(gen, *args, **{"timeout": self.seconds, **options})
        except psycopg.OperationalError as error:
            # The statement still runs on the server, so the connection is unusable.
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.close()
                raise psycopg.OperationalError(f"no answer for {self.seconds:g} seconds") from error
            raise

    def run(self, statement: Prepared, values: Sequence[bytes]) -> bytes | None:
        """Run a statement outside a transaction; return its binary result. Raises psycopg.Error.

        psycopg's cursors derive the types of all values in every call, which takes twice as long
        as the rest.
        """
        if statement.name in self._prepared_names:
            try:
                return self._run(statement, values)
            except psycopg.errors.InvalidSqlStatementName:
                # psycopg's cursors deallocate all prepared statements, after a rollback for example
                self._prepared_names.clear()
        self.pgconn.send_prepare(statement.name, statement.text, statement.types)
        self._finish(ExecStatus.COMMAND_OK)
        self._prepared_names.add(statement.name)
        return self._run(statement, values)

    def _run(self, statement: Prepared, values: Sequence[bytes]) -> bytes | None:
        formats = [Format.BINARY] * len(values)
        self.pgconn.send_query_prepared(statement.name, values, formats, Format.BINARY)
        return self._finish(ExecStatus.TUPLES_OK).get_value(0, 0)

    def _finish(self, expected: ExecStatus) -> PGresult:
        results: list[PGresult] = self.wait(execute(self.pgconn))
        (result,) = results
        if result.status != expected:
            raise error_from_result(result)
        return result

    def ping(self) -> None:
        """Check that the connection gives the same session. Raises psycopg.Error."""
        with self.checking():
            query, rows = self.check
            if self.execute(query).fetchone() not in rows:
                raise psycopg.OperationalError("a pooler changed the session")

    @contextlib.contextmanager
    def checking(self) -> Iterator[None]:
        """Run each statement outside a transaction, waiting at most PING_SECONDS for it."""
        seconds = self.seconds
        self.seconds = PING_SECONDS if seconds is None else min(seconds, PING_SECONDS)
        try:
            self.autocommit = True
            yield
            self.autocommit = False
        finally:
            self.seconds = seconds
