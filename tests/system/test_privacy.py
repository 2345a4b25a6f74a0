"""Nothing a server keeps or writes links a person to a report."""

import signal

import httpx
import pytest
from tests.conftest import PACKED, StartServer

ADDRESS = "127.0.0.2"
NEEDLES = {
    "User-Agent": "needle-of-an-agent/1.0",
    "X-Forwarded-For": "203.0.113.77",
    "Forwarded": "for=198.51.100.23",
    "X-Real-Ip": "192.0.2.44",
    "Referer": "https://needle-of-a-page.example/",
    "Cookie": "session=needle-of-a-cookie",
    "Idempotency-Key": "needle-of-a-key-000000000000",
}


@pytest.mark.sqlite
def test_address_agent_and_key_are_not_stored_or_logged(start_server: StartServer) -> None:
    """Accepted, rejected, repeated and broken reports leave nothing in any byte on disk."""
    server = start_server(max_body_bytes=4_096)
    id = server.open_round()["id"]
    path = f"/rounds/{id}/reports"
    with httpx.Client(
        base_url=server.url,
        transport=httpx.HTTPTransport(local_address=ADDRESS),
        headers=NEEDLES,
        timeout=60,
    ) as user:
        assert user.post(path, content=b"\1\0\0\0", headers=PACKED).status_code == 202
        assert user.post(path, content=b"\1\0\0\0", headers=PACKED).json()["duplicate"]
        assert user.post(path, content=b"\2\0\0\0", headers=PACKED).status_code == 422
        assert user.post(path, json={"reports": [9]}).status_code == 422
        assert user.post(path, content=bytes(5_000), headers=PACKED).status_code == 413
        assert (
            user.post(path, content=b"x", headers={"Content-Type": "text/plain"}).status_code == 415
        )
        assert user.post("/rounds/needle/reports", json={"reports": [1]}).status_code == 404
        assert user.request("needle", path).status_code in (400, 405)
        assert user.get(f"/rounds/{id}/frequencies").json()["n"] == 1
    report = b"NEED\2\0"
    olh = server.open_round("olh", domain_size=10, hash_range=4)["id"]
    assert server.submit(olh, report, "k").status_code == 202
    server.signal(signal.SIGTERM)
    server.wait()
    written = (
        b"".join(file.read_bytes() for file in server.folder.iterdir())
        + "".join(server.lines).encode()
    )
    assert b"needle" not in written
    for value in (ADDRESS, "203.0.113.77", "198.51.100.23", "192.0.2.44"):
        assert value.encode() not in written
    assert report in written, "what is stored would be found"
