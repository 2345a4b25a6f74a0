"""Slow clients and a database that does not answer: each costs its own time, and nothing is
lost.
"""

import asyncio
import json
import socket
from typing import Any

import pytest
import uvicorn
from tests.conftest import PACKED, StartServer, limited
from tests.system.conftest import address_of, locked
from uvicorn.server import ServerState

from ldprecover_server.http.edge import EdgeProtocol, limits


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


async def _app(scope: Any, receive: Any, send: Any) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


GET = b"GET / HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("before", "part"), [(b"", b""), (b"", b"G"), (GET + b"\r\n", GET + b"X-Slow:")]
)
def test_late_request_head_ends_its_connection(
    monkeypatch: pytest.MonkeyPatch, before: bytes, part: bytes
) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(limits, "CHECK_SECONDS", 0.05)

    async def slow_client() -> bytes:
        config = uvicorn.Config(_app, lifespan="off", log_config=None)
        config.load()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: EdgeProtocol(config, ServerState(), {}), host="127.0.0.1", port=0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(before)
        answered = await reader.readuntil(b"ok") if before else b""
        writer.write(part)
        rest = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()
        assert rest == b""
        return answered

    assert asyncio.run(slow_client()).startswith(b"HTTP/1.1 200" if before else b"")
