"""The public interface of the database: its parts, the commit, and the schema."""

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from ldprecover_server.errors import (
    ConfigurationError,
    DatabaseAwayError,
    ServiceError,
    StorageFullError,
    StoreUnavailableError,
)
from ldprecover_server.storage import migrations
from ldprecover_server.storage.acts import ActStore
from ldprecover_server.storage.backends.sqlite import SQLite
from ldprecover_server.storage.commit import Commit
from ldprecover_server.storage.database import Clock, Database, Repository, utc_now
from ldprecover_server.storage.forms import FormStore
from ldprecover_server.storage.keys import Keys
from ldprecover_server.storage.maintenance.check import Finding, check
from ldprecover_server.storage.maintenance.deletion import Deletion
from ldprecover_server.storage.rounds import RoundStore
from ldprecover_server.storage.schema import metadata, rounds, secrets
from ldprecover_server.storage.segments import Segments
from ldprecover_server.storage.series import SeriesStore
from ldprecover_server.storage.verdicts import VerdictStore

_PROBE_BYTES = 1 << 18
_AWAY_SECONDS = 1.0

_REFUSED = re.compile(
    "authentication|does not exist|no password|pg_hba|invalid|does not support|certificate"
)
"""Finds that the URL, the database or its server must change, however long one waits."""

_ODD = re.compile("[@;#=%]|/.*:")
"""Finds a character that neither a host nor the name of a database has."""

_SECOND_AT = re.compile(r"@[^?]*\?.*@")
"""Finds an @ after the end of the host."""

_NAMES = re.compile(
    "(pgbouncer|(connection|pool|socket|max|min)_[a-z_]+|pool|schema|supa|ssl|sslaccept|sslcert|"
    "statement_cache_size|prepared_?statements?|prepare_threshold|charset|encoding|driver|"
    "reconnect|workaround|currentSchema|ApplicationName|[a-z]+Timeout|[a-z]+_mode)+"
)
"""Options in URLs of hosting services; any other name may be a part of an unescaped password."""

_UNREADABLE = (
    "the database URL cannot be read, or has quotes or an option unknown to libpq; percent-encode "
    "other characters than letters and digits in its user and password, such as @ as %40; name a "
    "socket's folder as ?host=/FOLDER; or try sqlite:///ldprecover.db"
)


class Storage(Repository):
    """Everything the service stores. Methods are safe to call from several threads."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        statement_seconds: float | None = None,
        clock: Clock = utc_now,
    ) -> None:
        database = _connect(url, pool_size, statement_seconds)
        super().__init__(database, clock)
        self.is_checked = False
        """Whether its tables were read and written when the server started."""
        self.commit = Commit(database, clock)
        self.acts = ActStore(database, clock)
        self.rounds = RoundStore(database, clock, self.acts)
        self.forms = FormStore(database, clock, self.rounds)
        self.series = SeriesStore(database, clock, self.rounds, self.forms)
        self.segments = Segments(database, clock)
        self.keys = Keys(database, clock, self.acts)
        self.verdicts = VerdictStore(database, clock)
        self.deletion = Deletion(database, clock, self.acts)

    def prepare(self, *, claim: bool = False, migrate: bool = True) -> None:
        """Ensure that the database has this version's schema; `migrate` upgrades a SQLite file.

        With `claim` this process serves it. Raises ConfigurationError, for a Postgres that does not
        answer DatabaseAwayError.
        """
        with self._configuration_errors("serve as database"):
            if claim:
                self.database.claim()
            if migrate and self.database.dialect == "sqlite":
                migrations.migrate(self.database)
            else:
                migrations.check(self.database)
            if migrate and not self.is_checked:
                # Without a table, a column, or a right that the server needs, one of these fails.
                with self.database.write() as connection:
                    for table in metadata.sorted_tables:
                        no_rows = sa.select(table).where(sa.false()).with_for_update()
                        connection.execute(sa.insert(table).from_select(table.c.keys(), no_rows))
                        connection.execute(sa.delete(table).where(sa.false()))
                self.is_checked = True

    def prepare_when_available(
        self, report: Callable[[str], object], stopping: threading.Event, *, claim: bool
    ) -> bool:
        """Prepare the database once it answers; return False if `stopping` is set before.

        `report` is called once with the reason of a delay. Raises ConfigurationError.
        """
        is_reported = False
        while not stopping.is_set():
            try:
                self.prepare(claim=claim)
            except DatabaseAwayError as error:
                if not is_reported:
                    report(" ".join(f"{error}; the server waits for it".split()))
                    is_reported = True
                stopping.wait(_AWAY_SECONDS)
            else:
                return True
        return False

    def migrate(self) -> list[str]:
        """Upgrade the schema to this version's; return the revisions that it lacked.

        Raises ConfigurationError.
        """
        with self._configuration_errors("be migrated"):
            return migrations.migrate(self.database)

    @contextlib.contextmanager
    def _configuration_errors(self, purpose: str) -> Iterator[None]:
        """Raise errors of the database as ConfigurationError, with the database's own message."""
        try:
            with self.database.without_error_log():
                yield
        except (ServiceError, sa.exc.DatabaseError) as error:
            reason = _reason(error)
            message = f"{self.database.name} cannot {purpose}: {reason}"
            # Without a cause it has answered: a setting of the session is at fault.
            is_silent = error.__cause__ is not None and not _REFUSED.search(reason)
            is_away = isinstance(error, StoreUnavailableError | StorageFullError) and (
                self.is_checked or is_silent
            )
            if is_away and self.database.dialect == "postgresql":
                raise DatabaseAwayError(message) from error
            raise ConfigurationError(message) from error

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def check_writable(self, *, with_space: bool = False) -> None:
        """Write a few bytes durably, or 256 KiB `with_space`; the database does not grow.

        Raises StoreUnavailableError or StorageFullError.
        """
        with self.database.write() as connection:
            connection.execute(sa.update(rounds).where(rounds.c.seq == 0).values(seq=0))
            if with_space:
                probe = {
                    "name": f"probe-{self.database.process}",
                    "value": os.urandom(_PROBE_BYTES),
                }
                connection.execute(sa.insert(secrets), probe)
                connection.execute(sa.delete(secrets).where(secrets.c.name == probe["name"]))
            else:
                self.database.write_nothing(connection)

    def check(self) -> list[Finding]:
        """Return what in the database does not agree. Raises StoreUnavailableError."""
        return check(self.database)


def _connect(url: str, pool_size: int, statement_seconds: float | None) -> Database:
    """Return the database at sqlite:///FILE or postgresql://...; it connects on first use.

    postgres:// is Postgres too, and psycopg its driver, whatever driver the URL names. A statement
    without an answer after `statement_seconds` fails. Raises ConfigurationError for an unreadable
    URL or another kind of database.
    """
    try:
        parsed = sa.make_url(url)
        if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
            return SQLite(parsed)
        if parsed.get_backend_name() in ("postgres", "postgresql"):
            from ldprecover_server.storage.backends.postgres import OPTIONS, Postgres

            # What Postgres's errors name must be no part of an unescaped password.
            named = f"{parsed.host}/{parsed.database}"
            if _ODD.search(named) or _SECOND_AT.search(url):
                raise ArgumentError
            unknown = parsed.query.keys() - OPTIONS
            if unknown and not _NAMES.fullmatch("".join(unknown)):
                raise ArgumentError
            if unknown:
                raise ConfigurationError(
                    f"the database URL has {', '.join(sorted(unknown))}, which Postgres does not "
                    "know: leave out options of other programs"
                )
            parsed = parsed.set(drivername="postgresql+psycopg")
            return Postgres(parsed, pool_size, statement_seconds)
    except ImportError as error:  # psycopg is an extra
        raise ConfigurationError(
            "Postgres needs the extra: pip install 'ldprecover[postgres]', or in a clone: "
            "make ldprecover EXTRAS=postgres"
        ) from error
    except (ArgumentError, ValueError, OSError):  # whose text may have a part of the password
        raise ConfigurationError(_UNREADABLE) from None
    raise ConfigurationError("the database must be sqlite:///FILE or postgresql://...")


def _reason(error: Exception) -> str:
    """Return a message for the operator, with the database's own message."""
    if isinstance(error, sa.exc.DBAPIError):
        return str(error.orig)
    cause = error.__cause__
    if not isinstance(cause, sa.exc.DBAPIError):
        return str(error)
    answer = str(cause.orig)
    return answer if _REFUSED.search(answer) else f"{error}: {answer}"
