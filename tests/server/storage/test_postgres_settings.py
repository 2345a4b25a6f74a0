"""Postgres sessions: their settings hold behind a pooler and against the database's own, or no
server starts.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from tests.pooled import pooled
from tests.postgres import Cluster
from tests.server.storage.conftest import OpenStorage, Submitted, commit, open_round

from ldprecover_server import ConfigurationError, Settings, create_key, list_keys, migrate, serve
from ldprecover_server.errors import StoreUnavailableError
from ldprecover_server.storage import Outcome, Storage
from ldprecover_server.storage.backends import postgres

pytestmark = pytest.mark.postgres

SETTINGS = {
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "statement_timeout": "1min",
    "lock_timeout": "30s",
    "client_encoding": "UTF8",
}
WEAKER = {
    "synchronous_commit": "off",
    "default_transaction_isolation": "serializable",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "client_encoding": "LATIN1",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for PgBouncer's socket, whose path has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="ldp-pool-") as folder:
        yield Path(folder)


@pytest.fixture
def behind(fresh: str, cluster: Cluster, folder: Path) -> str:
    """The URL of a database of the test's own through the pooler in the folder."""
    return cluster.url(make_url(fresh).database or "", host=str(folder), port=6432)


def assert_settings_hold(storage: Storage) -> None:
    """Read the settings of several open connections."""
    with ExitStack() as stack:
        for _ in range(3):
            connection = stack.enter_context(storage.database.engine.connect())
            assert {
                name: connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in SETTINGS
            } == SETTINGS


@pytest.mark.parametrize(
    "settings",
    [{}, {"ignore_startup_parameters": "options"}, {"server_reset_query": ""}],
    ids=["plain", "ignores options", "resets nothing"],
)
def test_settings_hold_behind_a_pooler_by_session(
    cluster: Cluster, behind: str, folder: Path, settings: dict[str, str]
) -> None:
    """Also in a session that another client left with weaker settings and our statement."""
    with pooled(cluster, folder, pool_mode="session", **settings):
        for name in (b"a", b"b"):
            with closing(Storage(behind)) as storage:
                storage.prepare(claim=True)
                assert_settings_hold(storage)
                seq = open_round(storage)
                for key in (b"a" + name, b"b" + name, b"c" + name):
                    assert commit(storage, seq, Submitted(key, (1,))) == [Outcome.STORED]
            database = make_url(behind).database
            with psycopg.connect(
                dbname=database, host=str(folder), port=6432, user="postgres", autocommit=True
            ) as other:
                for setting, value in WEAKER.items():
                    other.execute(f"SET {setting} = '{value}'")


@pytest.mark.parametrize(
    "settings",
    [
        {"pool_mode": "transaction"},
        {"pool_mode": "transaction", "ignore_startup_parameters": "options"},
        {"pool_mode": "transaction", "default_pool_size": 1},
        {"pool_mode": "transaction", "server_round_robin": 1, "min_pool_size": 2},
        {"pool_mode": "transaction", "server_round_robin": 1, "min_pool_size": 5},
        {"pool_mode": "transaction", "server_reset_query_always": 1},
        {"pool_mode": "statement"},
    ],
    ids=lambda settings: " ".join(map(str, settings.values())),
)
def test_pooling_by_transaction_is_refused(
    cluster: Cluster, behind: str, folder: Path, settings: dict[str, object]
) -> None:
    calls: list[Callable[[Settings], object]] = [serve, migrate, create_key, list_keys]
    with pooled(cluster, folder, **settings):
        for call in calls:
            with pytest.raises(ConfigurationError, match="pool_mode = session"):
                call(Settings(database_url=behind, port=0))


def test_pooler_that_changes_its_mode_is_refused(
    cluster: Cluster, behind: str, folder: Path
) -> None:
    with ExitStack() as stack:
        with pooled(cluster, folder, pool_mode="session"):
            storage = stack.enter_context(closing(Storage(behind)))
            storage.prepare(claim=True)
            seq = open_round(storage)
            for name in (b"a", b"b"):
                commit(storage, seq, Submitted(name, (1,)))
        with pooled(cluster, folder, pool_mode="transaction"):
            for _ in range(2):
                with pytest.raises(StoreUnavailableError):
                    commit(storage, seq, Submitted(b"c", (1,)))
            with pytest.raises(StoreUnavailableError, match="pool_mode = session"):
                storage.check_writable()
        with pooled(cluster, folder, pool_mode="session"):
            storage.database.engine.dispose()
            storage.database.keep_claim()
            assert commit(storage, seq, Submitted(b"c", (1,))) == [Outcome.STORED]


def test_pooler_whose_mode_is_set_while_it_runs_is_refused(
    cluster: Cluster, behind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections stay open, and their sessions change."""
    monkeypatch.setattr(postgres, "_IDLE_SECONDS", -1.0)  # each connection is checked before use
    with (
        pooled(cluster, folder, pool_mode="session", admin_users="console"),
        closing(Storage(behind)) as storage,
    ):
        storage.prepare(claim=True)
        storage.check_writable()
        with psycopg.connect(
            dbname="pgbouncer", host=str(folder), port=6432, user="console", autocommit=True
        ) as console:
            console.execute("SET pool_mode = 'transaction'")
        storage.check_writable()  # in the session that it had, which is free from now on
        storage.database.keep_claim()
        with pytest.raises(StoreUnavailableError, match="pool_mode = session"):
            storage.check_writable()


def test_warns_of_settings_that_only_the_database_has(
    open_storage: OpenStorage, fresh: str, caplog: pytest.LogCaptureFixture
) -> None:
    open_storage(fresh).database.claim()
    assert [record.getMessage() for record in caplog.records] == [
        "the database has fsync = off; see deploying.md"
    ]


def test_pooler_without_a_second_session_is_no_error(
    cluster: Cluster, behind: str, folder: Path
) -> None:
    with pooled(cluster, folder, pool_mode="session", default_pool_size=1, query_wait_timeout=1):
        assert list_keys(Settings(database_url=behind)) == []


@pytest.mark.parametrize("place", ["DATABASE", "ROLE", "URL"])
def test_settings_of_database_role_and_url_are_overruled(
    open_storage: OpenStorage, fresh: str, cluster: Cluster, place: str
) -> None:
    url = make_url(fresh)
    with cluster.connect() as admin, ExitStack() as undo:
        if place == "URL":
            options = " ".join(f"-c {name}={value}" for name, value in WEAKER.items())
            url = url.update_query_dict({"options": options})
        else:
            name = url.database if place == "DATABASE" else "weak"
            undo.callback(admin.execute, "DROP ROLE IF EXISTS weak")
            admin.execute("CREATE ROLE weak SUPERUSER LOGIN")
            for setting, value in WEAKER.items():
                admin.execute(f"ALTER {place} {name} SET {setting} = '{value}'")
            url = url.set(username="weak")
        storage = open_storage(url.render_as_string(hide_password=False))
        assert_settings_hold(storage)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_url_of_another_scheme_opens_the_database(fresh: str, scheme: str) -> None:
    url = make_url(fresh).set(drivername=scheme, password="p@ss/1?")
    url = url.update_query_dict({"sslmode": "prefer"})
    with closing(Storage(url.render_as_string(hide_password=False))) as storage:
        storage.prepare()
        assert storage.database.engine.url.password == "p@ss/1?"
        assert "p@ss" not in storage.database.name


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_TW"])
def test_database_in_another_encoding_is_refused(cluster: Cluster, encoding: str) -> None:
    with cluster.connect() as admin, ExitStack() as undo:
        admin.execute(f"CREATE DATABASE other ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'")
        undo.callback(cluster.drop, "other")
        settings = Settings(database_url=cluster.url("other"), port=0)
        for call in (migrate, serve):
            with pytest.raises(
                ConfigurationError, match=f"server_encoding is {encoding}, not UTF8"
            ):
                call(settings)


RIGHTS = "SELECT, INSERT, UPDATE, DELETE"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *(
            (f"REVOKE {right} ON {table} FROM app", f"permission denied for table {table}")
            for table in ("keys", "segments", "tallies", "verdicts")
            for right in RIGHTS.split(", ")
        ),
        ("ALTER TABLE tallies ENABLE ROW LEVEL SECURITY", 'row-level security.*"tallies"'),
        (
            "ALTER ROLE app SET default_transaction_read_only = on",
            "default_transaction_read_only is on, not off; name its primary",
        ),
    ],
)
def test_role_without_a_right_does_not_serve(
    fresh: str, cluster: Cluster, change: str, reason: str
) -> None:
    """Its server would answer with a 500, or not find the reports that a policy hides."""
    url = make_url(fresh)
    with ExitStack() as undo:
        admin = undo.enter_context(cluster.connect(str(url.database)))
        admin.execute("CREATE ROLE app LOGIN")
        undo.callback(admin.execute, "DROP ROLE app")
        undo.callback(admin.execute, "DROP OWNED BY app")
        admin.execute(f"GRANT {RIGHTS} ON ALL TABLES IN SCHEMA public TO app")
        app = url.set(username="app").render_as_string(hide_password=False)
        with closing(Storage(app)) as storage:
            storage.prepare(claim=True)
        admin.execute(change)
        with closing(Storage(app)) as storage, pytest.raises(ConfigurationError, match=reason):
            storage.prepare(claim=True)
