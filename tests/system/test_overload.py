"""More than the server can store: it says so, keeps what it answered, and stops in order."""

import signal
import threading
from contextlib import ExitStack

import httpx
import pytest
from tests.conftest import PACKED, StartServer, limited
from tests.system.conftest import (
    Clients,
    NewClients,
    distinct_submissions,
    is_listening,
    locked,
)


@pytest.mark.sqlite
def test_full_queue_is_503_and_waiting_submissions_are_stored(
    start_server: StartServer, new_clients: NewClients
) -> None:
    server = start_server(first=limited("QUEUE_REQUESTS", 8))
    clients = new_clients(server, domain_size=100, connections=20)
    submissions = distinct_submissions(20, 100)

    async def unlock(http: httpx.AsyncClient) -> None:
        await clients.until(12)
        # Reading continues while nothing can be written.
        assert (await http.get(f"/rounds/{clients.round_id}/frequencies")).json()["n"] == 0
        assert (await http.get("/readyz")).status_code == 503
        lock.close()

    with ExitStack() as lock:
        lock.enter_context(locked(server))
        clients.submit(submissions, unlock)
    assert (len(clients.answered(202)), len(clients.answered(503))) == (8, 12)
    for submission in clients.answered(503):
        answer = clients.answers[submission.key]
        assert answer.json()["type"].endswith("#queue-full")
        assert int(answer.headers["retry-after"]) >= 1
    stored = clients.counts
    assert {item for s in clients.answered(202) for item in s.items} == set(
        stored.nonzero()[0].tolist()
    )
    again = Clients(server, clients.round_id, connections=4)
    again.submit(clients.answered(503))
    assert len(again.answered(202)) == 12
    assert clients.counts.sum() == sum(len(submission.items) for submission in submissions)
    assert clients.counts.max() == 1


@pytest.mark.sqlite
def test_full_memory_budget_is_503_until_submissions_are_stored(
    start_server: StartServer,
) -> None:
    """Three bodies of 2,000 bytes may wait, the fourth may not."""
    server = start_server(queue_bytes=7_000, max_body_bytes=4_000)
    id = server.open_round()["id"]
    answers: list[httpx.Response] = []
    refused = threading.Event()

    def post(key: str) -> None:
        answer = httpx.post(
            f"{server.url}/rounds/{id}/reports",
            content=500 * b"\1\0\0\0",
            headers=PACKED | server.admin | {"Idempotency-Key": key},
            timeout=60,
            trust_env=False,
        )
        answers.append(answer)
        if answer.status_code == 503:
            refused.set()

    with locked(server):
        threads = [threading.Thread(target=post, args=(f"key-{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        assert refused.wait(60)
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [202, 202, 202, 503]
    (full,) = (answer for answer in answers if answer.status_code == 503)
    assert full.json()["type"].endswith("#queue-full")
    assert int(full.headers["retry-after"]) >= 1
    assert server.frequencies(id)["n"] == 1_500
    post("key-4")
    assert answers[-1].status_code == 202


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_stopping_server_stores_waiting_submissions(
    start_server: StartServer, new_clients: NewClients, number: signal.Signals
) -> None:
    """Nine submissions wait for a commit that is held; the server stops listening; then the commit
    goes through.
    """
    server = start_server(first=limited("QUEUE_REQUESTS", 9))
    clients = new_clients(server, domain_size=100, connections=10)

    async def stop(http: httpx.AsyncClient) -> None:
        await clients.until(1)
        server.signal(number)
        while is_listening(server):
            pass
        lock.close()

    with ExitStack() as lock:
        lock.enter_context(locked(server))
        clients.submit(distinct_submissions(10, 100), stop)
    assert (len(clients.answered(202)), len(clients.answered(503))) == (9, 1)
    assert server.wait() == -number
    assert "Traceback" not in server.log.read_text()
    server.start()
    counts = clients.counts
    assert set(counts.nonzero()[0].tolist()) == {
        item for s in clients.answered(202) for item in s.items
    }
    assert counts.max() == 1
