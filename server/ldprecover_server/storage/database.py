"""What a database must do to keep the promises, whichever it is."""

import contextlib
import logging
import math
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ldprecover_server.errors import StorageFullError, StoreUnavailableError
from ldprecover_server.storage.commit.one_statement import AtOnce

_log = logging.getLogger(__name__)

_WRITE = "ldprecover_write"


class Database(ABC):
    """An engine whose `write()` transactions are durable once they return, and `read()`
    consistent.
    """

    engine: sa.Engine
    _read_options: ClassVar[Mapping[str, Any]] = {}
    process = 0
    """Number of this process among those that serve the database: the tally rows that it writes."""

    generation = 0
    """Changes when a connection was made anew: what was read by others may no longer be so, after a
    failover.
    """

    def __init__(self) -> None:
        self.token = secrets.token_bytes(16)
        """Stands in the tally rows that this process wrote last."""
        self._told = ("", -math.inf)
        self._tells = True

    @property
    @abstractmethod
    def name(self) -> str:
        """What to call the database before an operator; without a password."""

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.engine.dialect.name

    @abstractmethod
    def claim(self) -> None:
        """Take this process's place among those that serve the database. Raises
        ConfigurationError.
        """

    def keep_claim(self) -> None:  # noqa: B027  most places cannot be lost
        """Take the place again if it was lost with the connection that held it. Raises
        StoreUnavailableError.
        """

    @abstractmethod
    def is_full(self, error: sa.exc.DBAPIError) -> bool:
        """Tell whether an error says that nothing more fits on the disk."""

    def is_damaged(self, error: sa.exc.DBAPIError) -> bool:
        """Tell whether an error says that what is on the disk is not a database any more."""
        return False

    @abstractmethod
    def known_submission_keys(
        self, connection: sa.Connection, wanted: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        """Return those submission keys that are there, with their digests, however many are wanted.

        Here as below, keys and digests are as `stored_keys` has them.
        """

    @abstractmethod
    def insert_submission_keys(
        self, connection: sa.Connection, wanted: Mapping[bytes, bytes]
    ) -> set[bytes]:
        """Insert submission keys, with their digests, unless they are there; return those inserted.

        They are taken in the order given.
        """

    def store_at_once(self, wish: AtOnce) -> bool:
        """Store one batch in one statement if nothing stands in its way; otherwise store nothing
        and return False.
        """
        return False

    def free_bytes(self) -> int | None:
        """Return what is free on the database's disk, or None where that cannot be told."""
        return None

    @abstractmethod
    def slices(self, connection: sa.Connection, id: int, size: int, step: int) -> Iterator[bytes]:
        """Yield a segment's bytes, of which there are `size`, `step` at a time, and hold no more of
        them.
        """

    rows_tell_order: ClassVar[bool] = False
    """Whether rows, beside their columns, tell in which transaction they were written, and in which
    order.
    """

    @abstractmethod
    def next_segment(self, connection: sa.Connection) -> int:
        """Return an id for a segment that is later than all there are."""

    # where all writes take turns anyway
    def hold_back(self, connection: sa.Connection, round: int) -> None:  # noqa: B027
        """Wait for usual commits to a round that are under way; until this transaction ends none
        begins.
        """

    # where all writes take turns anyway
    def take_turn(self, connection: sa.Connection) -> None:  # noqa: B027
        """Wait for other processes that delete or mix in this very moment; they wait until this
        transaction ends.

        So they cannot deadlock, nor do anything twice. Commits do not wait for them.
        """

    def forget(self) -> bool:
        """See that what was deleted leaves the disk, as far as that is in our hands; return whether
        it has.
        """
        return True

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A read-only view. Raises StoreUnavailableError."""
        options = self._read_options
        with (
            self.translated_errors(),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction: on disk when the block ends, undone when it raises.

        Raises StorageFullError when nothing more fits on the disk, StoreUnavailableError when the
        database does not answer, or gives the transaction up for another's sake; after the latter,
        whether the transaction took hold is not known.
        """
        options = {_WRITE: True}
        with (
            self.translated_errors(),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    def close(self) -> None:
        """Close every connection and give the place up."""
        self.engine.dispose()

    @contextlib.contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Raise what a database's library raises inside as an error of the service.

        A fault of the server's own statements stays as it is.
        """
        try:
            yield
        except sa.exc.TimeoutError as error:
            raise StoreUnavailableError("every connection to the database is taken") from error
        except sa.exc.DBAPIError as error:
            if self.is_full(error):
                raise StorageFullError("the disk of the database is full") from error
            if self.is_damaged(error):
                self._tell(str(error.orig))
                raise StoreUnavailableError(
                    "the file of the database is damaged; its backup may be whole"
                ) from error
            if (
                isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
                or error.connection_invalidated
            ):
                self._tell(str(error.orig))
                raise StoreUnavailableError("the database does not answer") from error
            raise

    @contextlib.contextmanager
    def untold(self) -> Iterator[None]:
        """Log nothing of what a library says: whoever opens the database passes it on in the
        error.
        """
        self._tells = False
        try:
            yield
        finally:
            self._tells = True

    def _tell(self, cause: str) -> None:
        """Log what a library says of the database; callers are not told, for it may name hosts,
        users and paths.

        The same cause again within a second is left out: strangers must not be able to fill the
        log.
        """
        if not self._tells:
            return
        before, when = self._told
        if cause != before or time.monotonic() > when + 1:
            self._told = (cause, time.monotonic())
            _log.warning("the database does not answer: %s", cause)


def is_write(connection: sa.Connection) -> bool:
    """Tell whether this is a connection of `Database.write`."""
    return bool(connection.get_execution_options().get(_WRITE, False))


def upsert(dialect: str) -> Callable[[sa.Table], postgresql.Insert | sqlite.Insert]:
    """Return the dialect's INSERT, which knows ON CONFLICT."""
    return postgresql.insert if dialect == "postgresql" else sqlite.insert
