"""A connection that is kept for the usual commit, and what its driver raises as SQLAlchemy would
have it.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import PoolProxiedConnection


class Kept:
    """A connection of an engine's pool, taken when it is first asked for and kept until it is given
    back.

    Through the pool and SQLAlchemy's layers a commit of a few submissions takes 0.15 to 0.4 ms of
    processor time more than by the driver alone, all of it with the interpreter's lock held.
    `prepare` is called with each connection that is taken. For use by one thread.
    """

    def __init__(
        self, engine: sa.Engine, prepare: Callable[[Any], None] = lambda connection: None
    ) -> None:
        self._engine = engine
        self._prepare = prepare
        self._kept: PoolProxiedConnection | None = None

    @property
    def is_there(self) -> bool:
        """Whether a connection is kept now."""
        return self._kept is not None

    def connection(self) -> Any:
        """Return the driver's connection. Raises DBAPIError."""
        if self._kept is None:
            try:
                self._kept = self._engine.raw_connection()
                self._prepare(self._kept.driver_connection)
            except self._engine.dialect.loaded_dbapi.Error as error:
                raise self.raised(error, is_lost=True) from error
        return self._kept.driver_connection

    def give_back(self) -> None:
        """Give the connection back, if there is one, to the pool, which knows whether it may still
        be used.
        """
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def drop(self) -> None:
        """Close the connection, if there is one."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.invalidate()

    def raised(self, error: Exception, *, is_lost: bool) -> BaseException:
        """Return a driver's error as SQLAlchemy's; the connection is dropped if the error says that
        it is lost.
        """
        if is_lost:
            self.drop()
        driver = self._engine.dialect.loaded_dbapi.Error
        return sa.exc.DBAPIError.instance(
            None, None, error, driver, hide_parameters=True, connection_invalidated=is_lost
        )
