"""Half requests to a class, which has no proxy in front, beside an honest student."""

import contextlib
import re
import resource
import signal
import socket
from collections.abc import Callable
from itertools import cycle, islice
from select import select
from typing import Any

import pytest
from tests.cli.practice.conftest import ROUND

from ldprecover_cli.practice.lesson import Lesson
from ldprecover_cli.practice.server import practice_server
from ldprecover_server.serve import raise_file_limit

HEAD = b"GET /rounds/class HTTP/1.1\r\nHost: localhost\r\n"
POST = HEAD.replace(b"GET", b"POST").replace(b"class", b"class/reports")
POST += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
REPORT = b'{"reports":[0]}'
HALVES = (HEAD, POST % 1000 + REPORT)
SECONDS = 60
"""The longest wait for an event, when the test fails."""


def connect(url: str, source: str) -> socket.socket:
    address = "127.0.0.1", int(url.rpartition(":")[2])
    return socket.create_connection(address, SECONDS, (source, 0))


def test_student_is_answered_beside_1500_half_requests(
    watched: Callable[..., Any], temporary: None
) -> None:
    """Of one address, to a process that may have 1,024 open files."""
    raise_file_limit()
    lesson = watched("class --port 0 --host 127.0.0.1", terminal=False)
    assert lesson.watch(until="Ctrl-C")
    resource.prlimit(lesson.process.pid, resource.RLIMIT_NOFILE, (1024, 1024))
    url = re.findall(r"http://[\d.:]+", lesson.shown)[0]
    with contextlib.ExitStack() as stack:
        for half in islice(cycle(HALVES), 1500):
            attacker = stack.enter_context(connect(url, "127.0.0.3"))
            with contextlib.suppress(ConnectionError):
                attacker.sendall(half)
        student = stack.enter_context(connect(url, "127.0.0.4"))
        student.sendall(POST % len(REPORT) + REPORT)
        assert student.recv(100).startswith(b"HTTP/1.1 202 ")
    lesson.process.send_signal(signal.SIGINT)
    assert lesson.ended()[0] == 0


@pytest.mark.parametrize("half", HALVES, ids=["head", "body"])
def test_half_request_is_closed_though_bytes_arrive(half: bytes) -> None:
    """It follows a whole request on the same connection."""
    with practice_server("class", practice=True, request_seconds=1) as server:
        Lesson(server, ROUND)
        with connect(server.url, "127.0.0.3") as connection:
            connection.sendall(POST % len(REPORT) + REPORT)
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(1000)
            connection.sendall(half)
            for _ in range(20 * SECONDS):
                if select([connection], [], [], 0.05)[0]:
                    break
                connection.sendall(b"x")
            with contextlib.suppress(ConnectionError):
                assert connection.recv(1) == b""


def test_long_head_is_an_error() -> None:
    with practice_server("class") as server, connect(server.url, "127.0.0.3") as connection:
        connection.sendall(HEAD + b"X: ")
        with contextlib.suppress(ConnectionError):
            for _ in range(1024):
                connection.sendall(1024 * b"x")
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
