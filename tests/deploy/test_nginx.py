"""The proxy of deploy/nginx: its own errors are problems, and operators' paths are closed."""

import contextlib
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest
from tests.proxied import PROXIED, Proxy, proxied

from ldprecover_server.errors import service_errors

PROBLEMS = Path(__file__).parents[2] / "deploy" / "nginx" / "ldprecover" / "problems"
STATUS = {error.type.slug: error.type for error in service_errors()}
KEY = "Authorization: Bearer key\r\n"


class _Upstream(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        sent = [self.rfile.read(self._length()).decode()]
        sent += [self.headers.get(name, "") for name in ("X-Forwarded-Prefix", "X-Real-IP")]
        body = " ".join([self.command, self.path, *sent]).encode()
        self.send_response(418)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _length(self) -> int:
        return int(self.headers.get("Content-Length", 0))

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    """The proxy before a server that answers 418 with the request that it got."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Upstream) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with proxied(server.server_address[1]) as proxy:
            yield proxy
        server.shutdown()


def talk(proxy: Proxy, sent: bytes, address: str = "127.0.0.1", *, one: bool = False) -> bytes:
    """Send bytes from an address; return all that is received, or `one` answer.

    A connection whose body does not come stays open for two seconds and ends with a reset.
    """
    received = b""
    with (
        contextlib.suppress(ConnectionResetError),
        socket.create_connection((proxy.host, proxy.port), 60, (address, 0)) as connection,
    ):
        connection.sendall(sent)
        while piece := connection.recv(65536):
            received += piece
            head, end, body = received.lower().partition(b"\r\n\r\n")
            if one and end and int(head.partition(b"content-length: ")[2].split()[0]) == len(body):
                break
    return received


def get(path: str, headers: str = "", line: str = "GET {} HTTP/1.1") -> bytes:
    head = f"{line.format(path)}\r\nHost: x\r\nConnection: close\r\n{headers}\r\n"
    return head.encode("latin-1")


def post(size: int, headers: str = "") -> bytes:
    return get("/reports", f"Content-Length: {size}\r\n{headers}", "POST {} HTTP/1.1")


def assert_problem(answer: bytes, status: int, slug: str) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert b"content-type: application/problem+json" in head.lower()
    assert (b"retry-after: " in head.lower()) == (status in (429, 502, 503, 504))
    assert json.loads(body)["type"] == f"/docs/errors#{slug}"


@pytest.mark.parametrize("file", sorted(PROBLEMS.iterdir()), ids=lambda file: file.stem)
def test_each_problem_is_one_of_the_server(file: Path) -> None:
    problem = json.loads(file.read_text())
    kind = STATUS[problem["type"].removeprefix("/docs/errors#")]
    assert problem["title"] == kind.title
    assert problem["status"] == (504 if file.stem == "504" else kind.status)
    assert file.stem == str(problem["status"])
    assert problem["detail"]


ERRORS: dict[str, tuple[bytes, int, str]] = {
    "no HTTP": (b"hello\r\n\r\n", 400, "invalid-http"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "invalid-http"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\n", 400, "invalid-http"),
    "unknown method": (get("/", line="BREW {} HTTP/1.1"), 400, "invalid-http"),
    "wrong escape": (get("/%zz"), 400, "invalid-http"),
    "wrong length": (get("/", "Content-Length: many\r\n"), 400, "invalid-http"),
    "internal path": (get("/large/anonymous", KEY), 404, "not-found"),
    "trace": (get("/", line="TRACE {} HTTP/1.1"), 405, "method-not-allowed"),
    "body": (post((1 << 20) + 1), 413, "body-too-large"),
    "body with a key": (post((16 << 20) + 1, KEY), 413, "body-too-large"),
    "path": (get("/" + 3000 * "a"), 431, "head-too-large"),
    "header": (get("/", f"X: {3000 * 'a'}\r\n"), 431, "head-too-large"),
    "headers": (get("/", 9 * f"X: {1000 * 'a'}\r\n"), 431, "head-too-large"),
    "encoding": (get("/", "Transfer-Encoding: gzip\r\n"), 501, "unsupported-transfer-encoding"),
}


@pytest.mark.parametrize(("sent", "status", "slug"), ERRORS.values(), ids=ERRORS.keys())
def test_its_own_errors_are_problems(proxy: Proxy, sent: bytes, status: int, slug: str) -> None:
    assert_problem(talk(proxy, sent, one=True), status, slug)


@pytest.mark.parametrize("key", ["", KEY], ids=["anonymous", "key"])
@pytest.mark.parametrize("path", ["metrics", "readyz"])
def test_paths_of_operators_are_denied_in_every_spelling(proxy: Proxy, path: str, key: str) -> None:
    for spelling in (
        *(f"/{path}", f"//{path}", f"/{path}/", f"/{path}?x=1", f"/{path}/../{path}"),
        *(f"/x/../{path}", f"/./{path}", f"/%{ord(path[0]):x}{path[1:]}", f"/%2e/{path}"),
        *(f"/{path}%2F", f"http://x/{path}", f"/docs/%2e%2e/{path}"),
        *(f"/{path}%0A", f"/{path}#x", f"/{path}//"),
        f"/{path.upper()}",
    ):
        assert_problem(talk(proxy, get(spelling, key)), 403, "forbidden")
        assert_problem(talk(proxy, get(spelling, key, "POST {} HTTP/1.1")), 403, "forbidden")


@pytest.mark.parametrize("key", ["", KEY], ids=["anonymous", "key"])
@pytest.mark.parametrize("path", ["/a%20b//c?d=%2F&e", "/forms/metrics-1", "/readyz-2/reports"])
def test_requests_and_answers_pass_unchanged(proxy: Proxy, path: str, key: str) -> None:
    answer = talk(proxy, get(path, f"{key}Content-Length: 2\r\n") + b"{}")
    assert answer.startswith(b"HTTP/1.1 418 ")
    assert answer.endswith(f"GET {path} {{}}  ".encode())


def test_callers_choose_neither_prefix_nor_address(proxy: Proxy) -> None:
    """The server sees the address of a caller with a key."""
    chosen = "X-Forwarded-Prefix: /x\r\nX-Real-IP: 192.0.2.1\r\n"
    assert talk(proxy, get("/a", chosen), "127.0.0.2").endswith(b"GET /a   ")
    assert talk(proxy, get("/a", chosen + KEY), "127.0.0.2").endswith(b"GET /a   127.0.0.2")


def test_an_address_is_limited_and_this_machine_is_not(proxy: Proxy) -> None:
    """Another loopback address stands for another machine."""
    one = "POST /metrics HTTP/1.1\r\nHost: x\r\n{}\r\n"
    many = (350 * (one.format("") + one.format(KEY))).encode() + get("/metrics")
    assert talk(proxy, many).count(b"HTTP/1.1 403 ") == 701
    answers = talk(proxy, many, "127.0.0.2").split(b"HTTP/1.1 ")[1:]
    limited = [answer for answer in answers[:-1] if answer.startswith(b"429 ")]
    assert 0 < len(limited) <= 100
    assert_problem(b"HTTP/1.1 " + limited[0], 429, "rate-limited")
    assert_problem(b"HTTP/1.1 " + answers[-1], 403, "forbidden")  # it reads


def test_one_customer_of_ipv6_is_one_caller(proxy: Proxy) -> None:
    """Addresses of 127.0.0.3 are those of its header X-Caller."""
    many = "".join(
        f"POST /metrics HTTP/1.1\r\nHost: x\r\nX-Caller: 2001:db8:0:{network}:{host:x}::1\r\n\r\n"
        for network, hosts in (("a00", 700), ("b00", 1))
        for host in range(1, hosts + 1)
    )
    answers = talk(proxy, many.encode() + get("/metrics"), "127.0.0.3").split(b"HTTP/1.1 ")[1:-1]
    limited = [answer.startswith(b"429 ") for answer in answers]
    assert 0 < sum(limited[:700]) <= 100
    assert not limited[700]


def test_few_large_bodies_without_a_key_are_stored_at_a_time(proxy: Proxy) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(128):
            connection = socket.create_connection((proxy.host, proxy.port), 60)
            stack.enter_context(connection).sendall(
                get("/reports", "Content-Length: 200000\r\nExpect: 100-continue\r\n")
            )
            assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        assert_problem(talk(proxy, post(200_000), one=True), 503, "busy")
        assert talk(proxy, post(2) + b"{}").startswith(b"HTTP/1.1 418 ")


@pytest.mark.usefixtures("many_sockets")
def test_requests_beyond_its_limit_are_answered_with_503() -> None:
    """8,000 wait for a server that accepts none; the others are not disconnected."""
    with contextlib.ExitStack() as stack:
        hanging = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=4096))
        proxy = stack.enter_context(proxied(hanging.getsockname()[1]))
        answered = stack.enter_context(selectors.DefaultSelector())
        for key in 4_150 * ["", KEY]:
            connection = socket.create_connection((proxy.host, proxy.port), 60)
            stack.enter_context(connection).sendall(get("/rounds", key))
            answered.register(connection.makefile("rb"), selectors.EVENT_READ)
        answers: list[bytes] = []
        while len(answers) < 300:
            ready = answered.select(60)
            assert ready
            for selected, _ in ready:
                answered.unregister(selected.fileobj)
                answers.append(cast(io.BufferedReader, selected.fileobj).read())
        assert len(answers) == 300
        for answer in answers:
            assert_problem(answer, 503, "busy")


def test_server_that_is_gone_or_hangs_is_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as hanging:
        port = hanging.getsockname()[1]
        with contextlib.ExitStack() as stack, proxied(port) as proxy:
            for _ in range(3):  # more than wait in its queue
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(("127.0.0.1", port))
            assert_problem(talk(proxy, get("/healthz")), 504, "server-unreachable")
            hanging.close()
            assert_problem(talk(proxy, get("/healthz")), 502, "server-unreachable")


def test_stops_with_its_parent() -> None:
    shell = subprocess.Popen(
        ["/bin/sh", "-c", f"{PROXIED} 1 0; true"], stdout=subprocess.PIPE, start_new_session=True
    )
    assert shell.stdout is not None
    with shell.stdout:
        port = int(shell.stdout.readline().rpartition(b":")[2])
        os.kill(shell.pid, signal.SIGKILL)
        shell.wait()
        assert shell.stdout.read() == b""
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port), 60)
