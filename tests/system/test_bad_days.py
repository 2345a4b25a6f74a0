"""Slow clients and a database that does not answer: each costs its own time, and nothing is
lost.
"""

import json
import socket

import pytest
from tests.conftest import PACKED, StartServer, limited
from tests.system.conftest import address_of, locked


@pytest.mark.sqlite
def test_stalled_upload_is_408_and_frees_its_memory(
    start_server: StartServer,
) -> None:
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
    assert json.loads(rest.partition(b"\r\n\r\n")[2])["type"].endswith("#body-timeout")
    assert server.submit(round, 900 * b"\1\0\0\0").status_code == 202
    assert server.frequencies(round)["n"] == 900


def test_submission_waits_for_the_database_and_retry_counts_once(
    start_server: StartServer,
) -> None:
    server = start_server(request_seconds=1)
    round = server.open_round()["id"]
    with locked(server):
        refused = server.submit(round, b"\1\0\0\0", "a")
        assert refused.status_code == 503
        assert refused.json()["type"].endswith("#store-unavailable")
        assert int(refused.headers["retry-after"]) >= 1
    assert server.submit(round, b"\1\0\0\0", "a").status_code == 202
    assert server.frequencies(round)["counts"] == [0, 1, 0, 0]
