"""The settings of a Postgres session on which promises rest: sent when it opens, and read back.

As start-up parameters they would not pass a pooler.
"""

import contextlib
import threading
from typing import Any

import psycopg
import sqlalchemy as sa

from ldprecover_server.errors import StoreUnavailableError
from ldprecover_server.storage.backends.postgres_arrays import register
from ldprecover_server.storage.backends.postgres_timeouts import Session

_SET = """
SET synchronous_commit = 'on';
SET default_transaction_isolation = 'read committed';
SET statement_timeout = '1min';
SET lock_timeout = '30s';
SET client_encoding = 'UTF8';
SET row_security = 'off';
"""
_READ = """
SELECT pg_backend_pid(), string_agg(
    name || ' is ' || current_setting(name) || ', not ' || expected || CASE name
        WHEN 'server_encoding' THEN '; CREATE DATABASE needs ENCODING ''UTF8'' TEMPLATE template0'
        WHEN 'default_transaction_read_only' THEN '; name its primary, or RESET it'
        ELSE '; pool by session (PgBouncer: pool_mode = session)'
    END, ', '
) FILTER (WHERE current_setting(name) <> expected)
FROM (VALUES
    ('synchronous_commit', 'on'),
    ('default_transaction_isolation', 'read committed'),
    ('statement_timeout', '1min'),
    ('lock_timeout', '30s'),
    ('client_encoding', 'UTF8'),
    ('row_security', 'off'),
    ('default_transaction_read_only', 'off'),
    ('server_encoding', 'UTF8')
) AS settings (name, expected)
"""


def open_sessions(engine: sa.Engine, seconds: float | None) -> None:
    """Make an engine's connections sessions with these settings.

    They wait at most `seconds` for an answer. Connecting raises StoreUnavailableError if a setting
    differs, or if a pooler changes the session between transactions.
    """
    checked = threading.Event()

    def connect(
        dialect: Any,
        record: Any,
        positional: tuple[Any, ...],
        named: dict[str, Any],
        other: Session | None = None,
    ) -> Session:
        session = Session.connect(*positional, **named)
        session.seconds = seconds
        register(session)
        try:
            _configure(session, other)
            if other is None and not checked.is_set():
                # A pooler by transaction gives a free session to any connection; one by session
                # may have no second one.
                with contextlib.suppress(psycopg.OperationalError):
                    connect(dialect, record, positional, named, session).close()
                    checked.set()
        except BaseException:
            session.close()
            raise
        return session

    sa.event.listen(engine, "do_connect", connect)
    # The next connection may be to another pooler.
    sa.event.listen(engine, "invalidate", lambda *connection: checked.clear())


def _configure(session: Session, other: Session | None) -> None:
    """Send the settings and read them back. Raises StoreUnavailableError if it is `other` again.

    Nothing is sent in a transaction, whose end could undo it.
    """
    with session.checking():
        session.execute("DISCARD ALL")  # what another client of a pooler left
        session.cursor().execute(_SET, binary=False)
        # A pooler may by chance give a transaction the session of the one before.
        rows: set[Any] = {session.execute(_READ, prepare=False).fetchone() for _ in range(8)}
    session.check = _READ, rows
    if len(rows) > 1 or (other and session.check == other.check):
        raise StoreUnavailableError(
            "a pooler changes the session between transactions; pool by session "
            "(PgBouncer: pool_mode = session)"
        )
    ((_, differing),) = rows
    if differing:
        raise StoreUnavailableError(differing)
