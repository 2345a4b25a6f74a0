"""From a URL to a database."""

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from ldprecover_server.errors import ConfigurationError
from ldprecover_server.storage.backends.sqlite import SQLite
from ldprecover_server.storage.database import Database


def open_database(
    url: str, *, pool_size: int = 10, answer_seconds: float | None = None
) -> Database:
    """Return the database at a URL, sqlite:///FILE or postgresql+psycopg://...; it connects when
    first used.

    A Postgres that leaves a statement without an answer for `answer_seconds` counts as one that
    does not answer. Raises ConfigurationError for what is not a URL, and for another kind of
    database.
    """
    try:
        parsed = sa.make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(
            "the database URL cannot be read; try sqlite:///ldprecover.db"
        ) from error
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        return SQLite(parsed)
    if parsed.drivername == "postgresql+psycopg":
        try:
            from ldprecover_server.storage.backends.postgres import Postgres  # psycopg is an extra
        except ImportError as error:
            raise ConfigurationError(
                "Postgres needs the extra: pip install 'ldprecover[postgres]'"
            ) from error
        return Postgres(parsed, pool_size, answer_seconds)
    form = "the database must be sqlite:///FILE or postgresql+psycopg://..."
    if parsed.drivername.partition("+")[0] in ("postgres", "postgresql"):
        raise ConfigurationError(
            f"{form}: write postgresql+psycopg:// for {parsed.drivername}://, the rest as it is"
        )
    raise ConfigurationError(f"{form}, not {parsed.drivername}")
