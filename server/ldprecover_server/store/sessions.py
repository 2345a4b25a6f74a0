"""Postgres sessions that do not wait for ever: a server that hangs answers nothing, not even a timeout of its own."""

from collections.abc import Generator
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.pq import TransactionStatus

from ldprecover_server.store.arrays import register

__all__ = ["PING_SECONDS", "Session", "bound"]

PING_SECONDS = 5.0
"""How long the pool waits to see whether a connection is alive, and for a new one."""


class Session(psycopg.Connection[Any]):
    """A connection that is closed when a statement has not been answered in `seconds`. Raises OperationalError then."""

    seconds: float | None = None

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        try:
            return super().wait(gen, *args, **{"timeout": self.seconds, **options})
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:  # the statement goes on without us
                self.close()
                raise psycopg.OperationalError(f"no answer for {self.seconds:g} seconds") from error
            raise

    def ping(self) -> None:
        """See that the connection lives, whatever is usual for PING_SECONDS at the most. Raises psycopg.Error."""
        usual = self.seconds
        self.seconds = PING_SECONDS if usual is None else min(usual, PING_SECONDS)
        try:
            self.autocommit = True
            self.execute("SELECT 1")
            self.autocommit = False
        finally:
            self.seconds = usual


def bound(engine: sa.Engine, seconds: float | None) -> None:
    """Make an engine's connections sessions, which give up what is not answered within so many seconds."""

    def connect(dialect: Any, record: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> Session:
        session = Session.connect(*positional, **named)
        session.seconds = seconds
        register(session)
        return session

    sa.event.listen(engine, "do_connect", connect)
