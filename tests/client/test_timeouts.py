"""A server that sends one byte of the body after another for ever: a whole request times out."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from ldprecover_client import Client, Retries, UnansweredError

HEAD = b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"


@contextlib.contextmanager
def trickling() -> Iterator[str]:
    """Answer one request with a head, and a body for ever; yield the URL."""
    stop = threading.Event()

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):  # the client hangs up
            connection.recv(65536)
            connection.sendall(HEAD)
            while not stop.wait(0.01):
                connection.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop.set()
            thread.join()


def test_trickling_response_times_out():
    """Bytes arrive every 10 ms, and each may take 30 s; the whole response would take hours."""
    with (
        trickling() as url,
        Client(url, deadline=0.5, retries=Retries(attempts=1)) as server,
        pytest.raises(UnansweredError, match=r"no whole answer in 0\.5 seconds"),
    ):
        server.submit("r1", b"\1\0\0\0", "key")
