"""A database that is lost or changes its role: errors of callers, and new connections."""

import logging
from contextlib import closing

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError
from tests.postgres import Cluster
from tests.server.storage.conftest import OpenStorage, Submitted, commit, open_round

from ldprecover_server.errors import (
    ConfigurationError,
    DatabaseAwayError,
    StoreUnavailableError,
)
from ldprecover_server.storage import Outcome, Storage
from ldprecover_server.storage.backends.postgres import Postgres
from ldprecover_server.storage.backends.postgres_timeouts import Session

NOWHERE = "postgresql+psycopg://someone@/reports?host=/no/such/folder"


def test_only_the_operator_sees_the_database_address(caplog: pytest.LogCaptureFixture) -> None:
    storage = Storage(NOWHERE)
    with caplog.at_level(logging.WARNING), pytest.raises(StoreUnavailableError) as refused:
        storage.rounds.find("current")
    assert str(refused.value) == "the database does not answer"
    assert "/no/such/folder" in caplog.text
    caplog.clear()
    with pytest.raises(ConfigurationError, match="/no/such/folder"):
        storage.prepare()
    assert caplog.text == ""  # the error has said it
    with pytest.raises(StoreUnavailableError):
        storage.rounds.find("current")
    storage.close()


@pytest.mark.parametrize("options", ["?sslmode=required", "?port=99999"])
def test_impossible_option_of_the_url_is_not_waited_for(options: str) -> None:
    with closing(Storage(f"postgresql://app@127.0.0.1/db{options}")) as storage:
        with pytest.raises(ConfigurationError, match=r"serve as database: .*invalid") as refused:
            storage.prepare()
        assert not isinstance(refused.value, DatabaseAwayError)
        assert "does not answer" not in str(refused.value)


def test_repeated_error_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    storage = Storage(NOWHERE)
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            with pytest.raises(StoreUnavailableError):
                storage.rounds.find("current")
    assert len(caplog.records) < 50
    storage.close()


@pytest.mark.postgres
def test_reconnects_when_the_server_becomes_read_only(
    open_storage: OpenStorage, fresh: str, cluster: Cluster
) -> None:
    """As after a switchover: the session lives and rejects writes, and only a new one may write."""
    storage = open_storage(fresh)
    seq = open_round(storage)
    submitted = Submitted(b"a", (1,))
    name = make_url(fresh).database
    with cluster.connect() as admin:
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        storage.database.engine.dispose()
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                commit(storage, seq, submitted)
        with pytest.raises(StoreUnavailableError):
            storage.check_writable()
        admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert commit(storage, seq, submitted) == [Outcome.STORED]


@pytest.mark.postgres
def test_one_statement_commit_notices_a_read_only_server(
    open_storage: OpenStorage, fresh: str, cluster: Cluster
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    for name in (b"a", b"b"):
        commit(storage, seq, Submitted(name, (1,)))
    session = pinned_session(storage)
    session.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    session.commit()
    submitted = Submitted(b"c", (1,))
    with pytest.raises(StoreUnavailableError):
        commit(storage, seq, submitted)
    assert session.closed
    assert commit(storage, seq, submitted) == [Outcome.STORED]
    assert storage.rounds.tally([seq], 6).n == 3


@pytest.mark.postgres
def test_ended_session_is_noticed_before_or_by_the_commit(
    open_storage: OpenStorage, fresh: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)

    def add(name: bytes) -> list[Outcome]:
        return commit(storage, seq, Submitted(name, (1,)))

    def end_session() -> None:
        with cluster.connect() as admin:
            admin.execute(
                "SELECT pg_terminate_backend(%s, 30000)", [pinned_session(storage).info.backend_pid]
            )

    def allow_connections(allowed: bool) -> None:
        with cluster.connect() as admin:
            admin.execute(f"ALTER DATABASE {make_url(fresh).database} ALLOW_CONNECTIONS {allowed}")

    add(b"a"), add(b"b")
    end_session()
    with pytest.raises(StoreUnavailableError):
        add(b"c")
    add(b"c"), add(b"d")
    end_session()
    assert isinstance(storage.database, Postgres)
    monkeypatch.setattr(storage.database.one_statement, "_idle_seconds", -1.0)
    assert add(b"e") == [Outcome.STORED]
    storage.database.one_statement.close()
    storage.database.engine.pool.dispose()
    allow_connections(False)
    with pytest.raises(OperationalError):
        storage.database.one_statement.begin()
    allow_connections(True)
    assert add(b"f") == [Outcome.STORED]
    assert storage.rounds.tally([seq], 6).n == 6


@pytest.mark.postgres
def test_pinned_session_prepares_deallocated_statements_again(
    open_storage: OpenStorage, fresh: str
) -> None:
    """psycopg deallocates them after a rollback."""
    storage = open_storage(fresh)
    seq = open_round(storage)
    for name in (b"a", b"b"):
        commit(storage, seq, Submitted(name, (1,)))
    session = pinned_session(storage)
    session.autocommit = True
    session.execute("DEALLOCATE ALL")
    session.autocommit = False
    assert commit(storage, seq, Submitted(b"c", (1,))) == [Outcome.STORED]
    assert pinned_session(storage) is session
    assert storage.rounds.tally([seq], 6).n == 3


def pinned_session(storage: Storage) -> Session:
    assert isinstance(storage.database, Postgres)
    return storage.database.one_statement.session
