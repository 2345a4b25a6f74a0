"""Several server processes on one Postgres; what of them is killed, and what is lost on the way,
counts once.
"""

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
import sqlalchemy as sa
from tests.conftest import ADMIN_KEY, PACKED, ServerProcess, StartServer, samples_of
from tests.system.conftest import (
    Clients,
    Submission,
    distinct_submissions,
    is_listening,
    stored_reports,
)
from tools.postgres import Cluster

from ldprecover_server.storage.schema import rounds, tallies

pytestmark = pytest.mark.postgres

PASSWORD = "a-password-of-the-environment"

SUBMISSIONS = distinct_submissions(900, 2_000)
REPORTS = sum(len(submission.items) for submission in SUBMISSIONS)


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
        server = ServerProcess(
            tmp_path_factory.mktemp("pair"), cluster.url(name), kernels="numpy", workers=2
        )
        with contextlib.closing(server):
            with pytest.MonkeyPatch.context() as variables:
                variables.setenv("PGPASSWORD", PASSWORD)
                server.start()
            yield server


@pytest.fixture(scope="module")
def two_servers(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[ServerProcess]]:
    """Two servers on one database."""
    with cluster.database() as name, contextlib.ExitStack() as stack:
        servers = [
            ServerProcess(tmp_path_factory.mktemp("server"), cluster.url(name), kernels="numpy")
            for _ in range(2)
        ]
        for server in servers:
            stack.enter_context(contextlib.closing(server)).start()
        yield servers


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
    """All 900 submissions are counted, by the tallies and in the segments, and no report twice."""
    expected = np.zeros(2_000, dtype=np.int64)
    expected[:REPORTS] = 1
    assert np.array_equal(clients.counts, expected)
    assert np.array_equal(
        np.sort(stored_reports(clients.server, clients.round_id)), np.arange(REPORTS)
    )


def workers_of(server: ServerProcess) -> list[psutil.Process]:
    """Return the processes that serve; the others among its children are Python's own."""
    children = psutil.Process(server.pid).children()
    return [child for child in children if any("spawn_main" in word for word in _words_of(child))]


def _words_of(process: psutil.Process) -> list[str]:
    """Return a process's command line, nothing for one that has just ended."""
    try:
        return list(process.cmdline())
    except psutil.NoSuchProcess:  # a zombie's is one too
        return []


def submit_at_once(*shares: tuple[Clients, list[Submission]]) -> None:
    """Send each clients's submissions, all both at the same time."""
    with ThreadPoolExecutor(len(shares)) as pool:
        for sent in [pool.submit(clients.submit, share) for clients, share in shares]:
            sent.result()


def test_submissions_to_both_servers_count_once(two_servers: list[ServerProcess]) -> None:
    """Each submission goes to both: one of the two says duplicate, however the two race."""
    id = two_servers[0].open_round(domain_size=2_000)["id"]
    one, two = both = [Clients(server, id, connections=16) for server in two_servers]
    # Either server may win every race: one submission that it has first gives each a tally.
    one.submit(SUBMISSIONS[:1])
    two.submit(SUBMISSIONS[-1:])
    submit_at_once((one, SUBMISSIONS[1:]), (two, SUBMISSIONS[:-1]))
    for submission in SUBMISSIONS:
        answers = [clients.answers[submission.key] for clients in both]
        assert [answer.status_code for answer in answers] == [202, 202]
        assert sorted(answer.json()["duplicate"] for answer in answers) == [False, True]
    check_every_report_once(both[0])
    assert np.array_equal(both[0].counts, both[1].counts)
    with two_servers[0].sql() as database:
        seq = sa.select(rounds.c.seq).where(rounds.c.id == id).scalar_subquery()
        query = sa.select(tallies.c.process).where(tallies.c.round == seq)
        numbers = sorted(database.scalars(query))
    assert numbers == [0, 1], "each process has its own tally"


def test_two_workers_count_every_report_once(pair: ServerProcess) -> None:
    clients = Clients(pair, pair.open_round(domain_size=2_000)["id"], connections=32)
    clients.submit(list(SUBMISSIONS))
    assert len(clients.answered()) == len(SUBMISSIONS)
    assert not any(answer.json()["duplicate"] for answer in clients.answers.values())
    check_every_report_once(clients)
    assert len(workers_of(pair)) == 2


def test_two_workers_answer_with_the_counts_of_both(pair: ServerProcess) -> None:
    """Each request has a new connection, so that both workers get some."""
    answered = "ldprecover_requests_total", "202"
    counted = [("ldprecover_reports_total", None), ("ldprecover_submissions_total", None)]

    def scraped() -> dict[tuple[str, str | None], float]:
        answer = httpx.get(f"{pair.url}/metrics", trust_env=False, verify=False)
        return {(s.name, s.labels.get("code")): s.value for s in samples_of(answer.text)}

    def post(key: str) -> int:
        headers = PACKED | {"Idempotency-Key": key}
        return http.post(
            f"/rounds/{round}/reports", content=b"\1\0\0\0", headers=headers
        ).status_code

    round, before = pair.open_round()["id"], scraped()
    none_kept = httpx.Limits(max_keepalive_connections=0)
    with httpx.Client(
        base_url=pair.url, limits=none_kept, timeout=60, trust_env=False, verify=False
    ) as http:
        assert [post(f"key-{i}") for i in range(40)] == 40 * [202]
    after = scraped()
    assert [after[name] - before.get(name, 0) for name in counted] == [40, 40]
    while scraped()[answered] - before.get(answered, 0) < 40:
        pass  # each process publishes its requests within a second


def test_killed_worker_is_replaced_without_loss(pair: ServerProcess) -> None:
    clients = Clients(pair, pair.open_round(domain_size=2_000)["id"], connections=32)
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
    programs = " ".join(word for child in children for word in _words_of(child))
    assert all(name in programs for name in ("resource_tracker", "spawn_main", "analysis"))
    for child in children:
        environment = Path(f"/proc/{child.pid}/environ").read_bytes()
        assert b"PATH=" in environment
        for secret in (ADMIN_KEY, pair.database_url, PASSWORD):
            assert secret.encode() not in environment


COMMIT = b"COMMIT\0"
# the prepared statement with its values: the whole of the one-statement commit
USUAL = b"ldprecover_one_statement\0\0"


class DatabaseRelay:
    """A TCP way to a Postgres that loses commits, or the answers to them, and the connections with
    them.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lose: list[str] = []
        self.lost = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def lose(self, *losses: str) -> None:
        """Lose the next commits (`commit`), or what is answered to them (`answer`)."""
        self._lose = [*reversed(losses)]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(str(self._cluster.socket))
                self._ends += [client, upstream]
                committing = threading.Event()
                for pump in (self._requests, self._answers):
                    thread = threading.Thread(target=pump, args=(client, upstream, committing))
                    self._threads.append(thread)
                    thread.start()

    def _requests(
        self, client: socket.socket, upstream: socket.socket, committing: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):  # one end is gone
            storing = False
            while data := client.recv(65536):
                storing = (
                    storing or b"FOR SHARE" in data
                )  # reading transactions end with a COMMIT too
                if USUAL in data or (storing and COMMIT in data):
                    storing = False
                    if self._lose:
                        self.lost += 1
                        if self._lose.pop() == "commit":
                            break
                        committing.set()
                upstream.sendall(data)
        _cut(client, upstream)

    def _answers(
        self, client: socket.socket, upstream: socket.socket, committing: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):  # one end is gone
            while data := upstream.recv(65536):
                if committing.is_set():
                    break
                client.sendall(data)
        _cut(client, upstream)

    def close(self) -> None:
        _cut(self._listener, *self._ends)
        for thread in self._threads:
            thread.join()
        for end in (self._listener, *self._ends):
            end.close()


def _cut(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "lost", [("commit",), ("answer",), ("commit", "answer"), ("answer", "commit")], ids="-".join
)
def test_unknown_outcome_is_retried_and_counts_once(
    start_server: StartServer, cluster: Cluster, lost: tuple[str, ...]
) -> None:
    """The connection breaks before or after a commit, and the server cannot tell which.

    First the commit in one statement is lost, and then the one in several. The second submission
    comes after a recovery.
    """
    with cluster.database() as name, contextlib.closing(DatabaseRelay(cluster)) as relay:
        server = start_server(cluster.url(name, host="127.0.0.1", port=relay.port))
        id = server.open_round(domain_size=20)["id"]
        assert (
            server.submit(id, np.array([10], dtype="<u4").tobytes()).status_code == 202
        )  # the server knows the round
        for item in range(2):
            relay.lose(*lost)
            answer = server.submit(id, np.array([item], dtype="<u4").tobytes(), f"key-{item}")
            assert answer.status_code == 202, answer.text
            assert relay.lost == len(lost) * (item + 1)
            assert answer.json()["duplicate"] is ("answer" in lost)
        assert server.frequencies(id)["counts"] == 2 * [1] + 8 * [0] + [1] + 9 * [0]
        server.kill()


def test_stopping_workers_store_waiting_submissions(start_server: StartServer, url: str) -> None:
    """A commit is held until nobody listens any more."""
    server = start_server(url, workers=2)
    clients = Clients(server, server.open_round(domain_size=2_000)["id"], connections=10)
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
