"""Upgrades the schema of a database to this version's, with Alembic.

A new database gets the tables of `schema`. A revision changes those of an older version.
"""

import functools
import shlex
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from ldprecover_server.errors import ConfigurationError
from ldprecover_server.secrets import without_secrets
from ldprecover_server.storage.database import Database
from ldprecover_server.storage.schema import MIGRATION_KEY, metadata

FOLDER = Path(__file__).parent


def migrate(database: Database) -> list[str]:
    """Upgrade a database to this version's schema; return the revisions that it lacked.

    Raises ConfigurationError for a database of another version, and StoreUnavailableError.
    """
    with database.write() as connection:
        if database.dialect == "postgresql":
            # Statements of a migration may take long; lock_timeout still limits their waiting.
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            # A second process that migrates waits, and then finds nothing to do.
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_KEY)))
        before = _revision(connection)
        pending = _pending(before)
        config = _config()
        config.attributes["connection"] = connection
        if before is None:
            metadata.create_all(connection)
            command.stamp(config, "head")
        elif pending:
            command.upgrade(config, "head")
        return pending


def check(database: Database) -> None:
    """Raise ConfigurationError unless the database has this version's schema."""
    with database.read() as connection:
        if _pending(_revision(connection)):
            url = database.engine.url.render_as_string(hide_password=False)
            # A command with a part left out could not be run.
            is_secret = url != without_secrets(url)
            option = "" if is_secret else f" --database-url {shlex.quote(url)}"
            hint = ", with the server's LDPRECOVER_DATABASE_URL" if is_secret else ""
            raise ConfigurationError(
                f"the schema of {database.name} is not this version's; run: "
                f"ldprecover admin migrate{option}{hint}"
            )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    return config


def _revision(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _pending(revision: str | None) -> list[str]:
    """Return the revisions after this one, in order."""
    names = revisions()
    if revision is None:
        return [*names]
    if revision not in names:
        raise ConfigurationError(
            f"the database has schema {revision}, of another version of ldprecover; this one knows "
            f"{names[-1]}: use the version that made it, or another database"
        )
    return [*names[names.index(revision) + 1 :]]


@functools.cache
def revisions() -> tuple[str, ...]:
    """Return all revisions in order; reading them runs a file each."""
    script = ScriptDirectory.from_config(_config())
    return tuple(step.revision for step in script.walk_revisions())[::-1]
