"""Postgres sessions that do not wait for ever: a server that hangs answers nothing, not even a
timeout of its own.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.errors import error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

from ldprecover_server.storage.backends.postgres_arrays import register

PING_SECONDS = 5.0
"""How long the pool waits to see whether a connection is alive, and for a new one."""


@dataclass(frozen=True)
class Prepared:
    """A statement that gives one value, under the name that sessions prepare it by; values are $1,
    $2, ... of types.
    """

    name: bytes
    text: bytes
    types: Sequence[int]


class Session(psycopg.Connection[Any]):
    """A connection that is closed when a statement has not been answered in `seconds`. Raises
    OperationalError then.
    """

    seconds: float | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._known: set[bytes] = set()

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        try:
            return super().wait(gen, *args, **{"timeout": self.seconds, **options})
        except psycopg.OperationalError as error:
            if (
                self.pgconn.transaction_status == TransactionStatus.ACTIVE
            ):  # the statement goes on without us
                self.close()
                raise psycopg.OperationalError(f"no answer for {self.seconds:g} seconds") from error
            raise

    def run(self, statement: Prepared, values: Sequence[bytes]) -> bytes | None:
        """Run a statement as a transaction of its own; values and what it gives are in binary.
        Raises psycopg.Error.

        For use outside a transaction. psycopg's cursors find out the types of all values anew each
        time, which takes twice as long as the rest.
        """
        if statement.name in self._known:
            try:
                return self._run(statement, values)
            except psycopg.errors.InvalidSqlStatementName:
                # psycopg's cursors let the server forget all that is prepared, after a rollback
                # say.
                self._known.clear()
        self.pgconn.send_prepare(statement.name, statement.text, statement.types)
        self._finish(ExecStatus.COMMAND_OK)
        self._known.add(statement.name)
        return self._run(statement, values)

    def _run(self, statement: Prepared, values: Sequence[bytes]) -> bytes | None:
        pgconn = self.pgconn
        pgconn.send_query_prepared(
            statement.name, values, [Format.BINARY] * len(values), Format.BINARY
        )
        return self._finish(ExecStatus.TUPLES_OK).get_value(0, 0)

    def _finish(self, expected: ExecStatus) -> PGresult:
        results: list[PGresult] = self.wait(execute(self.pgconn))
        (result,) = results
        if result.status != expected:
            raise error_from_result(result)
        return result

    def ping(self) -> None:
        """See that the connection lives, whatever is usual for PING_SECONDS at the most. Raises
        psycopg.Error.
        """
        usual = self.seconds
        self.seconds = PING_SECONDS if usual is None else min(usual, PING_SECONDS)
        try:
            self.autocommit = True
            self.execute("SELECT 1")
            self.autocommit = False
        finally:
            self.seconds = usual


def bound(engine: sa.Engine, seconds: float | None) -> None:
    """Make an engine's connections sessions, which give up what is not answered within so many
    seconds.
    """

    def connect(
        dialect: Any, record: Any, positional: tuple[Any, ...], named: dict[str, Any]
    ) -> Session:
        session = Session.connect(*positional, **named)
        session.seconds = seconds
        register(session)
        return session

    sa.event.listen(engine, "do_connect", connect)
