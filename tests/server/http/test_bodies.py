"""Bodies within bounds: sizes as sent and as decompressed, and what the server holds meanwhile."""

import asyncio
import gzip
import os
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import PACKED, ServerProcess
from tests.server.conftest import ProblemOf, StartInProcess

from ldprecover_server.http.bodies import BodyGuard

MIB = 1 << 20
ZIPPED = {"Content-Encoding": "gzip"}
JSON = {"Content-Type": "application/json"}


def bomb(mib: int, unit: bytes = b"\0") -> bytes:
    """Return gzip of so many MiB, a thousand times smaller."""
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    piece = unit * (MIB // len(unit))
    return b"".join([*(packer.compress(piece) for _ in range(mib)), packer.flush()])


def peak_mib(server: ServerProcess) -> float:
    """Return the most memory the process ever had, in MiB."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def raw(server: ServerProcess, head: str, body: bytes = b"") -> bytes:
    """Send a request as bytes and return all that is answered until the server closes the connection."""
    with socket.create_connection((server.http.base_url.host, server.http.base_url.port), timeout=30) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_body_of_exactly_the_limit_is_taken_and_one_report_more_is_not(
    start_in_process: StartInProcess, problem_of: ProblemOf
) -> None:
    app = start_in_process(max_body_bytes=1024, max_decoded_bytes=4096)
    id = app.open_round()
    path = f"/rounds/{id}/reports"
    packed = PACKED | app.admin
    assert app.post(path, content=256 * b"\1\0\0\0", headers=packed).json()["accepted"] == 256
    response = app.post(path, content=257 * b"\1\0\0\0", headers=packed)
    assert (response.status_code, problem_of(response)) == (413, "body-too-large")
    assert "1024 bytes" in response.json()["detail"]
    assert app.post(path, content=gzip.compress(1024 * b"\1\0\0\0"), headers=packed | ZIPPED).status_code == 202
    response = app.post(path, content=gzip.compress(1025 * b"\1\0\0\0"), headers=packed | ZIPPED)
    assert (response.status_code, problem_of(response)) == (413, "body-too-large")
    assert "4096 bytes" in response.json()["detail"]
    # Both limits hold: this one would fit once decompressed.
    seeds = app.open_round("olh")
    incompressible = gzip.compress(b"".join(os.urandom(4) + b"\0\0" for _ in range(240)))
    assert 1024 < len(incompressible) < 4096
    assert app.post(f"/rounds/{seeds}/reports", content=incompressible, headers=packed | ZIPPED).status_code == 413
    assert app.get(f"/rounds/{id}").json()["n"] == 256 + 1024


def test_a_length_above_the_limit_is_refused_before_any_body_is_read(server: ServerProcess) -> None:
    id = server.open_round()["id"]
    for length in (16 * MIB + 1, 10**15):
        for expect in ("", "\nExpect: 100-continue"):
            head = f"POST /rounds/{id}/reports HTTP/1.1\nHost: test\nContent-Type: application/json"
            answer = raw(server, f"{head}\nContent-Length: {length}{expect}")
            assert answer.startswith(b"HTTP/1.1 413 ")
            assert b"application/problem+json" in answer
            assert b"#body-too-large" in answer


def test_a_body_without_a_length_is_refused_once_it_passes_the_limit(
    server: ServerProcess, problem_of: ProblemOf
) -> None:
    id = server.open_round()["id"]
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += MIB
            yield b"1" * MIB

    response = server.http.post(f"/rounds/{id}/reports", content=endless(), headers=JSON)
    assert (response.status_code, problem_of(response)) == (413, "body-too-large")
    assert sent < 100 * MIB
    assert server.frequencies(id)["n"] == 0


@pytest.fixture(scope="module")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that decompresses no more than 8 MiB and holds no more than 64, whose memory nobody else makes grow."""
    limits = {"max_decoded_bytes": 8 * MIB, "queue_bytes": 64 * MIB}
    server = ServerProcess(tmp_path_factory.mktemp("server"), kernels="numpy", **limits)
    server.start()
    yield server
    server.kill()


on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc")


@on_linux
@pytest.mark.parametrize("mib", [32, 128], ids=["small enough for the event loop", "undone in a thread"])
def test_gzip_bombs_are_refused_and_leave_no_memory_behind(
    small_server: ServerProcess, mib: int, problem_of: ProblemOf
) -> None:
    """Forty bombs, one after the other: never four times the limit of 8 MiB more than before."""
    id = small_server.open_round()["id"]
    packed = bomb(mib)
    assert len(packed) < mib * MIB // 500
    small_server.submit(id, b"\1\0\0\0")
    before = peak_mib(small_server)
    for headers in 20 * [JSON, PACKED]:
        response = small_server.http.post(f"/rounds/{id}/reports", content=packed, headers=headers | ZIPPED)
        assert (response.status_code, problem_of(response)) == (413, "body-too-large")
    assert peak_mib(small_server) - before < 32
    assert small_server.frequencies(id)["n"] == 1


@on_linux
def test_a_crowd_of_bodies_that_swell_when_decoded_is_held_within_the_allowance(
    small_server: ServerProcess, problem_of: ProblemOf
) -> None:
    """Decoded, `[[],[],...]` takes 28 times its text. Nobody here has a key, and no call is a submission."""
    small_server.open_round()
    packed = gzip.compress(b"[" + b"[]," * (MIB // 3) + b"[]]")

    async def crowd() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=small_server.url, timeout=60, trust_env=False) as http:
            calls = [http.post(path, content=packed, headers=JSON | ZIPPED) for path in 12 * ["/rounds", "/recover"]]
            return await asyncio.gather(*calls)

    before = peak_mib(small_server)
    answers = asyncio.run(crowd())
    assert {problem_of(answer) for answer in answers} <= {"unauthorized", "invalid-request", "queue-full"}
    assert {answer.status_code for answer in answers} > {503}
    assert peak_mib(small_server) - before < 64 + 16


class Wire:
    """The two ends of an ASGI connection: messages to receive, and what was sent."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages = list(messages)
        self.sent: list[Any] = []

    async def receive(self) -> Any:
        return self.messages.pop(0) if self.messages else {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None


def piece(body: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def call(guard: BodyGuard, wire: Wire, path: str = "/reports", **headers: str) -> None:
    listed = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": path, "headers": listed}
    asyncio.run(guard(scope, wire.receive, wire.send))


class Reader:
    """An application that keeps what it reads, and answers 200 or fails."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.bodies: list[bytes] = []
        self.held: list[int] = []
        self.guard: BodyGuard

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        assert not message["more_body"]
        self.bodies.append(bytes(message["body"]))
        self.held.append(self.guard.held)
        if self.fails:
            raise RuntimeError("the application fails")
        await send({"type": "http.response.start", "status": 200, "headers": []})


def guarded(max_body: int = 100, max_decoded: int = 1000, max_held: int = 10_000, fails: bool = False) -> Reader:
    reader = Reader(fails)
    reader.guard = BodyGuard(reader, max_body, max_decoded, max_held)
    return reader


def test_a_body_in_pieces_arrives_whole() -> None:
    app = guarded()
    wire = Wire(piece(b"", True), piece(b"ab", True), piece(b"", True), piece(b"cd", True), piece(b"e"))
    call(app.guard, wire, content_type="application/json")
    assert (wire.status, app.bodies, app.held, app.guard.held) == (200, [b"abcde"], [5], 0)


def test_gzip_in_pieces_arrives_whole_and_both_sizes_are_held() -> None:
    app = guarded()
    packed = gzip.compress(bytes(1000))
    wire = Wire(*(piece(packed[i : i + 1], True) for i in range(len(packed))), piece(b""))
    call(app.guard, wire, content_type="application/json", content_encoding="gzip")
    assert (wire.status, app.bodies, app.held, app.guard.held) == (200, [bytes(1000)], [len(packed) + 1000], 0)


def test_a_body_for_the_framework_counts_as_what_it_may_grow_to_but_alone_always_fits() -> None:
    app = guarded(max_body=100, max_held=1_000)
    for size in (10, 100):
        wire = Wire(piece(bytes(size)))
        call(app.guard, wire, path="/rounds", content_type="application/json")
        assert (wire.status, app.guard.held) == (200, 0)
    assert app.held == [10 + 32 * 10, 1_000]
    wire = Wire(piece(gzip.compress(bytes(101))))
    call(app.guard, wire, path="/recover", content_type="application/json", content_encoding="gzip")
    assert (wire.status, app.guard.held) == (413, 0)


def test_a_client_that_goes_away_while_it_sends_leaves_nothing_held() -> None:
    app = guarded()
    wire = Wire(piece(b"ab", True))
    call(app.guard, wire, content_type="application/json")
    assert (wire.sent, app.bodies, app.guard.held) == ([], [], 0)


def test_an_application_that_fails_leaves_nothing_held() -> None:
    app = guarded(fails=True)
    with pytest.raises(RuntimeError):
        call(app.guard, Wire(piece(b"ab")), content_type="application/json")
    assert app.guard.held == 0


@pytest.mark.parametrize(
    ("bodies", "headers", "status"),
    [
        ([99 * b"a", b"bb"], {}, 413),
        ([b"a"], {"content_length": "101"}, 413),
        ([gzip.compress(bytes(1001))], {"content_encoding": "gzip"}, 413),
        ([gzip.compress(bytes(900)) + b"x"], {"content_encoding": "gzip"}, 415),
        ([b"a"], {"content_encoding": "br"}, 415),
        ([b"a"], {"content_type": "text/plain"}, 415),
    ],
    ids=["sent", "said", "decompressed", "no gzip", "unknown encoding", "unknown type"],
)
def test_a_refused_body_reaches_no_application_and_leaves_nothing_held(
    bodies: list[bytes], headers: dict[str, str], status: int
) -> None:
    app = guarded()
    wire = Wire(*(piece(body, True) for body in bodies), piece(b""))
    call(app.guard, wire, **{"content_type": "application/json", **headers})
    assert (wire.status, app.bodies, app.guard.held) == (status, [], 0)
    # What was not read would be taken for the next request.
    assert (b"connection", b"close") in wire.sent[0]["headers"]


def test_past_its_allowance_the_guard_answers_503_and_recovers() -> None:
    app = guarded(max_body=100, max_held=120)

    async def crowd() -> tuple[Wire, Wire, Wire]:
        arrived, go = asyncio.Event(), asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            arrived.set()
            await go.wait()
            await app(scope, receive, send)

        app.guard.app = slow
        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/reports", "headers": headers}
        first, second, third = (Wire(piece(bytes(n))) for n in (100, 21, 20))
        waiting = asyncio.create_task(app.guard(scope, first.receive, first.send))
        await arrived.wait()
        await app.guard(scope, second.receive, second.send)
        go.set()
        await waiting
        await app.guard(scope, third.receive, third.send)
        return first, second, third

    first, second, third = asyncio.run(crowd())
    assert (first.status, second.status, third.status) == (200, 503, 200)
    assert any(name == b"retry-after" for name, _ in second.sent[0]["headers"])
    assert app.guard.held == 0
