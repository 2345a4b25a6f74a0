"""Any bytes on a socket give responses without 5xx or a close; the next client is served."""

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretStr
from tests.conftest import ADMIN_KEY
from tests.fuzzing import SECONDS, property_settings, repeat, tried
from tests.liveness import Cost, LoopWatch, PeakMemory, assert_live
from uvicorn.server import ServerState

from ldprecover_server import Application, Settings
from ldprecover_server.http.edge import EdgeProtocol
from ldprecover_server.http.edge.limits import HEAD_BYTES
from ldprecover_server.storage import Storage

STATUSES = {
    100,
    200,
    201,
    202,
    204,
    304,
    307,
    400,
    401,
    403,
    404,
    405,
    408,
    409,
    413,
    415,
    422,
    431,
    501,
}

good_lines = st.sampled_from(
    [
        b"GET /version HTTP/1.1",
        b"GET /rounds HTTP/1.0",
        b"GET /frequencies HTTP/1.1",
        b"HEAD /version HTTP/1.1",
        b"POST /reports HTTP/1.1",
        b"POST /reports HTTP/1.1",
        b"POST /recover HTTP/1.1",
    ]
)
bad_lines = st.sampled_from(
    [
        b"POST /rounds/%00/reports HTTP/1.1",
        b"POST /rounds HTTP/1.1",
        b"PUT /%ff%2f..//\xc3\xa4 HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"CONNECT x:1 HTTP/1.1",
        b"GET http://x/frequencies?a=%zz HTTP/1.1",
        b"PRI * HTTP/2.0",
        b"get /version http/1.1",
        b"GET  /version HTTP/1.1",
        b"\x16\x03\x01\x02\x00\x01",
        b"",
    ]
)
good_headers = st.sampled_from(
    [
        b"Host: localhost",
        b"Content-Length: 8",
        b"Content-Length: 8",
        b"Transfer-Encoding: chunked",
        b"Expect: 100-continue",
        b"Content-Type: application/vnd.ldprecover.reports",
        b"Content-Type: application/vnd.ldprecover.reports",
        b"Content-Type: application/json",
        b"Content-Encoding: gzip",
        b"Authorization: Bearer " + ADMIN_KEY.encode(),
        b"Idempotency-Key: a",
        b"Connection: close",
        b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x",
    ]
)
bad_headers = st.sampled_from(
    [
        b"Host:",
        b"Content-Length: -1",
        b"Content-Length: 99999999999999999999",
        b"Transfer-Encoding: gzip, chunked",
        (
            b"Upgrade: websocket\r\nConnection: "
            b"Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13"
        ),
        b"Authorization: \xff",
        b"X-Request-Id: \xff",
        b" folded",
        b": no name",
        b"No colon",
        b"X: " + b"a" * HEAD_BYTES,
    ]
)
contents = st.sampled_from(
    [
        b"",
        b"\1\0\0\0\2\0\0\0",
        b"4\r\n\1\0\0\0\r\n0\r\n\r\n",
        b"4\r\n\1\0",
        b"zz\r\n",
        b"0\r\nX-Trailer: 1\r\n\r\n",
        b"{}",
    ]
) | st.binary(max_size=20)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Return requests one after another, well formed or not, with bytes changed here and there; or
    any bytes.
    """
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    data = bytearray()
    for _ in range(draw(st.integers(1, 3))):
        odd = draw(st.sampled_from([False, False, True]))
        head = [draw(bad_lines if odd and draw(st.booleans()) else good_lines)]
        head += draw(
            st.lists(
                good_headers | bad_headers if odd else good_headers, max_size=6, unique=not odd
            )
        )
        data += draw(st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n"])).join([*head, b"", b""])
        data += draw(contents)
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 2, 4]))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


def _recover(body: bytes) -> bytes:
    head = (
        "POST /recover HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: "
        f"{len(body)}\r\n"
    )
    return head.encode() + b"Connection: close\r\n\r\n" + body


class Front:
    """The server's connections before its whole application, in this process, on a real socket."""

    def __init__(self, url: str) -> None:
        self.failures: list[str] = []
        storage = Storage(url)
        storage.prepare()
        self._app = Application(Settings(database_url=url, admin_key=SecretStr(ADMIN_KEY)), storage)
        config = uvicorn.Config(
            self._app, http=EdgeProtocol, lifespan="off", log_config=None, access_log=False
        )
        config.load()
        self._runner = asyncio.Runner(loop_factory=config.get_loop_factory())
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self._sent: asyncio.Queue[Any] = asyncio.Queue()
        self._state = ServerState()
        self._watch, self._memory = LoopWatch(), PeakMemory()
        self._runner.run(self._start(config))

    async def _start(self, config: uvicorn.Config) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.failures.append(str(context)))
        self._lifespan = asyncio.create_task(
            self._app({"type": "lifespan"}, self._events.get, self._sent.put)
        )
        await self._events.put({"type": "lifespan.startup"})
        assert (await self._sent.get())["type"] == "lifespan.startup.complete"
        self._server = await loop.create_server(
            lambda: EdgeProtocol(config, self._state, {}), "127.0.0.1", 0
        )
        self._address = self._server.sockets[0].getsockname()

    def talk(self, pieces: list[bytes], *, patient: bool = True) -> bytes:
        """Send pieces, then no more; return all that comes back until the server ends the
        connection.

        Who is not patient does not wait for the answers to what was sent before saying that no more
        comes.
        """
        self._memory.reset()
        return self._runner.run(self._watched(pieces, patient))

    @property
    def cost(self) -> Cost:
        """What the last talk cost; half of it the one who talked."""
        return Cost(self._watch.longest, self._memory.grown)

    async def _watched(self, pieces: list[bytes], patient: bool) -> bytes:
        with self._watch.watching():
            return await self._talk(pieces, patient)

    async def _talk(self, pieces: list[bytes], patient: bool) -> bytes:
        reader, writer = await asyncio.open_connection(*self._address)
        answer = b""
        try:
            with contextlib.suppress(OSError):  # the server may end it before all is sent
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                # Who sends no more is gone for uvicorn, and gets no answer that is not ready.
                await asyncio.sleep(0.001 if patient else 0)
                while patient and any(map(_is_busy, self._state.connections)):
                    await asyncio.sleep(0.001)
                if not writer.is_closing():
                    writer.write_eof()
            with contextlib.suppress(OSError):
                answer = await asyncio.wait_for(reader.read(), 60)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        return answer

    async def _stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()
        await self._events.put({"type": "lifespan.shutdown"})
        assert (await self._sent.get())["type"] == "lifespan.shutdown.complete"
        await self._lifespan

    def open_round(self) -> None:
        body = b'{"protocol":"grr","epsilon":1,"domain_size":4}'
        head = (
            f"POST /rounds HTTP/1.1\r\nAuthorization: Bearer {ADMIN_KEY}\r\nContent-Type: "
            "application/json\r\n"
        )
        answer = self.talk(
            [f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body]
        )
        assert answer.startswith(b"HTTP/1.1 201 "), answer

    def close(self) -> None:
        with contextlib.closing(self._runner):
            self._runner.run(self._stop())


def _is_busy(connection: Any) -> bool:
    """Tell whether a request has arrived whole that is not answered yet."""
    cycle = connection.cycle
    return cycle is not None and not (cycle.more_body or cycle.response_complete)


@pytest.fixture
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with contextlib.closing(
        Front(f"sqlite:///{tmp_path_factory.mktemp('front') / 'ldprecover.db'}")
    ) as front:
        yield front


class Errors(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def errors(caplog: pytest.LogCaptureFixture) -> Iterator[list[logging.LogRecord]]:
    """What is logged as an error; of the rest, which is much, nothing is kept."""
    handler, usual = Errors(), caplog.handler.level
    caplog.handler.setLevel(logging.CRITICAL)  # one handler for the whole session: put back below
    logging.getLogger().addHandler(handler)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    yield handler.records
    logging.getLogger("uvicorn.error").setLevel(logging.NOTSET)
    logging.getLogger().removeHandler(handler)
    caplog.handler.setLevel(usual)


@pytest.mark.timeout(300 + 2 * SECONDS)
def test_any_bytes_leave_server_usable(front: Front, errors: list[logging.LogRecord]) -> None:
    front.open_round()

    @property_settings(150)
    @given(streams(), st.lists(st.integers(0, 400), max_size=3), st.booleans())
    @example(b"\0", [], False)
    @example(
        b"POST /reports HTTP/1.1\r\nContent-Length: "
        b"4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        [],
        True,
    )
    @example(b"GET /version HTTP/1.1\r\nX: " + b"a" * HEAD_BYTES + b"\r\n\r\n", [100], True)
    @example(
        b"GET /healthz HTTP/1.1\r\nProxy-Connection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n\r\n",
        [],
        True,
    )
    @example(b"GET /version HTTP/1.1\r\nContent-Length: " + b"0" * 5000 + b"\r\n\r\n", [], True)
    @example(_recover(b"{" + b",".join(b'"%x":0' % i for i in range(300_000)) + b"}"), [], True)
    @example(_recover(b'{"targets":[' + b",".join(100_000 * [b"{}"]) + b"]}"), [], True)
    @example(_recover(100_000 * b"["), [], True)
    def check(stream: bytes, cuts: list[int], patient: bool) -> None:
        places = sorted({min(cut, len(stream)) for cut in cuts})
        pieces = [
            stream[start:end]
            for start, end in zip([0, *places], [*places, len(stream)], strict=True)
        ]
        answer = front.talk(pieces, patient=patient)

        def again() -> Cost:
            front.talk(pieces, patient=patient)
            return front.cost

        assert_live(front.cost, again)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 ")
        statuses = {int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)}
        for outcome in [*map(str, statuses)] or ["ended without an answer"]:
            tried["connections"][outcome] += 1
        assert statuses <= STATUSES
        served = front.talk(
            [b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"]
        )
        assert served.startswith(b"HTTP/1.1 200 OK\r\n")
        assert json.loads(served.partition(b"\r\n\r\n")[2])["version"]
        assert front.failures == []
        assert errors == []

    repeat(check)
