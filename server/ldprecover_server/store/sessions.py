"""Postgres sessions that do not wait for ever: a server that hangs answers nothing, not even a timeout of its own."""

from collections.abc import Generator
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.pq import TransactionStatus

__all__ = ["PING_SECONDS", "bound"]

PING_SECONDS = 5.0
"""How long the pool waits to see whether a connection is alive, and for a new one."""


class _Session(psycopg.Connection[Any]):
    """A connection that is closed when a statement has not been answered in time. Raises OperationalError then."""

    seconds = PING_SECONDS

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        # Outside a transaction there are pings alone.
        seconds = min(self.seconds, PING_SECONDS) if self.autocommit else self.seconds
        try:
            return super().wait(gen, *args, **{"timeout": seconds, **options})
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:  # the statement goes on without us
                self.close()
                raise psycopg.OperationalError(f"no answer for {seconds:g} seconds") from error
            raise


def bound(engine: sa.Engine, seconds: float) -> None:
    """Make an engine's connections give up what is not answered within so many seconds."""

    def connect(
        dialect: Any, record: Any, positional: tuple[Any, ...], named: dict[str, Any]
    ) -> psycopg.Connection[Any]:
        session = _Session.connect(*positional, **named)
        session.seconds = seconds
        return session

    sa.event.listen(engine, "do_connect", connect)
