"""A server that stops with submissions waiting, and uploads that stall."""

import json
import signal
import socket
from contextlib import ExitStack

import httpx
import pytest
from tests.conftest import PACKED, StartServer, limited
from tests.system.conftest import NewClients, address_of, distinct_submissions, is_listening, locked

pytestmark = pytest.mark.sqlite


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
    with socket.create_connection(address_of(server), timeout=60) as stalled:
        stalled.sendall(f"{head}Content-Length: 4000\r\n\r\n".encode() + 3_999 * b"\0")
        answer = b"".join(iter(lambda: stalled.recv(65536), b""))
    status, _, rest = answer.partition(b"\r\n")
    assert status == b"HTTP/1.1 408 Request Timeout"
    problem = json.loads(rest.partition(b"\r\n\r\n")[2])
    assert problem["type"].endswith("#body-timeout")
    assert "within 1 seconds" in problem["detail"]
    assert server.submit(round, 900 * b"\1\0\0\0").status_code == 202
    assert server.frequencies(round)["n"] == 900
