import gzip
import random
import ssl
import sys
import traceback
from pathlib import Path

import pytest
from tests.client.conftest import Collector, Stub
from tests.client.messages import VERSION

from ldprecover.protocols.wire import MEDIA_TYPE
from ldprecover_client import (
    ArgumentError,
    Client,
    InvalidAnswerError,
    RefusedError,
    Retries,
    UnansweredError,
)
from ldprecover_client import http as client_http
from ldprecover_client._httpx import httpx
from ldprecover_interface.operation import Version
from ldprecover_interface.submissions import Accepted

KEY = "0123456789abcdef0123456789abcdef"
PACKED = bytes.fromhex("010000000000") + bytes.fromhex("ffffffff0200")


class Time:
    """A clock that only sleeping advances, with a record of the sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps: list[float] = []

    def clock(self):
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


class Half(random.Random):
    """A generator that always returns one half."""

    def random(self):
        return 0.5


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def submit(collector: Collector, time: Time):
    """Submit PACKED under KEY to the collector's r1."""

    def call(round_="r1", packed: bytes = PACKED, key: str = KEY, **options):
        options = {"rng": Half(), "clock": time.clock, "sleep": time.sleep, **options}
        with collector.client(**options) as server:
            return server.submit(round_, packed, key)

    return call


def test_submission_has_packed_bytes_and_key(collector: Collector, submit):
    collector.add()
    assert submit() == Accepted(round="r1", accepted=2, duplicate=False)
    (post,) = collector.posts
    assert (post.method, post.url.path, post.content) == ("POST", "/rounds/r1/reports", PACKED)
    assert post.headers["Content-Type"] == MEDIA_TYPE
    assert post.headers["Idempotency-Key"] == KEY
    assert collector.stored == {KEY: PACKED}


@pytest.mark.parametrize("status", [429, 507])
def test_transient_status_is_retried(collector: Collector, submit, status: int):
    collector.add()
    collector.faults.extend(
        [collector.busy(status), collector.instead(status, text="no problem document")]
    )
    assert submit().accepted == 2
    assert collector.sent == [(KEY, PACKED)] * 3


def test_missing_plugin_is_not_retried(collector: Collector, submit, time: Time):
    collector.add()
    collector.faults.append(lambda request: collector.problem(503, "plugin-not-loaded"))
    with pytest.raises(UnansweredError, match=r"answered 503 to .*, once") as caught:
        submit()
    assert caught.value.status == 503
    assert time.sleeps == []


def test_waits_for_retry_after(collector: Collector, submit, time: Time):
    collector.add()
    collector.faults.append(collector.busy(503, **{"Retry-After": "7"}))
    date = {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT", "Date": "Fri, 31 Dec 1999 23:59:50 GMT"}
    collector.faults.append(collector.busy(429, **date))
    submit()
    assert time.sleeps == [7.25, 9.5]


def test_error_names_last_status(collector: Collector, submit):
    collector.add()
    collector.faults.extend(
        [lambda send: collector.problem(507, "of-a-later-version", "its reason")] * 50
    )
    words = r"507 to POST /rounds/r1/reports, 2 times \(of a later version: its reason\)"
    with pytest.raises(UnansweredError, match=words) as caught:
        submit(retries=Retries(attempts=2))
    assert caught.value.status == 507


@pytest.mark.parametrize(
    ("faults", "in_doubt"),
    [
        (["request_lost", "request_lost"], False),
        (["request_lost", "answer_lost"], True),
        ([429, 408], False),
        ([429, 503], True),
    ],
)
def test_unanswered_error_has_in_doubt(collector: Collector, submit, faults, in_doubt: bool):
    collector.add()
    collector.faults.extend(
        getattr(collector, f) if isinstance(f, str) else collector.busy(f) for f in faults
    )
    with pytest.raises(UnansweredError) as caught:
        submit(retries=Retries(attempts=2))
    assert caught.value.in_doubt is in_doubt


@pytest.mark.parametrize("status", [400, 422, 501])
def test_refusal_is_raised_without_retry(collector: Collector, submit, status: int):
    collector.add()
    refusal = collector.problem(status, "some-kind", "a reason")
    collector.faults.append(lambda send: refusal)
    with pytest.raises(RefusedError, match="some kind: a reason") as caught:
        submit()
    assert (caught.value.status, caught.value.slug, caught.value.detail) == (
        status,
        "some-kind",
        "a reason",
    )
    assert len(collector.posts) == 1


@pytest.mark.parametrize("status", [200, 204, 404])
def test_rejects_response_of_foreign_server(collector: Collector, submit, status: int):
    """A login page of a network answers 200 to everything."""
    collector.add()
    collector.faults.append(collector.instead(status, html="<h1>Welcome to the hotel</h1>"))
    with pytest.raises(
        InvalidAnswerError, match=f"POST /rounds/r1/reports: status {status} without a problem"
    ):
        submit()


@pytest.mark.parametrize("status", [302, 308])
def test_redirect_is_not_followed(collector: Collector, submit, status: int):
    collector.add()
    collector.faults.append(
        collector.instead(status, headers={"Location": "http://elsewhere.test/"})
    )
    with pytest.raises(InvalidAnswerError, match="redirects"):
        submit()
    assert {request.url.host for request in collector.requests} == {"collector.test"}


def test_rejects_endless_response(collector: Collector, submit, monkeypatch):
    """The generator of the response shows how far it was read."""
    collector.add()
    monkeypatch.setattr(client_http, "MAX_ANSWER_BYTES", 100_000)
    given_out = 0

    class Endless(httpx.SyncByteStream):
        def __iter__(self):
            nonlocal given_out
            while True:
                given_out += 1000
                yield b"x" * 1000

    collector.faults.append(collector.instead(202, stream=Endless()))
    with pytest.raises(InvalidAnswerError, match="larger than 100000 bytes"):
        submit()
    assert given_out == 101_000


def test_rejects_compressed_response(collector: Collector, submit):
    collector.add()
    bomb = gzip.compress(bytes(1 << 20))
    collector.faults.append(
        lambda send: httpx.Response(
            202, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(bomb)
        )
    )
    with pytest.raises(InvalidAnswerError, match="compressed"):
        submit()
    assert collector.posts[0].headers["Accept-Encoding"] == "identity"


def test_sends_no_cookie(collector: Collector, submit):
    """A cookie would link the requests of one user."""
    collector.add()
    collector.faults.append(
        lambda send: httpx.Response(
            503, headers={"Set-Cookie": "who=alice; Domain=collector.test; Path=/"}
        )
    )
    submit()
    assert len(collector.requests) == 2
    assert not any("Cookie" in request.headers for request in collector.requests)


@pytest.mark.parametrize("key", ["", "x" * 65, "with space"])
def test_rejects_invalid_idempotency_key(collector: Collector, submit, key: str):
    with pytest.raises(ArgumentError, match="idempotency key"):
        submit(key=key)
    assert not collector.requests


@pytest.mark.parametrize("key", ["", " spaced", "ümlaut", "line\nbreak"])
def test_rejects_invalid_access_key(key: str):
    with pytest.raises(ArgumentError, match="key"):
        Client("http://a.test", key=key)


@pytest.mark.parametrize("reference", ["..", "a/b", "a?b", None])
def test_rejects_reference_that_changes_path(collector: Collector, submit, reference):
    with pytest.raises(ArgumentError, match="a round must be named by"):
        submit(reference)
    assert not collector.requests


@pytest.mark.parametrize(
    "url",
    [
        "collector.test",
        "ftp://a.test",
        "http://u:p@a.test",
        "http://a.test/?q=1",
        "http://a.test:99999",
    ],
)
def test_rejects_invalid_url(url: str):
    with pytest.raises(ArgumentError, match="URL"):
        Client(url)


@pytest.mark.parametrize(
    "url",
    [
        "{0}",
        "http://user:{0}@a.test",
        "http://user:p@{0}@a.test",
        "http://user:12/{0}@a.test",
        "http://user:{0}",
        "//user:{0}@a.test",
        "user:{0}@a.test",
        "htp://a.test?key={0}",
        "http://a.test/?key={0}#{0}",
        "http:\\\\user:{0}@a.test",
        "http://user%3A{0}%40a.test:0",
        "socket://user:{0}@proxy",
        "http://user:{0}@proxy:port",
        "http://user:1/{0}@proxy:port",
        "http://[user:{0}@proxy]",
    ],
)
@pytest.mark.parametrize("variable", [None, "http_proxy", "ALL_PROXY"])
def test_errors_of_a_url_or_proxy_show_no_secret(monkeypatch, url: str, variable):
    url = url.format("Mark" * 4)
    if variable is not None:
        monkeypatch.setenv(variable, url)
    text = ""
    try:
        Client("http://a.test" if variable else url)
    except ArgumentError as error:
        text = "".join(traceback.format_exception(error))
    assert text or variable is not None  # some are valid as a proxy
    assert "Mark" not in text


def test_names_the_variables_of_an_invalid_proxy(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://user:secret")
    with pytest.raises(ArgumentError, match="HTTP_PROXY"):
        Client("http://a.test")


def test_names_the_package_of_a_socks_proxy(monkeypatch):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:1")
    with pytest.raises(ArgumentError, match="pip install socksio"):
        Client("http://a.test")


def test_url_may_have_path():
    log = []

    def answer(request: httpx.Request):
        log.append(str(request.url))
        return httpx.Response(200, json=VERSION)

    with Client("https://a.test/ldp/", transport=httpx.MockTransport(answer)) as server:
        assert server.version() == Version.model_validate(VERSION)
    assert log == ["https://a.test/ldp/version"]


def test_rounds_come_in_pages():
    stub = Stub(*[httpx.Response(200, json={"rounds": []})] * 2)
    with stub.client() as server:
        assert server.rounds() == server.rounds(before="r1") == ()
        with pytest.raises(ArgumentError):
            server.rounds(before="r1&limit=9")
    assert [request.url.raw_path for request in stub.requests] == [b"/rounds", b"/rounds?before=r1"]


@pytest.mark.parametrize(
    ("outcomes", "error", "requests"),
    [
        ([httpx.ReadTimeout("slow")], UnansweredError, 1),
        ([httpx.RemoteProtocolError("gone")], UnansweredError, 1),
        ([httpx.Response(503)], InvalidAnswerError, 1),
        (
            [httpx.ConnectError("refused"), httpx.ConnectTimeout("slow"), httpx.Response(429)],
            InvalidAnswerError,
            4,
        ),
    ],
)
def test_open_round_is_retried_only_if_unsent(outcomes, error: type[Exception], requests: int):
    stub = Stub(*outcomes, httpx.Response(418))
    with stub.client() as server, pytest.raises(error):
        server.open_round(protocol="grr", epsilon=1, domain_size=3)
    assert len(stub.requests) == requests


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch):
    """The TLS context of each HTTP client that is created."""
    contexts: list[ssl.SSLContext] = []
    init = httpx.Client.__init__

    def recorded(self, *args, **options) -> None:
        contexts.append(options["verify"])
        init(self, *args, **options)

    monkeypatch.setattr(httpx.Client, "__init__", recorded)
    return contexts


def test_certificates_are_read_once(contexts, monkeypatch, tmp_path: Path):
    Client("https://a.test")
    Client("https://b.test")
    assert len(set(contexts)) == 1
    assert contexts[0].verify_mode is ssl.CERT_REQUIRED
    assert contexts[0].check_hostname
    # Other certificates in the environment are other certificates to trust.
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    Client("https://a.test")
    assert len(set(contexts)) == 2


def test_plain_http_trusts_no_certificate(contexts):
    Client("http://a.test")
    assert contexts[0].verify_mode is ssl.CERT_REQUIRED
    assert not contexts[0].get_ca_certs()
