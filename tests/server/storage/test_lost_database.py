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


def test_the_same_trouble_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
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
    """As after a switchover: the session lives and rejects, and only a new one comes to the server
    that writes.
    """
    storage = open_storage(fresh)
    seq = open_round(storage)
    group = Group(seq, [Submitted(b"a", (1,))])
    name = make_url(fresh).database
    with cluster.connect() as admin:
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        storage.database.engine.dispose()
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                storage.commit([group])
        with pytest.raises(StoreUnavailableError):
            storage.check_writable()
        admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert storage.commit([group]) == [[Outcome.STORED]]


@pytest.mark.postgres
def test_one_statement_commit_notices_a_read_only_server(
    open_storage: OpenStorage, fresh: str, cluster: Cluster
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)
    for name in (b"a", b"b"):
        storage.commit([Group(seq, [Submitted(name, (1,))])])
    kept = kept_session(storage)
    kept.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    kept.commit()
    group = Group(seq, [Submitted(b"c", (1,))])
    with pytest.raises(StoreUnavailableError):
        storage.commit([group])
    assert kept.closed
    assert storage.commit([group]) == [[Outcome.STORED]]
    assert storage.rounds.tally(seq, 6).n == 3


@pytest.mark.postgres
def test_ended_session_is_noticed_before_or_by_the_commit(
    open_storage: OpenStorage, fresh: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(fresh)
    seq = open_round(storage)

    def commit(name: bytes) -> list[list[Outcome]]:
        return storage.commit([Group(seq, [Submitted(name, (1,))])])

    def end_kept() -> None:
        with cluster.connect() as admin:
            admin.execute(
                "SELECT pg_terminate_backend(%s, 30000)", [kept_session(storage).info.backend_pid]
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
    assert isinstance(storage.database, Postgres)
    monkeypatch.setattr(storage.database.one_statement, "_idle_seconds", -1.0)
    assert commit(b"e") == [[Outcome.STORED]]
    storage.database.one_statement.close()
    storage.database.engine.pool.dispose()
    let_in(False)
    with pytest.raises(OperationalError):
        storage.database.one_statement.begin()
    let_in(True)
    assert commit(b"f") == [[Outcome.STORED]]
    assert storage.rounds.tally(seq, 6).n == 6


@pytest.mark.postgres
def test_pinned_session_prepares_deallocated_statements_again(
    open_storage: OpenStorage, fresh: str
) -> None:
    """psycopg has the server forget them after a rollback, on a session that the pool had lent out
    before.
    """
    storage = open_storage(fresh)
    seq = open_round(storage)
    for name in (b"a", b"b"):
        assert storage.commit([Group(seq, [Submitted(name, (1,))])]) == [[Outcome.STORED]]
    session = kept_session(storage)
    session.autocommit = True
    session.execute("DEALLOCATE ALL")
    session.autocommit = False
    assert storage.commit([Group(seq, [Submitted(b"c", (1,))])]) == [[Outcome.STORED]]
    assert kept_session(storage) is session
    assert storage.rounds.tally(seq, 6).n == 3


def kept_session(storage: Storage) -> Session:
    assert isinstance(storage.database, Postgres)
    return storage.database.one_statement.session
