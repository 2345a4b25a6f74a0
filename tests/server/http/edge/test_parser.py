"""The parser: requests from any pieces, and its limits."""

import httptools
import pytest

from ldprecover_server.http.edge.limits import (
    HEAD_BYTES,
    MAX_COMMAS,
    MAX_HEADERS,
    MAX_QUERY_FIELDS,
    TARGET_BYTES,
)
from ldprecover_server.http.edge.parser import LimitedParser, RejectedError

GET = b"GET /a?b HTTP/1.1\r\nHost: test\r\n\r\n"
POST = b"POST /c HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nbody"


class Heard:
    """Keeps what the parser tells."""

    def __init__(self) -> None:
        self.is_answering = False
        self.requests: list[dict[str, object]] = []

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.headed = False

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.headed = True

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.requests.append({"url": self.url, "headers": self.headers, "body": self.body})


def fed(data: bytes, size: int = 1 << 20) -> tuple[Heard, LimitedParser]:
    heard = Heard()
    parser = LimitedParser(heard)
    feed(parser, data, size)
    return heard, parser


def feed(parser: LimitedParser, data: bytes, size: int = 1 << 20) -> None:
    for start in range(0, len(data), size):
        parser.feed_data(data[start : start + size])


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_passes_requests_on_from_any_pieces(size: int) -> None:
    heard, parser = fed(GET + POST, size)
    assert [(each["url"], each["body"]) for each in heard.requests] == [
        (b"/a?b", b""),
        (b"/c", b"body"),
    ]
    assert heard.requests[0]["headers"] == [(b"host", b"test")]
    assert parser.in_head


@pytest.mark.parametrize("size", [1, 1000])
def test_ignores_offer_to_change_the_protocol(size: int) -> None:
    offer = GET.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
    heard, parser = fed(offer + POST, size)
    assert [each["url"] for each in heard.requests] == [b"/a?b", b"/c"]
    assert b"upgrade" not in {name for name, _ in heard.requests[0]["headers"]}  # type: ignore[attr-defined]
    assert not parser.should_upgrade()


@pytest.mark.parametrize(
    "beside",
    [
        b"0\r\nX: " + 262144 * b"x",
        b"0\r\n" + 65536 * b"X: y\r\n",
        b"1;" + 262144 * b"x",
        262144 * b"0",
    ],
)
@pytest.mark.parametrize("size", [1000, 16_384, 1 << 20])
def test_bounds_chunk_sizes_and_trailers(beside: bytes, size: int) -> None:
    """The input is endless, and the parser rejects it within two pieces of the limit."""
    head = b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
    with pytest.raises(httptools.HttpParserError):
        fed(head + beside, size)


@pytest.mark.parametrize(("n", "size"), [(250, 1), (5000, 1024)])
def test_accepts_small_chunks(n: int, size: int) -> None:
    head = b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    heard, _ = fed(head + n * (b"%x\r\n%b\r\n" % (size, size * b"x")) + b"0\r\n\r\n", 5000)
    assert heard.requests[0]["body"] == n * size * b"x"


@pytest.mark.parametrize("size", [1, 16, 256])
def test_limits_small_chunks_of_one_piece(size: int) -> None:
    """Each chunk takes a microsecond, and 2,000 connections may send such a piece together."""
    heard = Heard()
    parser = LimitedParser(heard)
    parser.feed_data(b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    with pytest.raises(RejectedError):
        parser.feed_data(40_000 * (b"%x\r\n%b\r\n" % (size, size * b"x")))
    assert len(heard.body) <= 256 * size


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n" + (MAX_HEADERS + 1) * b"a: b\r\n" + b"\r\n",
        b"GET / HTTP/1.1\r\nX: " + 2 * HEAD_BYTES * b"x",
        b"GET / HTTP/1.1\r\nX: " + (MAX_COMMAS + 1) * b"," + b"\r\n\r\n",
        b"GET /" + TARGET_BYTES * b"x",
        b"GET /?" + MAX_QUERY_FIELDS * b"&",
    ],
    ids=["headers", "a header", "commas", "a path", "query fields"],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_rejects_large_head_while_it_arrives(head: bytes, size: int) -> None:
    with pytest.raises(RejectedError) as rejected:
        fed(head, size)
    assert rejected.value.status == 431


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_rejects_request_before_the_response(size: int) -> None:
    heard, parser = fed(POST)
    heard.is_answering = True
    feed(parser, b"\r\n")  # some clients send it behind a body
    with pytest.raises(RejectedError):
        feed(parser, GET + POST, size)
    assert [each["url"] for each in heard.requests] == [b"/c"]


def test_drops_cookies_and_trailers() -> None:
    chunked = (
        b"POST /c HTTP/1.1\r\nCOOKIE: a\r\nTransfer-Encoding: chunked\r\ncookie: b\r\n\r\n"
        b"1\r\nx\r\n0\r\nSecret: y\r\n\r\n"
    )
    (request,) = fed(chunked)[0].requests
    assert request["headers"] == [(b"transfer-encoding", b"chunked")]
    assert request["body"] == b"x"


def test_limits_head_behind_a_body() -> None:
    _, parser = fed(POST)
    with pytest.raises(RejectedError):
        parser.feed_data(b"GET / HTTP/1.1\r\nX: " + HEAD_BYTES * b"x" + b"\r\n\r\n")


def test_passes_chunks_of_one_piece_on_together() -> None:
    heard, parser = fed(b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    bodies: list[bytes] = []
    heard.on_body = bodies.append  # type: ignore[assignment, method-assign]
    parser.feed_data(200 * b"1\r\nx\r\n" + b"0\r\n\r\n")
    assert bodies == [200 * b"x"]


def test_connect_ends_the_connection() -> None:
    heard = Heard()
    parser = LimitedParser(heard)
    with pytest.raises(RejectedError):
        parser.feed_data(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\nanything")
    assert heard.headed


def test_rejects_bytes_that_are_not_http() -> None:
    with pytest.raises(httptools.HttpParserError):
        fed(b"no http\r\n\r\n")
