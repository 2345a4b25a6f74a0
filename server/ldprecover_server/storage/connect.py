"""Connects to the database at a URL."""

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from ldprecover_server.errors import ConfigurationError
from ldprecover_server.storage.backends.sqlite import SQLite
from ldprecover_server.storage.database import Database


def connect(url: str, *, pool_size: int = 10, statement_seconds: float | None = None) -> Database:
    """Return the database at sqlite:///FILE or postgresql+psycopg://...; it connects on first use.

    A Postgres statement without an answer after `statement_seconds` fails. Raises
    ConfigurationError for an unreadable URL or another kind of database.
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
        return Postgres(parsed, pool_size, statement_seconds)
    form = "the database must be sqlite:///FILE or postgresql+psycopg://..."
    if parsed.drivername.partition("+")[0] in ("postgres", "postgresql"):
        raise ConfigurationError(
            f"{form}: write postgresql+psycopg:// for {parsed.drivername}:// and keep the rest"
        )
    raise ConfigurationError(f"{form}, not {parsed.drivername}")
