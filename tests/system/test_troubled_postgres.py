"""A Postgres that deadlocks, hangs, ends a session or is away: transactions are run again and count
once, and processes wait.
"""

import asyncio
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg
import pytest
from tests.conftest import PACKED, ServerProcess, StartServer
from tests.postgres import Cluster
from tests.system.conftest import Clients, distinct_submissions, workers_of

from ldprecover_server import ConfigurationError, Settings, serve

pytestmark = pytest.mark.postgres

WAITS = (
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'ldprecover' AND "
    "wait_event_type = 'Lock'"
)


IMPATIENT = """
from ldprecover_server.storage.backends import postgres, postgres_timeouts
postgres.PING_SECONDS = postgres_timeouts.PING_SECONDS = 1.0
"""
"""Shortens the timeout of new connections, which no setting does."""


@pytest.fixture(scope="module")
def troubled() -> Iterator[Cluster]:
    """A Postgres that these tests may stop."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def database(troubled: Cluster) -> Iterator[str]:
    """A migrated database of the test's own."""
    with troubled.database() as name:
        yield name


def packed(*items: int) -> bytes:
    return np.array(items, dtype="<u4").tobytes()


def one_that_waits(watcher: psycopg.Connection) -> int:
    """Wait until a server waits for a lock, and return its backend."""
    while True:
        if row := watcher.execute(WAITS).fetchone():
            return int(row[0])


def tries_again(server: ServerProcess) -> int:
    return server.log.read_text().count("the commit is retried")


@pytest.mark.parametrize(
    "state", ["40001", "40P01"], ids=["serialisation failure", "deadlock detected"]
)
def test_commit_that_gives_up_is_retried_and_counts_once(
    start_server: StartServer, troubled: Cluster, database: str, state: str
) -> None:
    """By its SQLSTATE, as Postgres gives it to one of two sessions in conflict."""
    with troubled.connect(database) as other:
        other.execute("CREATE SEQUENCE commits")
        other.execute(
            "CREATE FUNCTION give_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF nextval('commits') <= 3 THEN RAISE EXCEPTION SQLSTATE '{state}'; END IF;"
            " RETURN NULL; END $$"
        )
        # Deferred: it is COMMIT itself that fails.
        other.execute(
            "CREATE CONSTRAINT TRIGGER give_up AFTER INSERT ON segments DEFERRABLE INITIALLY "
            "DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION give_up()"
        )
    server = start_server(troubled.url(database))
    id = server.open_round()["id"]
    assert server.submit(id, packed(1), "key").json() == {
        "round": id,
        "accepted": 1,
        "duplicate": False,
    }
    assert tries_again(server) == 3
    assert server.frequencies(id)["counts"] == [0, 1, 0, 0]


def test_session_ended_during_its_commit_is_replaced(
    start_server: StartServer, troubled: Cluster, database: str
) -> None:
    """As an administrator's pg_terminate_backend or a failover does."""
    server = start_server(troubled.url(database))
    id = server.open_round()["id"]
    assert server.submit(id, packed(0), "first").status_code == 202
    with (
        ThreadPoolExecutor() as pool,
        troubled.connect(database) as other,
        troubled.connect(database) as watcher,
    ):
        with other.transaction():
            other.execute("SELECT FROM tallies FOR UPDATE")
            answer = pool.submit(server.submit, id, packed(1), "second")
            for _ in range(3):
                before = tries_again(server)
                watcher.execute("SELECT pg_terminate_backend(%s)", [one_that_waits(watcher)])
                while tries_again(server) == before:
                    pass
        assert answer.result().json() == {"round": id, "accepted": 1, "duplicate": False}
    assert server.frequencies(id)["counts"] == [1, 1, 0, 0]


def test_hanging_database_is_503_and_retries_count_once(
    start_server: StartServer, troubled: Cluster, database: str
) -> None:
    """It is stopped until all have their answers: those who submit, and those who read."""
    server = start_server(troubled.url(database), first=IMPATIENT, request_seconds=1)
    clients = Clients(server, server.open_round(domain_size=100)["id"], connections=12)
    submissions = distinct_submissions(24, 100)
    clients.submit(submissions[:12])

    async def read(http: httpx.AsyncClient) -> None:
        paths = [f"/rounds/{clients.round_id}/frequencies", "/rounds", "/readyz"]
        for answer in await asyncio.gather(*(http.get(path) for path in paths)):
            problem = answer.headers["content-type"] == "application/problem+json"
            assert (answer.status_code, problem) == (503, True), answer.url
            assert int(answer.headers["retry-after"]) >= 1
        assert (await http.get("/healthz")).status_code == 200

    with troubled.hung():
        clients.submit(submissions[12:], read, read)
        assert len(clients.answered(503)) == 12
        assert all(
            int(clients.answers[s.key].headers["retry-after"]) >= 1 for s in clients.answered(503)
        )
    again = Clients(server, clients.round_id, connections=12)
    again.submit(submissions)
    assert len(again.answered(202)) == 24
    expected = np.zeros(100, dtype=np.int64)
    expected[: sum(len(submission.items) for submission in submissions)] = 1
    assert np.array_equal(clients.counts, expected)
    while server.http.get("/readyz").status_code != 200:
        pass  # the result of the last check is kept for a second


def test_server_stops_in_time_while_the_database_hangs(
    start_server: StartServer, troubled: Cluster, database: str
) -> None:
    """Its writer holds a group, others wait, somebody reads, and a rejection is to be written
    down.
    """
    server = start_server(
        troubled.url(database), first=IMPATIENT, request_seconds=1, shutdown_seconds=1
    )
    id = server.open_round()["id"]
    assert server.submit(id, packed(0), "first").status_code == 202
    assert server.submit(id, packed(9), "refused").status_code == 422
    url = f"{server.url}/rounds/{id}"
    options: dict[str, Any] = {"timeout": 60, "trust_env": False}
    post = partial(httpx.post, f"{url}/reports", content=packed(1), **options)
    with ThreadPoolExecutor() as pool, troubled.hung():
        keyed = [PACKED | {"Idempotency-Key": f"key-{i}"} for i in range(4)]
        waiting = [pool.submit(post, headers=headers) for headers in keyed]
        waiting += [pool.submit(httpx.get, f"{url}/frequencies", **options) for _ in range(2)]
        while "ldprecover_queue_submissions 0" in server.http.get("/metrics").text:
            pass  # the writer has none of them yet
        server.signal(signal.SIGTERM)
        assert server.wait() == -signal.SIGTERM
    errors = [answer.exception() for answer in waiting]
    assert all(isinstance(error, httpx.TransportError | None) for error in errors)
    statuses = {answer.result().status_code for answer in waiting if not answer.exception()}
    assert statuses == {503}, "no connection came too late"
    assert "Traceback" not in server.log.read_text()
    server.start()
    for i in range(4):
        assert server.submit(id, packed(1), f"key-{i}").status_code == 202
    assert server.frequencies(id)["counts"] == [1, 4, 0, 0]


WAITS_FOR_DATABASE = "the server waits for it"


@pytest.fixture
def waiting(start_server: StartServer, troubled: Cluster, database: str) -> Iterator[ServerProcess]:
    """A server whose two processes have ended, and started again, while Postgres is away."""
    server = start_server(troubled.url(database), workers=2, shutdown_seconds=1000)
    server.open_round(name="r")
    troubled.kill()
    for worker in workers_of(server):
        worker.kill()
    while server.log.read_text().count(WAITS_FOR_DATABASE) < 2:
        assert server.exit_status(0.01) is None
    yield server
    troubled.start()


def test_processes_that_ended_without_database_serve_after_its_return(
    waiting: ServerProcess, troubled: Cluster
) -> None:
    troubled.start()
    for worker in workers_of(waiting):  # the other one serves alone
        worker.suspend()
        with waiting.connect() as connection:
            connection.sendall(b"GET /rounds/r HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        worker.resume()
    troubled.kill()


def test_signal_ends_processes_that_wait_for_the_database(waiting: ServerProcess) -> None:
    waiting.signal(signal.SIGTERM)
    assert waiting.wait() == -signal.SIGTERM


def test_start_waits_for_the_database_and_says_so_once(
    troubled: Cluster, database: str, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path, troubled.url(database), kernels="numpy")
    with ThreadPoolExecutor() as pool:
        troubled.kill()
        started = pool.submit(server.start)
        while not server.lines:
            assert not started.done()
        troubled.start()
        started.result()
    assert [WAITS_FOR_DATABASE in line for line in server.lines[:2]] == [True, False]
    server.kill()


def test_missing_database_is_not_waited_for(troubled: Cluster) -> None:
    with pytest.raises(ConfigurationError, match='"nope" does not exist'):
        serve(Settings(database_url=troubled.url("nope"), port=0))


def test_process_that_cannot_serve_ends_the_server_with_an_error(
    start_server: StartServer, troubled: Cluster, database: str
) -> None:
    server = start_server(troubled.url(database), workers=2)
    with server.sql() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'other'")
    workers_of(server)[0].kill()
    assert server.wait() > 0
    assert "a server process cannot start" in server.log.read_text()
