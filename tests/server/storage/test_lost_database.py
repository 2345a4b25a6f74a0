"""A database that is lost or changes its role: what callers are told, and what becomes of the
connections.
"""

import logging

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError
from tests.server.storage.conftest import Group, OpenStorage, Submitted, open_round
from tools.postgres import Cluster

from ldprecover_server.errors import ConfigurationError, StoreUnavailableError
from ldprecover_server.storage import Outcome, Storage
from ldprecover_server.storage.backends.postgres import Postgres
from ldprecover_server.storage.backends.postgres_timeouts import Session

NOWHERE = "postgresql+psycopg://someone@/reports?host=/no/such/folder"


def test_only_the_operator_is_told_the_database_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Storage(NOWHERE)
    with caplog.at_level(logging.WARNING), pytest.raises(StoreUnavailableError) as refused:
        store.rounds.find("current")
    assert str(refused.value) == "the database does not answer"
    assert "/no/such/folder" in caplog.text
    caplog.clear()
    with pytest.raises(ConfigurationError, match="/no/such/folder"):
        store.prepare()
    assert caplog.text == ""  # the error has said it
    with pytest.raises(StoreUnavailableError):
        store.rounds.find("current")
    store.close()


def test_the_same_trouble_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    store = Storage(NOWHERE)
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            with pytest.raises(StoreUnavailableError):
                store.rounds.find("current")
    assert len(caplog.records) < 50
    store.close()


@pytest.mark.postgres
def test_reconnects_when_the_server_becomes_read_only(
    open_store: OpenStorage, fresh: str, cluster: Cluster
) -> None:
    """As after a switchover: the session lives and rejects, and only a new one comes to the server
    that writes.
    """
    store = open_store(fresh)
    seq = open_round(store)
    group = Group(seq, [Submitted(b"a", (1,))])
    name = make_url(fresh).database
    with cluster.connect() as admin:
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        store.database.engine.dispose()
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                store.commit([group])
        with pytest.raises(StoreUnavailableError):
            store.check_writable()
        admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert store.commit([group]) == [[Outcome.STORED]]


@pytest.mark.postgres
def test_one_statement_commit_notices_a_read_only_server(
    open_store: OpenStorage, fresh: str, cluster: Cluster
) -> None:
    store = open_store(fresh)
    seq = open_round(store)
    for name in (b"a", b"b"):
        store.commit([Group(seq, [Submitted(name, (1,))])])
    kept = kept_session(store)
    kept.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    kept.commit()
    group = Group(seq, [Submitted(b"c", (1,))])
    with pytest.raises(StoreUnavailableError):
        store.commit([group])
    assert kept.closed
    assert store.commit([group]) == [[Outcome.STORED]]
    assert store.rounds.tally(seq, 6).n == 3


@pytest.mark.postgres
def test_ended_session_is_noticed_before_or_by_the_commit(
    open_store: OpenStorage, fresh: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(fresh)
    seq = open_round(store)

    def commit(name: bytes) -> list[list[Outcome]]:
        return store.commit([Group(seq, [Submitted(name, (1,))])])

    def end_kept() -> None:
        with cluster.connect() as admin:
            admin.execute(
                "SELECT pg_terminate_backend(%s, 30000)", [kept_session(store).info.backend_pid]
            )

    def let_in(allowed: bool) -> None:
        with cluster.connect() as admin:
            admin.execute(f"ALTER DATABASE {make_url(fresh).database} ALLOW_CONNECTIONS {allowed}")

    commit(b"a"), commit(b"b")
    end_kept()
    with pytest.raises(StoreUnavailableError):
        commit(b"c")
    commit(b"c"), commit(b"d")
    end_kept()
    assert isinstance(store.database, Postgres)
    monkeypatch.setattr(store.database.one_statement, "_idle_seconds", -1.0)
    assert commit(b"e") == [[Outcome.STORED]]
    store.database.one_statement.close()
    store.database.engine.pool.dispose()
    let_in(False)
    with pytest.raises(OperationalError):
        store.database.one_statement.begin()
    let_in(True)
    assert commit(b"f") == [[Outcome.STORED]]
    assert store.rounds.tally(seq, 6).n == 6


@pytest.mark.postgres
def test_pinned_session_prepares_deallocated_statements_again(
    open_store: OpenStorage, fresh: str
) -> None:
    """psycopg has the server forget them after a rollback, on a session that the pool had lent out
    before.
    """
    store = open_store(fresh)
    seq = open_round(store)
    for name in (b"a", b"b"):
        assert store.commit([Group(seq, [Submitted(name, (1,))])]) == [[Outcome.STORED]]
    session = kept_session(store)
    session.autocommit = True
    session.execute("DEALLOCATE ALL")
    session.autocommit = False
    assert store.commit([Group(seq, [Submitted(b"c", (1,))])]) == [[Outcome.STORED]]
    assert kept_session(store) is session
    assert store.rounds.tally(seq, 6).n == 3


def kept_session(store: Storage) -> Session:
    assert isinstance(store.database, Postgres)
    return store.database.one_statement.session
