"""The schema's history, and moving a database along it (Alembic)."""

import functools
import shlex
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from ldprecover_server.errors import ConfigurationError
from ldprecover_server.storage.database import Database

__all__ = ["check", "migrate"]

FOLDER = Path(__file__).parent

_LOCK = 0x4C44506  # key of the Postgres advisory lock that serialises migrations


def migrate(database: Database) -> list[str]:
    """Bring a database to this version's schema; return the revisions it went through.

    Raises ConfigurationError for a database that a newer version has moved on,
    StoreUnavailableError.
    """
    with database.write() as connection:
        if database.dialect == "postgresql":
            # However long the statements of a migration take; what keeps them waiting is bound as
            # ever.
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            # Two that migrate at once: the second waits, and finds nothing left to do.
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        config = _config()
        before = _revision(connection)
        pending = _pending(before)
        if pending:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        return pending


def check(database: Database) -> None:
    """Raise ConfigurationError unless the database has this version's schema."""
    with database.read() as connection:
        if _pending(_revision(connection)):
            url = database.engine.url.render_as_string(hide_password=True)
            raise ConfigurationError(
                f"the schema of {database.name} is not this version's; run: "
                f"ldprecover migrate --database-url {shlex.quote(url)}"
            )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    return config


def _revision(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _pending(revision: str | None) -> list[str]:
    """Return the revisions after this one, the next first."""
    known = revisions()
    if revision is None:
        return [*known]
    if revision not in known:
        raise ConfigurationError(
            f"the database has schema {revision}, of a newer version of ldprecover; this one knows "
            f"{known[-1]}"
        )
    return [*known[known.index(revision) + 1 :]]


@functools.cache
def revisions() -> tuple[str, ...]:
    """Return all revisions, the first one first; each is a file to run."""
    script = ScriptDirectory.from_config(_config())
    return tuple(step.revision for step in script.walk_revisions())[::-1]
