"""Several server processes on one Postgres; what of them is killed, and what is lost on the way,
counts once.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
from tests.conftest import ADMIN_KEY, PACKED, ServerProcess, StartServer, samples_of
from tests.postgres import Cluster
from tests.system.conftest import (
    Clients,
    Submission,
    distinct_submissions,
    is_listening,
    stored_reports,
    words_of,
    workers_of,
)

pytestmark = pytest.mark.postgres

PASSWORD = "a-password-of-the-environment"

SUBMISSIONS, REPORTS = distinct_submissions(300, 600), 600


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    """A migrated database of the test's own."""
    with cluster.database() as name:
        yield cluster.url(name)


@pytest.fixture(scope="module")
def pair(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of two workers, for the tests that leave it two: three processes import the server
    for it.
    """
    with cluster.database() as name:
        folder = tmp_path_factory.mktemp("pair")
        server = ServerProcess(folder, cluster.url(name), kernels="numpy", workers=2)
        with contextlib.closing(server):
            with pytest.MonkeyPatch.context() as variables:
                variables.setenv("PGPASSWORD", PASSWORD)
                variables.setenv("TMPDIR", str(folder))  # it is killed with its shared metrics
                server.start()
            yield server


def resend_until_answered(clients: Clients, submissions: list[Submission]) -> None:
    """Send again, in rounds of all who lack an answer, as clients do: with the same key and
    bytes.
    """
    for _ in range(50):
        answered = {submission.key for submission in clients.answered()}
        if not (
            missing := [submission for submission in submissions if submission.key not in answered]
        ):
            return
        clients.submit(missing)
    pytest.fail("there is no end of refusals")


def check_every_report_once(clients: Clients) -> None:
    """All submissions are counted, by the tallies and in the segments, and no report twice."""
    assert clients.counts.tolist() == REPORTS * [1]
    assert np.array_equal(
        np.sort(stored_reports(clients.server, clients.round_id)), np.arange(REPORTS)
    )


def test_two_workers_answer_with_the_counts_of_both(pair: ServerProcess) -> None:
    """Each request has a new connection, so that both workers get some."""

    def counted() -> list[float]:
        answer = httpx.get(f"{pair.url}/metrics", trust_env=False, verify=False)
        samples = {sample.name: sample.value for sample in samples_of(answer.text)}
        return [samples[f"ldprecover_{name}_total"] for name in ("reports", "submissions")]

    path, before = f"/rounds/{pair.open_round()['id']}/reports", counted()
    none_kept = httpx.Limits(max_keepalive_connections=0)
    with httpx.Client(base_url=pair.url, limits=none_kept, trust_env=False, verify=False) as http:
        for _ in range(40):
            assert http.post(path, content=b"\1\0\0\0", headers=PACKED).status_code == 202
    assert [after - each for after, each in zip(counted(), before, strict=True)] == [40, 40]


def test_killed_worker_is_replaced_without_loss(pair: ServerProcess) -> None:
    clients = Clients(pair, pair.open_round(domain_size=REPORTS)["id"], connections=32)
    victim = workers_of(pair)[0]

    def kill(answered: int) -> None:
        if answered == 100:
            victim.send_signal(signal.SIGKILL)

    clients.submit(list(SUBMISSIONS), on_answer=kill)
    resend_until_answered(clients, SUBMISSIONS)
    check_every_report_once(clients)
    while len(alive := workers_of(pair)) < 2:
        victim.wait()
    assert victim.pid not in [process.pid for process in alive]
    ready = httpx.get(f"{pair.url}/readyz", trust_env=False)
    assert ready.status_code == 200


def test_no_child_process_has_a_secret_in_its_environment(pair: ServerProcess) -> None:
    round = pair.open_round()["id"]
    pair.submit(round, b"\1\0\0\0")
    pair.close_round(round)
    unmixed = pair.post(f"/rounds/{round}/recover", json={"method": "unmix"}, headers=pair.admin)
    assert unmixed.status_code == 200
    children = psutil.Process(pair.pid).children(recursive=True)
    programs = " ".join(word for child in children for word in words_of(child))
    assert all(name in programs for name in ("resource_tracker", "spawn_main", "analysis"))
    for child in children:
        environment = Path(f"/proc/{child.pid}/environ").read_bytes()
        assert b"PATH=" in environment
        for secret in (ADMIN_KEY, pair.database_url, PASSWORD):
            assert secret.encode() not in environment


def test_stopping_workers_store_waiting_submissions(start_server: StartServer, url: str) -> None:
    """A commit is held until nobody listens any more."""
    server = start_server(url, workers=2)
    clients = Clients(server, server.open_round(domain_size=REPORTS)["id"], connections=10)
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
        "wait_event_type = 'Lock'"
    )

    async def stop(http: httpx.AsyncClient) -> None:
        with server.sql() as watcher:
            while not watcher.exec_driver_sql(waiting).scalar_one():
                watcher.exec_driver_sql(
                    "SELECT pg_stat_clear_snapshot()"
                )  # a transaction sees one view of it
                await asyncio.sleep(0.001)
        server.signal(signal.SIGTERM)
        while is_listening(server):
            await asyncio.sleep(0.001)
        lock.close()

    with contextlib.ExitStack() as lock:
        connection = lock.enter_context(server.sql())
        connection.exec_driver_sql("LOCK TABLE tallies IN EXCLUSIVE MODE")
        clients.submit(SUBMISSIONS[:10], stop)
    assert server.wait() == -signal.SIGTERM
    assert "Traceback" not in server.log.read_text()
    assert len(clients.answered()) > 0
    counted = {item for submission in clients.answered() for item in submission.items}
    again = Clients(start_server(url), clients.round_id)
    assert counted <= set(again.counts.nonzero()[0].tolist())
    resend_until_answered(again, SUBMISSIONS[:10])
    assert again.counts.max() == 1


def test_workers_end_when_their_supervisor_is_killed(pair: ServerProcess) -> None:
    """Or the next server would find its port taken. The last test of the pair."""
    pair.open_round()
    workers = workers_of(pair)
    assert len(workers) == 2
    os.kill(pair.pid, signal.SIGKILL)
    assert psutil.wait_procs(workers, timeout=60)[1] == []
