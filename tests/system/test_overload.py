"""A server that stops while submissions wait or a verdict is computed, and uploads that stall."""

import asyncio
import json
import signal
import sqlite3
from contextlib import closing

import httpx
import numpy as np
import pytest
from tests.conftest import PACKED, StartServer, limited
from tests.system.conftest import Clients, distinct_submissions, is_listening

from ldprecover import frequency_oracle

pytestmark = pytest.mark.sqlite


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_stopping_server_stores_waiting_submissions(
    start_server: StartServer, number: signal.Signals
) -> None:
    """Nine submissions wait for a commit that is held; the server stops listening; then the commit
    goes through.
    """
    server = start_server(first=limited("QUEUE_REQUESTS", 9))
    clients = Clients(server, server.open_round(domain_size=100)["id"], connections=10)

    answered = asyncio.Event()

    async def stop(http: httpx.AsyncClient) -> None:
        await answered.wait()
        server.signal(number)
        while is_listening(server):
            pass
        lock.rollback()

    with closing(sqlite3.connect(server.database, isolation_level=None)) as lock:
        lock.execute("BEGIN IMMEDIATE")
        clients.submit(distinct_submissions(10, 100), stop, on_answer=lambda _: answered.set())
    assert (len(clients.answered(202)), len(clients.answered(503))) == (9, 1)
    assert server.wait() == -number
    assert "Traceback" not in server.log.read_text()
    server.start()
    counts = clients.counts
    assert set(counts.nonzero()[0].tolist()) == {
        item for s in clients.answered(202) for item in s.items
    }
    assert counts.max() == 1


def test_sigterm_ends_a_server_that_computes_a_verdict(start_server: StartServer) -> None:
    """The round takes seconds in a worker that counts with numpy."""
    server = start_server(shutdown_seconds=2)
    oracle = frequency_oracle("olh", 1.0, 4_000)
    id = server.open_round("olh", 1.0, domain_size=4_000)["id"]
    rng = np.random.default_rng(1)
    reports = oracle.perturb(rng.integers(4_000, size=50_000), rng)
    assert server.submit(id, reports.tobytes()).status_code == 202
    assert server.close_round(id).status_code == 200
    while "ldprecover_analyses_running 1.0" not in server.get("/metrics").text:
        pass
    server.signal(signal.SIGTERM)
    assert server.wait() == -signal.SIGTERM
    assert "Traceback" not in server.log.read_text()


def test_stalled_upload_is_408_and_frees_its_memory(start_server: StartServer) -> None:
    """It holds most of the memory for anonymous bodies; the next submission waits no longer than it
    may stall.
    """
    server = start_server(
        first=limited("ANONYMOUS_BODY_SECONDS", 1), queue_bytes=10_000, open_reports=1_000
    )
    round = server.open_round()["id"]
    head = (
        f"POST /rounds/{round}/reports HTTP/1.1\r\nHost: x\r\nContent-Type: "
        f"{PACKED['Content-Type']}\r\n"
    )
    answer = server.talk(f"{head}Content-Length: 4000\r\n\r\n".encode() + 3_999 * b"\0")
    status, _, rest = answer.partition(b"\r\n")
    assert status == b"HTTP/1.1 408 Request Timeout"
    problem = json.loads(rest.partition(b"\r\n\r\n")[2])
    assert problem["type"].endswith("#body-timeout")
    assert "within 1 seconds" in problem["detail"]
    assert server.submit(round, 900 * b"\1\0\0\0").status_code == 202
    assert server.frequencies(round)["n"] == 900
