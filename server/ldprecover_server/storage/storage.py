"""The one face of the database: what the rooms do, and the commit."""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import sqlalchemy as sa

from ldprecover_server.errors import ConfigurationError, ServiceError
from ldprecover_server.storage import migrations
from ldprecover_server.storage.base import Clock
from ldprecover_server.storage.commit.transaction import Batch, Commit, Outcome
from ldprecover_server.storage.connect import open_database
from ldprecover_server.storage.datasets import Datasets
from ldprecover_server.storage.jobs import StoredJobs
from ldprecover_server.storage.keys import Keys
from ldprecover_server.storage.maintenance.check import Checking
from ldprecover_server.storage.maintenance.filters import Screening
from ldprecover_server.storage.maintenance.unlinking import Mixing
from ldprecover_server.storage.schema import rounds, secrets
from ldprecover_server.storage.segments import Segments
from ldprecover_server.storage.snapshots import Snapshots

_PROBE_BYTES = 1 << 18


class Store(Screening, Mixing, Checking, Segments, Snapshots, Datasets, Keys):
    """Everything the service keeps. Methods are safe to call from several threads."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        answer_seconds: float | None = None,
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(
            open_database(url, pool_size=pool_size, answer_seconds=answer_seconds), clock
        )
        self._commit = Commit(self.database)
        self.jobs = StoredJobs(self.database, clock)

    def prepare(self, *, migrate: bool = True) -> None:
        """See that the schema is this version's; a SQLite file is migrated on the way, unless told
        otherwise.

        Raises ConfigurationError for a database that cannot serve, or that `migrate` has to move on
        first.
        """
        try:
            with self.database.untold():
                if migrate and self.database.dialect == "sqlite":
                    migrations.migrate(self.database)
                else:
                    migrations.check(self.database)
        except (ServiceError, sa.exc.DatabaseError) as error:
            raise ConfigurationError(
                f"{self.database.name} cannot serve as database: {_reason(error)}"
            ) from error

    def migrate(self) -> list[str]:
        """Bring the schema to this version's; return the revisions it went through. Raises
        ConfigurationError.
        """
        try:
            with self.database.untold():
                return migrations.migrate(self.database)
        except (ServiceError, sa.exc.DatabaseError) as error:
            raise ConfigurationError(
                f"{self.database.name} cannot be migrated: {_reason(error)}"
            ) from error

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def keep_claim(self) -> None:
        """Take this process's place again if it was lost. Raises StoreUnavailableError."""
        self.database.keep_claim()

    def free_bytes(self) -> int | None:
        """Return what is free on the database's disk, or None where that cannot be told."""
        return self.database.free_bytes()

    def check_writable(self) -> None:
        """Raise StoreUnavailableError or StorageFullError unless a transaction can write."""
        with self.database.write() as connection:
            connection.execute(sa.update(rounds).where(rounds.c.seq == 0).values(seq=0))

    def check_room(self) -> None:
        """Raise StorageFullError unless the database takes more bytes: it is given some, and they
        are deleted.
        """
        probe = {"name": f"probe-{self.database.process}", "value": os.urandom(_PROBE_BYTES)}
        with self.database.write() as connection:
            connection.execute(sa.insert(secrets), probe)
            connection.execute(sa.delete(secrets).where(secrets.c.name == probe["name"]))

    def watch_pool(self, taken: Callable[[], None], given_back: Callable[[], None]) -> None:
        """Call `taken` for each connection to the database that is taken from the pool,
        `given_back` at its return.
        """
        sa.event.listen(self.database.engine, "checkout", lambda *connection: taken())
        sa.event.listen(self.database.engine, "checkin", lambda *connection: given_back())

    def commit(self, batches: Sequence[Batch]) -> list[list[Outcome]]:
        """Store submissions, durably, each exactly once; return the outcomes in the order given."""
        return self._commit(batches, self.hour())


def _reason(error: Exception) -> str:
    """Return what the operator is told: also the database's own words, which no caller hears."""
    if isinstance(error, sa.exc.DBAPIError):
        return str(error.orig)
    cause = error.__cause__
    return f"{error}: {cause.orig}" if isinstance(cause, sa.exc.DBAPIError) else str(error)
