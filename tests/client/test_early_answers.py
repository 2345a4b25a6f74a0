"""Servers that answer, close or reset before they have read the whole body, on real connections."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.client.messages import ACCEPTED

from ldprecover_client import Client, RefusedError, Retries
from ldprecover_interface.submissions import Accepted

BODY = bytes(32 << 20)  # more than the buffers of a connection hold
AT_ONCE = Retries(attempts=3, base=0)
TAKEN = json.dumps(ACCEPTED).encode()


def answer(status: int, body: bytes, *headers: str) -> bytes:
    kind = "application/json" if status < 400 else "application/problem+json"
    lines = [
        f"HTTP/1.1 {status} X",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def problem(status: int, slug: str, *headers: str) -> bytes:
    return answer(
        status, json.dumps({"type": f"/docs/errors#{slug}", "title": slug}).encode(), *headers
    )


def read_head(connection: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(1)
    return head.lower()


def read_whole(connection: socket.socket) -> bytes:
    head = read_head(connection)
    remaining = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while remaining:
        remaining -= len(connection.recv(min(remaining, 1 << 20)))
    return head


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


Turn = Callable[[socket.socket, threading.Event], None]


@contextlib.contextmanager
def serving(*turns: Turn) -> Iterator[str]:
    """Handle each connection with the next of these; yield the URL."""
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        for turn in turns:
            connection, _ = listener.accept()
            with connection:
                turn(connection, over)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            thread.join()


def test_early_response_is_read():
    """The server answers and closes before it has the whole body."""

    def refuse(connection: socket.socket, over: threading.Event) -> None:
        read_head(connection)
        connection.sendall(problem(413, "too-much"))

    with (
        serving(refuse) as url,
        Client(url, retries=AT_ONCE) as server,
        pytest.raises(RefusedError, match="too-much") as caught,
    ):
        server.submit("r1", BODY, "one-key")
    assert caught.value.status == 413


@pytest.mark.parametrize("size", [4, len(BODY)])
def test_reset_connection_is_retried(size: int):
    heads = []

    def evict(connection: socket.socket, over: threading.Event) -> None:
        heads.append(read_head(connection))
        reset(connection)

    def take(connection: socket.socket, over: threading.Event) -> None:
        heads.append(read_whole(connection))
        connection.sendall(answer(202, TAKEN))

    with serving(evict, evict, take) as url, Client(url, retries=AT_ONCE) as server:
        answered = server.submit("r1", bytes(size), "one-key")
    assert answered == Accepted.model_validate_json(TAKEN)
    assert [b"idempotency-key: one-key\r\n" in head for head in heads] == [True] * 3
