"""A server that sends one byte after another for ever: a whole request times out."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.client.conftest import BlockingClient

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
    ("kind", "whole", "trickled"),
    [
        (Client, HEAD, b" "),
        (BlockingClient, HEAD, b" "),
        (BlockingClient, b"HTTP/1.1 202 Accepted\r\nX: ", b"x"),
        (BlockingClient, b"", b"H"),
    ],
    ids=["sync body", "async body", "async head", "async all"],
)
def test_trickling_response_times_out(kind, whole: bytes, trickled: bytes):
    """Bytes arrive every 10 ms, and each may take 30 s; the whole response would take hours."""
    with (
        trickling(whole, trickled) as url,
        kind(url, deadline=0.1, retries=Retries(attempts=1)) as server,
        pytest.raises(UnansweredError, match=r"no whole answer in 0\.1 seconds"),
    ):
        server.submit("r1", b"\1\0\0\0", "key")
