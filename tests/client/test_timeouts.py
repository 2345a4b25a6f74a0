"""A server that sends one byte after another for ever: a whole request times out."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.conftest import Collector

from ldprecover_client import Client, Retries, UnansweredError

HEAD = b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"


@contextlib.contextmanager
def trickling(whole: bytes, trickled: bytes) -> Iterator[str]:
    """Answer one request with `whole` and then `trickled` for ever; yield the URL."""
    stop = threading.Event()

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):  # the client hangs up
            connection.recv(65536)
            connection.sendall(whole)
            while not stop.wait(0.01):
                connection.sendall(trickled)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize(
    ("whole", "trickled"),
    [(HEAD, b" "), (b"HTTP/1.1 202 Accepted\r\nX: ", b"x"), (b"", b"H")],
    ids=["body", "head", "all"],
)
def test_trickling_response_times_out(client_class: Any, whole: bytes, trickled: bytes) -> None:
    """Bytes arrive every 10 ms, and each may take 30 s; the whole response would take hours."""
    with (
        trickling(whole, trickled) as url,
        client_class(url, deadline=0.1, retries=Retries(attempts=1)) as server,
        pytest.raises(UnansweredError, match=r"no whole answer in 0\.1 seconds"),
    ):
        server.submit("r1", b"\1\0\0\0", "key")


def test_deadline_applies_to_one_request(collector: Collector) -> None:
    """The next request on the same connection has its full time."""
    collector.add()
    with collector.listening() as url, Client(url, deadline=30.0) as server:
        for i in range(3):
            assert server.submit("r1", bytes(6), f"key-{i}")["accepted"] == 1
        assert server._backend.step_timeout(None) is None
        assert server._backend.step_timeout(5.0) == 5.0
    assert len(collector.connections) == 1
