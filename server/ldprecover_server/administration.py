"""Operations on a database for the command line; servers may be running."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ldprecover import RoundExport
from ldprecover_server.access.access import create_key as make_key
from ldprecover_server.errors import ConfigurationError
from ldprecover_server.settings import Settings
from ldprecover_server.storage import AccessKey, Act, Finding, Storage


def migrate(settings: Settings) -> list[str]:
    """Upgrade the database's schema to this version's; return the revisions that it lacked.

    Raises ConfigurationError, also for a SQLite file that does not exist.
    """
    with _database(settings, migrate=True) as storage:
        return storage.migrate()


def create_key(settings: Settings, *, scope: str = "admin", name: str | None = None) -> str:
    """Create a key and return it; it is not stored. Raises NameTakenError or ParameterError."""
    with _database(settings) as storage:
        return make_key(storage, scope, name)


def list_keys(settings: Settings) -> list[AccessKey]:
    """Return the metadata of all keys by name, revoked keys included."""
    with _database(settings) as storage:
        return storage.keys.all()


def revoke_key(settings: Settings, name: str) -> None:
    """Revoke a key for good. Raises KeyNotFoundError."""
    with _database(settings) as storage:
        storage.keys.revoke(name)


def list_acts(settings: Settings) -> Sequence[Act]:
    """Return who changed what in the last year, at most 10,000 acts, the last one first."""
    with _database(settings) as storage:
        return storage.acts.all()


def check(settings: Settings) -> list[Finding]:
    """Return what in the database does not agree, without writing. Raises ConfigurationError."""
    with _database(settings) as storage:
        return storage.check()


@contextlib.contextmanager
def stored_reports(settings: Settings, round: str) -> Iterator[tuple[RoundExport, Iterator[bytes]]]:
    """Yield a round's export and its packed reports in pieces, all of one moment.

    The server may be running. Raises ConfigurationError and RoundNotFoundError.
    """
    with _database(settings) as storage:
        # The round is read first: of a closed one the reports are all.
        stored = storage.rounds.find(round)
        parameters = storage.rounds.parameters(stored.seq)
        size = parameters.oracle.summary_size
        tally, reports = storage.segments.tally_and_reports(stored.seq, size)
        export = stored.export(parameters, tally)
        # A reader that stops early must leave its transaction before the database is closed.
        with contextlib.closing(iter(reports)) as pieces:
            yield export, pieces


@contextlib.contextmanager
def _database(settings: Settings, *, migrate: bool = False) -> Iterator[Storage]:
    """Open an existing database, of this version's schema unless it is to be migrated.

    Only `serve` creates a SQLite file: on a mistyped path a command would make one that no server
    uses. Raises ConfigurationError.
    """
    with contextlib.closing(Storage(settings.database_url)) as storage:
        database = storage.database
        if not database.exists():
            raise ConfigurationError(
                f"there is no database {database.name}: run this in your server's folder, or name "
                "its database with --database-url or LDPRECOVER_DATABASE_URL; `ldprecover serve` "
                "makes a new one"
            )
        if not migrate:
            storage.prepare(migrate=False)
        yield storage
