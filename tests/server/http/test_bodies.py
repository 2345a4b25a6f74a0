"""Request bodies: limits as sent and decompressed, and reserved memory."""

import asyncio
import gzip
import os
import re
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pydantic import RootModel
from starlette.requests import Request
from tests.conftest import PACKED, ServerProcess
from tests.liveness import PeakMemory
from tests.server.conftest import StartInProcess, problem_of

from ldprecover_interface.rounds import NewRound
from ldprecover_server import Settings
from ldprecover_server.errors import (
    BodyTimeoutError,
    BodyTooLargeError,
    BusyError,
    InvalidRequestError,
    MalformedBodyError,
    ServiceError,
    UnsupportedMediaTypeError,
    UnsupportedTransferEncodingError,
)
from ldprecover_server.http.bodies import Body, BodyLimit, json_body, parse_json
from ldprecover_server.limits import (
    ANONYMOUS_BYTES,
    DECODED_BYTES,
    BodyMemory,
    Limits,
    MemoryBudget,
)

pytestmark = pytest.mark.sqlite


MIB = 1 << 20
ZIPPED = {"Content-Encoding": "gzip"}
JSON = {"Content-Type": "application/json"}


def bomb(mib: int, unit: bytes = b"\0") -> bytes:
    """Return the gzip of `mib` MiB, a thousand times smaller."""
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    piece = unit * (MIB // len(unit))
    return b"".join([*(packer.compress(piece) for _ in range(mib)), packer.flush()])


def raw(server: ServerProcess, head: str, body: bytes = b"") -> bytes:
    """Send a request as bytes and return all that is answered until the server closes the
    connection.
    """
    return server.talk(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)


def test_accepts_body_at_the_limit_and_rejects_more(start_in_process: StartInProcess) -> None:
    app = start_in_process(max_body_bytes=1024, max_decoded_bytes=4096)
    id = app.open_round()
    path = f"/rounds/{id}/reports"
    packed = PACKED | app.admin
    assert app.post(path, content=256 * b"\1\0\0\0", headers=packed).json()["accepted"] == 256
    response = app.post(path, content=257 * b"\1\0\0\0", headers=packed)
    assert problem_of(response) == "body-too-large"
    assert "1024 bytes" in response.json()["detail"]
    assert (
        app.post(
            path, content=gzip.compress(1024 * b"\1\0\0\0"), headers=packed | ZIPPED
        ).status_code
        == 202
    )
    response = app.post(path, content=gzip.compress(1025 * b"\1\0\0\0"), headers=packed | ZIPPED)
    assert problem_of(response) == "body-too-large"
    assert "4096 bytes" in response.json()["detail"]
    # Both limits hold: this one would fit once decompressed.
    seeds = app.open_round("olh")
    incompressible = gzip.compress(b"".join(os.urandom(4) + b"\0\0" for _ in range(240)))
    assert 1024 < len(incompressible) < 4096
    assert (
        app.post(
            f"/rounds/{seeds}/reports", content=incompressible, headers=packed | ZIPPED
        ).status_code
        == 413
    )
    assert app.get(f"/rounds/{id}").json()["n"] == 256 + 1024


def test_rejects_content_length_above_the_limit(server: ServerProcess) -> None:
    id = server.open_round()["id"]
    for length in (16 * MIB + 1, 10**15):
        for expect in ("", "\nExpect: 100-continue"):
            head = f"POST /rounds/{id}/reports HTTP/1.1\nHost: test\nContent-Type: application/json"
            head += "\nConnection: close"
            answer = raw(server, f"{head}\nContent-Length: {length}{expect}")
            assert answer.startswith(b"HTTP/1.1 413 ")
            assert b"application/problem+json" in answer
            assert b"#body-too-large" in answer


@pytest.fixture(scope="module")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that decompresses no more than 8 MiB and holds no more than 64, whose memory nobody
    else makes grow.
    """
    limits: dict[str, Any] = {"max_decoded_bytes": 8 * MIB, "queue_bytes": 64 * MIB}
    server = ServerProcess(tmp_path_factory.mktemp("server"), kernels="numpy", **limits)
    server.start()
    yield server
    server.kill()


on_linux = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc"
)


@on_linux
@pytest.mark.parametrize(
    "mib", [32, 128], ids=["small enough for the event loop", "undone in a thread"]
)
def test_rejects_gzip_bombs_without_leaking_memory(small_server: ServerProcess, mib: int) -> None:
    """Forty bombs, one after the other: never four times the limit of 8 MiB more than before."""
    id = small_server.open_round()["id"]
    packed = bomb(mib)
    assert len(packed) < mib * MIB // 500
    small_server.submit(id, b"\1\0\0\0")
    memory = PeakMemory(small_server.pid)
    for headers in 20 * [JSON, PACKED]:
        response = small_server.post(
            f"/rounds/{id}/reports", content=packed, headers=headers | ZIPPED
        )
        assert problem_of(response) == "body-too-large"
    assert memory.grown < 32 * MIB
    assert small_server.frequencies(id)["n"] == 1


@on_linux
def test_concurrent_swelling_bodies_stay_within_memory(small_server: ServerProcess) -> None:
    """Decoded, `[[],[],...]` takes 28 times its text. Nobody here has a key, and no call is a
    submission.
    """
    small_server.open_round()
    packed = gzip.compress(b"[" + b"[]," * (MIB // 3) + b"[]]")

    async def send_all() -> list[httpx.Response]:
        async with httpx.AsyncClient(
            base_url=small_server.url, timeout=60, trust_env=False
        ) as http:
            calls = [
                http.post(path, content=packed, headers=JSON | ZIPPED)
                for path in 12 * ["/rounds", "/recover"]
            ]
            return await asyncio.gather(*calls)

    memory = PeakMemory(small_server.pid)
    answers = asyncio.run(send_all())
    assert {problem_of(answer) for answer in answers} == {"unauthorized", "body-too-large"}
    assert memory.grown < (64 + 16) * MIB


def piece(body: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def limit(sent: int = 100, decoded: int = 1000, anonymous: bool = False) -> BodyLimit:
    return BodyLimit(sent, decoded, anonymous)


def a_body(bodies: BodyMemory, *messages: dict[str, Any], **headers: str) -> Body:
    """A body of which these messages come, and then nothing but the end of the connection."""
    named = {"content_type": "application/json", "transfer_encoding": "chunked", **headers}
    listed = [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()]
    remaining = list(messages)

    async def receive() -> Any:
        return remaining.pop(0) if remaining else {"type": "http.disconnect"}

    return Body(
        bodies, {"type": "http", "method": "POST", "path": "/reports", "headers": listed}, receive
    )


def read(body: Body, bound: BodyLimit | None = None) -> bytes:
    return bytes(asyncio.run(body.read(bound or limit())))


def test_body_in_pieces_is_reserved_until_released() -> None:
    bodies = BodyMemory(10_000)
    body = a_body(
        bodies,
        piece(b"", True),
        piece(b"ab", True),
        piece(b"", True),
        piece(b"cd", True),
        piece(b"e"),
    )
    assert (read(body), bodies.budget.reserved) == (b"abcde", 5)
    body.release()
    assert bodies.budget.reserved == 0


def test_gzip_in_pieces_reserves_both_sizes() -> None:
    bodies = BodyMemory(10_000)
    packed = gzip.compress(bytes(1000))
    pieces = [piece(packed[i : i + 1], True) for i in range(len(packed))]
    body = a_body(bodies, *pieces, piece(b""), content_encoding="gzip")
    assert (read(body), bodies.budget.reserved) == (bytes(1000), len(packed) + 1000)
    body.release()
    assert bodies.budget.reserved == 0


def test_disconnect_releases_memory() -> None:
    bodies = BodyMemory(10_000)
    body = a_body(bodies, piece(b"ab", True))
    with pytest.raises(BodyTimeoutError, match="disconnected"):
        read(body)
    body.release()
    assert bodies.budget.reserved == 0


@pytest.mark.parametrize(
    ("pieces", "headers", "refusal"),
    [
        ([99 * b"a", b"bb"], {}, BodyTooLargeError),
        ([b"a"], {"content_length": "101"}, BodyTooLargeError),
        ([b"a"], {"content_length": 5000 * "9"}, BodyTooLargeError),
        ([gzip.compress(bytes(1001))], {"content_encoding": "gzip"}, BodyTooLargeError),
        ([gzip.compress(bytes(900)) + b"x"], {"content_encoding": "gzip"}, MalformedBodyError),
        ([gzip.compress(bytes(900))[:-1]], {"content_encoding": "gzip"}, MalformedBodyError),
        ([b"no gzip"], {"content_encoding": "gzip"}, MalformedBodyError),
        ([b"a"], {"content_encoding": "gzip, gzip"}, UnsupportedMediaTypeError),
        ([b"a"], {"content_type": ""}, UnsupportedMediaTypeError),
        ([b"a"], {"content_encoding": "br"}, UnsupportedMediaTypeError),
        ([b"a"], {"content_type": "text/plain"}, UnsupportedMediaTypeError),
        ([b"a"], {"transfer_encoding": "gzip, chunked"}, UnsupportedTransferEncodingError),
    ],
    ids=[
        "sent",
        "said",
        "digits",
        "decompressed",
        "more",
        "less",
        "no gzip",
        "encodings",
        "no type",
        "encoding",
        "type",
        "transfer",
    ],
)
def test_rejected_body_releases_memory(
    pieces: list[bytes], headers: dict[str, str], refusal: type[ServiceError]
) -> None:
    bodies = BodyMemory(10_000)
    body = a_body(bodies, *(piece(each, True) for each in pieces), piece(b""), **headers)
    with pytest.raises(refusal):
        read(body)
    body.release()
    assert bodies.budget.reserved == 0


def kept_by(error: BaseException | None) -> str:
    """Return the variables of reading and parsing that an error and its context keep."""
    variables = ""
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_globals["__name__"] in (Body.__module__,):
                variables += repr(frame.f_locals)
        error = error.__context__
    return variables


@pytest.mark.parametrize("last", [piece(100 * b"y"), piece(b"", True)], ids=["long", "cut off"])
def test_error_keeps_no_bytes_of_the_body(last: dict[str, Any]) -> None:
    """The client may take seconds to read the answer."""
    with pytest.raises((BodyTooLargeError, BodyTimeoutError)) as error:
        read(a_body(BodyMemory(10_000), piece(b"xxxx", True), piece(b"yyyy", True), last))
    assert "'self'" in kept_by(error.value)
    assert not re.search("xxxx|yyyy", kept_by(error.value))


@pytest.mark.parametrize("room", [10, MIB], ids=["no room to decode", "invalid"])
@pytest.mark.parametrize("size", [4_000, 100_000], ids=["small", "in a thread"])
def test_error_of_a_call_keeps_no_bytes_of_the_body(room: int, size: int) -> None:
    limits = Limits(Settings())
    limits.decoded = MemoryBudget(room)

    async def receive() -> Any:
        return piece(size * b"x")

    headers = [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
    caller: Any = SimpleNamespace(services=SimpleNamespace(limits=limits), is_known=False)

    async def endpoint() -> None:
        async with json_body(request, caller, NewRound, MIB):
            raise AssertionError

    with pytest.raises(ServiceError) as error:
        asyncio.run(endpoint())
    assert "'request'" in kept_by(error.value)
    assert "xxxx" not in kept_by(error.value)


@pytest.mark.parametrize("workers", [1, 2, 64])
def test_processes_divide_the_memory_of_decoded_bodies(
    start_in_process: StartInProcess, workers: int
) -> None:
    """Each has room for the largest body of an anonymous caller."""
    services = start_in_process(workers=workers).app.state.services
    assert services.limits.decoded.limit == max(ANONYMOUS_BYTES, DECODED_BYTES // workers)


def test_reads_content_length_with_many_zeros() -> None:
    body = a_body(BodyMemory(10_000), piece(b"ab"), content_length=5000 * "0" + "2")
    assert read(body) == b"ab"


def test_rejects_body_until_memory_is_released() -> None:
    bodies = BodyMemory(120)
    first, second, third = (a_body(bodies, piece(bytes(n))) for n in (100, 21, 20))
    read(first)
    with pytest.raises(BusyError):
        read(second)
    second.release()
    first.release()
    assert read(third) == bytes(20)


@pytest.mark.parametrize("path", ["/rounds/nothing/reports", "/nowhere", "/rounds"])
def test_rejected_upload_leaves_the_connection_usable(server: ServerProcess, path: str) -> None:
    """The server drops the rest of the body, and does not take it for a request."""
    with httpx.Client(base_url=server.url, timeout=60) as http:
        for _ in range(3):
            response = http.post(path, content=bytes(2 * MIB), headers=JSON)
            assert response.status_code in (401, 404)
            assert http.get("/healthz").status_code == 200


class AnyJson(RootModel[Any]):
    """Any JSON."""


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b' {"count": [3, 1.0, "\\ud83d\\ude00"]}\n', {"count": [3, 1.0, "\N{GRINNING FACE}"]}),
        (b'{"count": 1, "c\\u006funt": 2}', {"count": 2}),
    ],
)
def test_json_is_its_value(body: bytes, value: object) -> None:
    assert parse_json(AnyJson, bytearray(body)).root == value


@pytest.mark.parametrize(
    "body",
    [
        b'{"count": 1',
        b'{"\xff": 1}',
        b'\xef\xbb\xbf{"count": 1}',
        b'{"count": NaN}',
        b'{"count": 1} x',
        b'{"\\ud800": 1}',
        b'{"\\ud800 and much more of it": 1}',
        b'{"\\udc00 and much more of it": 1}',
        b"[" * 100_000,
    ],
)
def test_rejects_what_is_not_strict_json(body: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="not JSON"):
        parse_json(AnyJson, body)
