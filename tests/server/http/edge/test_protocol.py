"""HTTP itself: HEAD, transfer codings, early requests and upgrades."""

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest
from tests.conftest import ServerProcess
from tests.server.conftest import InProcess
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ldprecover_server.http.edge import EDGE, ON_LOSS, Edge, EdgeProtocol
from ldprecover_server.http.edge.limits import HEAD_BYTES, MAX_HEADERS, READ_BYTES

pytestmark = pytest.mark.sqlite


REPORT = b'{"reports": [1]}'
CHUNKED = b"10\r\n" + REPORT + b"\r\n0\r\n\r\n"


Answer = tuple[int, dict[str, str], bytes]


def talk(server: ServerProcess, *pieces: bytes, times: int = 1) -> list[Answer]:
    """Send a request in pieces over one connection, and read its response, that many times.

    Return the responses as status, headers and body.
    """
    responses = []
    with (
        server.connect() as connection,
        connection.makefile("rb") as stream,
    ):
        for _ in range(times):
            for piece in pieces:
                connection.sendall(piece)
            status = int(stream.readline().split()[1])
            lines = iter(stream.readline, b"\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.decode().partition(":") for line in lines)
            }
            responses.append((status, headers, stream.read(int(headers["content-length"]))))
    return responses


def post(id: str, *headers: str) -> bytes:
    lines = [
        f"POST /rounds/{id}/reports HTTP/1.1",
        "Host: test",
        "Content-Type: application/json",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


PATHS = [
    "/rounds",
    "/rounds/current",
    "/rounds/current/parameters",
    "/rounds/current/frequencies",
    "/rounds/current/stats",
    "/rounds/current/export",
    "/frequencies",
    "/healthz",
    "/readyz",
    "/version",
    "/docs",
    "/docs/errors",
    "/openapi.json",
    "/static/swagger-ui/swagger-ui.css",
    "/",
    "/page/js/main.js",
    "/rounds/nothing",
    "/nowhere",
]


def but(headers: httpx.Headers) -> dict[str, str]:
    """Headers without those that differ from one answer to the next."""
    return {name: value for name, value in headers.items() if name not in ("date", "x-request-id")}


@pytest.mark.parametrize("path", PATHS)
def test_head_has_headers_of_get_and_no_body(server: ServerProcess, path: str) -> None:
    server.open_round()
    get, head = server.get(path), server.http.head(path)
    assert (head.status_code, but(head.headers)) == (get.status_code, but(get.headers))
    assert get.content
    assert head.content == b""
    assert server.get("/healthz").json() == {"status": "ok"}, "nothing was left on the connection"


def test_application_itself_omits_the_body_of_head(in_process: InProcess) -> None:
    """The application itself leaves it out, and says which route it was."""
    response = in_process.request("HEAD", "/version")
    assert (response.status_code, response.content) == (200, b"")
    assert int(response.headers["content-length"]) > 10
    assert (
        'ldprecover_requests_total{code="200",method="HEAD",route="/version"}'
        in in_process.get("/metrics").text
    )


@pytest.mark.parametrize("path", ["/reports", "/recover", "/rounds/current/close"])
def test_head_is_405_without_get(server: ServerProcess, path: str) -> None:
    server.open_round()
    response = server.http.head(path)
    assert response.status_code == 405
    assert "HEAD" not in response.headers["allow"]


def test_allow_header_names_head_beside_get(server: ServerProcess) -> None:
    assert server.http.put("/healthz").headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "coding",
    ["gzip, chunked", "gzip\r\nTransfer-Encoding: chunked", "deflate,chunked", "x, chunked"],
)
def test_rejects_unknown_transfer_coding(server: ServerProcess, coding: str) -> None:
    id = server.open_round()["id"]
    ((status, headers, body),) = talk(server, post(id, f"Transfer-Encoding: {coding}"), CHUNKED)
    assert (status, headers["content-type"]) == (501, "application/problem+json")
    assert json.loads(body)["type"] == "/docs/errors#unsupported-transfer-encoding"
    assert headers["connection"] == "close"
    assert server.get(f"/rounds/{id}").json()["n"] == 0


def test_accepts_chunked_body(server: ServerProcess) -> None:
    id = server.open_round()["id"]
    ((status, _, _),) = talk(server, post(id, "Transfer-Encoding: Chunked"), CHUNKED)
    assert status == 202


OFFER = ("Upgrade: {}", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA")
FORMS = {
    "with a length": (f"Content-Length: {len(REPORT)}", REPORT),
    "in chunks": ("Transfer-Encoding: chunked", CHUNKED),
}


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_ignores_upgrade_and_reads_the_body(
    server: ServerProcess, protocol: str, form: tuple[str, bytes], size: int
) -> None:
    """Some clients make the offer with every first request, and may send it in pieces of any
    size.
    """
    id = server.open_round()["id"]
    offer = [line.format(protocol) for line in OFFER]
    sent = post(id, "Connection: Upgrade, HTTP2-Settings", *offer, form[0]) + form[1]
    pieces = [sent[i : i + size] for i in range(0, len(sent), size)]
    assert [status for status, _, _ in talk(server, *pieces, times=2)] == [202, 202]
    assert server.frequencies(id)["counts"] == [0, 2, 0, 0]


def test_answers_each_upgrade_offer_of_a_connection(server: ServerProcess) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    answers = talk(server, one, times=3)
    assert [(status, body) for status, _, body in answers] == 3 * [(200, b'{"status":"ok"}')]


@pytest.mark.parametrize("size", [100, 200, 10_000])
def test_answers_first_of_early_requests_and_closes(server: ServerProcess, size: int) -> None:
    """No request is lost silently: the client sees the end of the connection, and no reset."""
    id = server.open_round()["id"]
    one = post(id, f"Content-Length: {len(REPORT)}") + REPORT
    sent = 50 * one
    with server.connect() as connection:
        with contextlib.suppress(OSError):  # the server may close the connection meanwhile
            for start in range(0, len(sent), size):
                connection.sendall(sent[start : start + size])
        answered = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answered.startswith(b"HTTP/1.1 202 ")
    assert server.frequencies(id)["n"] == answered.count(b"HTTP/1.1 202 ")
    assert server.get("/healthz").status_code == 200


class Application:
    """Waits before it takes the body of a request, and responds to it."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.begun, self.released = asyncio.Event(), asyncio.Event()
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.paths.append(scope["path"])
        self.begun.set()
        await self.released.wait()
        more = scope["method"] == "POST"
        while more:
            message = await receive()
            more = message.get("more_body", False)
            self.bodies.append(message.get("body"))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


Connected = tuple[Application, EdgeProtocol, asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def connected(sent: bytes) -> AsyncIterator[Connected]:
    """Send bytes to an application, and wait until it handles the request."""
    app = Application()
    protocols: list[EdgeProtocol] = []
    config = Config(app)
    config.load()
    loop = asyncio.get_running_loop()

    def connect() -> EdgeProtocol:
        protocols.append(EdgeProtocol(config, ServerState(), {}, loop))
        return protocols[-1]

    server = await loop.create_server(connect, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(sent)
    await app.begun.wait()
    yield app, protocols[0], reader, writer
    app.released.set()
    writer.close()
    server.close()


@pytest.mark.anyio
async def test_answers_a_request_that_comes_early() -> None:
    early = b"GET /2 HTTP/1.1\r\nHost: test\r\n\r\n"
    async with connected(early.replace(b"2", b"1", 1)) as (app, protocol, reader, _):
        protocol.data_received(early[:9])
        protocol.data_received(early[9:])
        assert app.paths == ["/1"]
        app.released.set()
        for _ in range(2):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
        assert app.paths == ["/1", "/2"]


@pytest.mark.anyio
async def test_drops_a_long_early_request() -> None:
    """The response that it waits for may take minutes."""
    async with connected(b"GET /1 HTTP/1.1\r\nHost: test\r\n\r\n") as (app, protocol, _, _):
        protocol.data_received(b"GET /" + 100_000 * b"2")
        assert protocol._early == b""
        assert app.paths == ["/1"]


HALF = b"POST /1 HTTP/1.1\r\nHost: test\r\nContent-Length: 2000\r\n\r\n" + 1000 * b"x"


@pytest.mark.anyio
async def test_reads_no_more_of_a_body_than_the_application() -> None:
    """Thousands of connections may wait with their bodies for the application."""
    async with connected(HALF) as (app, protocol, reader, writer):
        assert protocol.flow.read_paused
        app.released.set()
        writer.write(1000 * b"y")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
        assert b"".join(app.bodies) == 1000 * b"x" + 1000 * b"y"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": use}) for use in (0, 1)])
async def test_reads_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of connections may wait with what was read last."""
    sizes: list[int] = []
    received = EdgeProtocol.data_received

    def data_received(self: EdgeProtocol, data: bytes) -> None:
        sizes.append(len(data))
        received(self, data)

    monkeypatch.setattr(EdgeProtocol, "data_received", data_received)
    body = bytes(range(256)) * (1 << 12)
    head = b"POST /1 HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with connected(head + body) as (app, protocol, reader, _):
        assert len(protocol.cycle.body) <= READ_BYTES
        app.released.set()
        await reader.readuntil(b"\r\n\r\n")
        assert b"".join(app.bodies) == body
    assert max(sizes) <= READ_BYTES


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": use}) for use in (0, 1)])
async def test_starts_no_request_of_a_connection_reset_early() -> None:
    """Thousands of them would delay every other client."""
    request = b"GET /%d HTTP/1.1\r\nHost: test\r\n\r\n"
    app = Application()
    app.released.set()
    config = Config(app)
    config.load()
    loop = asyncio.get_running_loop()
    edge = Edge()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        lost = socket.create_connection(listener.getsockname())
        lost.sendall(request % 1)
        lost.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        lost.close()
        server = await loop.create_server(
            lambda: EdgeProtocol(config, ServerState(), {EDGE: edge}), sock=listener
        )
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(request % 2)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
        writer.close()
        server.close()
    assert app.paths == ["/2"]


@pytest.mark.anyio
async def test_drops_the_body_of_a_lost_connection() -> None:
    """Its request may still wait to start."""
    async with connected(HALF) as (app, protocol, _, _):
        cycle = protocol.cycle
        assert len(cycle.body) == 1000
        lost = asyncio.Event()
        cast(Any, cycle.scope)["extensions"][ON_LOSS].append(lost.set)
        protocol.cut_off()
        await lost.wait()
        assert cycle.disconnected
        assert not cycle.body
        app.released.set()


@pytest.mark.anyio
async def test_drops_the_unread_body_of_an_answered_request() -> None:
    async with connected(HALF.replace(b"POST", b"GET")) as (app, protocol, reader, _):
        assert len(protocol.cycle.body) == 1000
        app.released.set()
        await reader.readuntil(b"\r\n\r\n")
        assert not protocol.cycle.body


@pytest.mark.parametrize(
    "name", ["Proxy-Connection", "Connection", "CONNECTION", "proxy-connection"]
)
@pytest.mark.parametrize(
    "value", ["keep-alive, Upgrade", "Upgrade", "upgrade,upgrade", "UPGRADE , close"]
)
@pytest.mark.parametrize("offers", [1, 3])
def test_ignores_upgrade_in_any_spelling(
    server: ServerProcess, name: str, value: str, offers: int
) -> None:
    """One of these made the server loop for ever: the parser takes Proxy-Connection for
    Connection.
    """
    lines = ["GET /healthz HTTP/1.1", "Host: test", f"{name}: {value}", *offers * ["Upgrade: h2c"]]
    ((status, _, body),) = talk(server, "\r\n".join([*lines, "", ""]).encode())
    assert (status, body) == (200, b'{"status":"ok"}')


def test_long_head_behind_a_body_keeps_its_response(
    server: ServerProcess,
) -> None:
    """Both arrive in one piece: the end of the body stands before an endless head."""
    id = server.open_round()["id"]
    packed = 100_000 * b"\1\0\0\0"
    key = server.admin["Authorization"]
    head = [f"POST /rounds/{id}/reports HTTP/1.1", "Host: test", f"Authorization: {key}"]
    head += [
        "Content-Type: application/vnd.ldprecover.reports",
        f"Content-Length: {len(packed)}",
        "",
        "",
    ]
    endless = b"GET /healthz HTTP/1.1\r\nHost: test\r\nX: " + 100_000 * b"x"
    answered = server.talk("\r\n".join(head).encode() + packed + endless)
    assert answered.startswith(b"HTTP/1.1 202 ")
    assert server.frequencies(id)["n"] == 100_000


def test_accepts_content_length_with_5000_zeros(server: ServerProcess) -> None:
    """`int` rejects more than 4,300 digits."""
    id = server.open_round()["id"]
    length = f"Content-Length: {5000 * '0'}{len(REPORT)}"
    ((status, _, _),) = talk(server, post(id, length, "Connection: close") + REPORT)
    assert status == 202
    assert server.frequencies(id)["n"] == 1


def test_answers_half_closed_connection(server: ServerProcess) -> None:
    id = server.open_round()["id"]
    answered = server.talk(post(id, f"Content-Length: {len(REPORT)}") + REPORT, half_close=True)
    assert answered.startswith(b"HTTP/1.1 202 ")


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: test\r\n" + (MAX_HEADERS + 1) * b"a: b\r\n" + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: test\r\nX: " + 3 * HEAD_BYTES * b"x",
        b"GET /" + 3 * HEAD_BYTES * b"x",
    ],
    ids=["many headers", "a long header", "a long path"],
)
def test_large_head_is_a_problem(server: ServerProcess, head: bytes) -> None:
    answered = server.talk(head)
    assert answered.startswith(b"HTTP/1.1 431 ")
    assert b"#head-too-large" in answered


def test_accepts_head_at_the_limit(server: ServerProcess) -> None:
    start = b"GET /healthz HTTP/1.1\r\nHost: test\r\nX: "
    ((status, _, _),) = talk(server, start + (HEAD_BYTES - len(start) - 4) * b"x" + b"\r\n\r\n")
    assert status == 200


def test_upgrade_does_not_override_connection_close(
    server: ServerProcess,
) -> None:
    sent = (
        b"GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\n\r\n"
    )
    ((status, headers, _),) = talk(server, sent)
    assert (status, headers["connection"]) == (200, "close")


def test_connect_is_405(server: ServerProcess) -> None:
    ((status, headers, body),) = talk(server, b"CONNECT / HTTP/1.1\r\nHost: test\r\n\r\n")
    assert (status, headers["content-type"]) == (405, "application/problem+json")
    assert json.loads(body)["type"] == "/docs/errors#method-not-allowed"


OVERRIDDEN = {
    "shutdown",
    "__init__",
    "connection_lost",
    "connection_made",
    "data_received",
    "eof_received",
    "on_body",
    "on_headers_complete",
    "on_response_complete",
    "send_400_response",
}
USED = {"cycle", "flow", "loop", "parser", "pipeline", "scope", "shutdown", "transport"}


def test_overridden_methods_of_uvicorn_are_listed_and_explained() -> None:
    """A new override, or a new name in uvicorn, needs a look before uvicorn is upgraded."""
    callables = {
        name
        for name, value in vars(EdgeProtocol).items()
        if callable(value) or isinstance(value, property)
    }
    assert callables & set(dir(HttpToolsProtocol)) == OVERRIDDEN
    assert all(vars(EdgeProtocol)[name].__doc__ for name in OVERRIDDEN)


def test_used_attributes_of_uvicorn_exist() -> None:
    names = set(HttpToolsProtocol.__init__.__code__.co_names) | set(dir(HttpToolsProtocol))
    assert names >= USED


def test_garbage_behind_a_request_keeps_its_response(
    server: ServerProcess,
) -> None:
    """Both come in one piece: the second's body is broken before the first has been looked at."""
    sent = (
        b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n"
        + post("current", "Transfer-Encoding: chunked")
        + b"zz\r\n"
    )
    ((status, _, body),) = talk(server, sent)
    assert (status, body) == (200, b'{"status":"ok"}')
