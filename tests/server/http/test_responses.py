"""Compressed and conditional responses, and callers that disconnect."""

import asyncio

import httpx
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message
from tests.conftest import ADMIN_KEY
from tests.server.conftest import InProcess, problem_of

from ldprecover_server.http.responses import accepts_gzip, cancel_on_disconnect

pytestmark = pytest.mark.sqlite
LARGE = [f"the label of item {i}" for i in range(4_000)]


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, *", False),
        ("*", True),
        ("*;q=0", False),
        ("identity", False),
        ("gzip;q=0.5, identity", False),
        ("gzip;q=often", False),
    ],
)
def test_gzip_is_accepted(header: str | None, accepted: bool) -> None:
    headers = [] if header is None else [(b"accept-encoding", header.encode())]
    assert accepts_gzip(Request({"type": "http", "headers": headers})) is accepted


@pytest.mark.parametrize("path", ["frequencies", "frequencies?format=csv", "export", "recover", ""])
def test_large_response_is_compressed_on_request(in_process: InProcess, path: str) -> None:
    round = in_process.open_round(items=LARGE)
    in_process.submit(round, b"\1\0\0\0", "a")
    method = "POST" if path == "recover" else "GET"

    def get(encoding: str, method: str = method) -> httpx.Response:
        url = f"/rounds/{round}/{path}".rstrip("/")
        return in_process.request(method, url, headers={"Accept-Encoding": encoding})

    plain, packed = get("identity"), get("gzip")
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert packed.content == plain.content  # httpx has decompressed it
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    if path != "recover":
        head = get("gzip", "HEAD")
        assert head.content == b""
        assert head.headers["content-length"] == packed.headers["content-length"]


def test_small_response_is_not_compressed(in_process: InProcess) -> None:
    round = in_process.open_round()
    response = in_process.get(f"/rounds/{round}/frequencies", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in response.headers


def test_compressed_parameters_have_a_weak_tag(in_process: InProcess) -> None:
    path = f"/rounds/{in_process.open_round(items=LARGE)}/parameters"
    plain, packed = (
        in_process.get(path, headers={"Accept-Encoding": encoding})
        for encoding in ("identity", "gzip")
    )
    assert packed.headers["etag"] == f"W/{plain.headers['etag']}"


@pytest.mark.parametrize("form", ["json", "csv"])
def test_frequencies_without_new_reports_are_not_sent_again(
    in_process: InProcess, form: str
) -> None:
    round = in_process.open_round()
    path = f"/rounds/{round}/frequencies?format={form}"
    other = path.replace(form, "csv" if form == "json" else "json")
    etag = in_process.get(path).headers["etag"]
    assert etag.startswith(f'W/"{round}-0')
    unchanged = in_process.get(path, headers={"If-None-Match": f'"other", {etag}'})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["etag"] == etag
    assert unchanged.headers["vary"] == "Accept-Encoding"
    assert in_process.get(other, headers={"If-None-Match": etag}).status_code == 200
    in_process.submit(round, b"\1\0\0\0", "a")
    changed = in_process.get(path, headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag


def test_unchanged_frequencies_need_the_key_of_the_round(in_process: InProcess) -> None:
    path = f"/rounds/{in_process.open_round(read_access='key')}/frequencies"
    admin = {"Authorization": f"Bearer {ADMIN_KEY}"}
    etag = in_process.get(path, headers=admin).headers["etag"]
    assert in_process.get(path, headers=admin | {"If-None-Match": etag}).status_code == 304
    assert problem_of(in_process.get(path, headers={"If-None-Match": etag})) == "unauthorized"
    assert problem_of(in_process.get(path, headers={"If-None-Match": "*"})) == "unauthorized"


class Caller:
    """A caller who stays connected until `disconnected` is set."""

    def __init__(self) -> None:
        self.disconnected = asyncio.Event()
        self.request = Request({"type": "http", "headers": []}, self._receive)

    async def _receive(self) -> Message:
        await self.disconnected.wait()
        return {"type": "http.disconnect"}


def test_result_and_error_reach_the_caller() -> None:
    async def run() -> None:
        async def right() -> int:
            return 7

        async def wrong() -> int:
            raise KeyError("7")

        assert await cancel_on_disconnect(Caller().request.receive, right()) == 7
        with pytest.raises(KeyError):
            await cancel_on_disconnect(Caller().request.receive, wrong())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


@pytest.mark.parametrize("ends", ["the caller goes", "the call is cancelled"])
def test_the_work_ends_before_the_call_does(ends: str) -> None:
    async def run() -> None:
        caller, begun, ended = Caller(), asyncio.Event(), asyncio.Event()

        async def work() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        call = asyncio.create_task(cancel_on_disconnect(caller.request.receive, work()))
        await begun.wait()
        if ends == "the caller goes":
            caller.disconnected.set()
        else:
            call.cancel()
        with pytest.raises(
            ClientDisconnect if ends == "the caller goes" else asyncio.CancelledError
        ):
            await call
        assert ended.is_set()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
