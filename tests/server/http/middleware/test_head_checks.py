"""Heads that are ambiguous, or under host names of others, as DNS rebinding sends them."""

from urllib.parse import quote

import pytest
from tests.conftest import ServerProcess
from tests.server.conftest import InProcess, StartInProcess, problem_of

from ldprecover_server import Settings

pytestmark = pytest.mark.sqlite

OWN = ["localhost", "LocalHost:8000", "127.0.0.1:8000", "127.0.0.2", "[::1]", "[::1]:8000"]
FOREIGN = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "[::1].evil.example",
    "localhost:80@evil.example",
    "localhost, evil.example",
    "[evil.example]",
    "",
]


@pytest.mark.parametrize("host", OWN)
def test_loopback_server_answers_under_its_own_names(in_process: InProcess, host: str) -> None:
    assert in_process.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/reports"])
@pytest.mark.parametrize("host", FOREIGN)
def test_loopback_server_rejects_foreign_names(in_process: InProcess, host: str, path: str) -> None:
    method = "POST" if path == "/reports" else "GET"
    answer = in_process.request(method, path, headers={"Host": host})
    assert problem_of(answer) == "host-not-allowed"
    assert "x-request-id" in answer.headers


def test_allowed_names_are_those_of_the_setting(start_in_process: StartInProcess) -> None:
    app = start_in_process(host="0.0.0.0", allowed_hosts="LDP.example.org, other.example.org")
    hosts = ["ldp.example.org", "Other.Example.org:443", "localhost", "192.0.2.1", "example.org"]
    statuses = [app.get("/healthz", headers={"Host": host}).status_code for host in hosts]
    assert statuses == [200, 200, 200, 200, 400]


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"host": "0.0.0.0"}, ()),
        ({"allowed_hosts": ("*",)}, None),
        ({"host": "0.0.0.0", "allowed_hosts": ("a.example",)}, ("a.example",)),
    ],
)
def test_names_are_checked_unless_all_are_allowed(
    settings: dict[str, object], names: tuple[str, ...] | None
) -> None:
    assert Settings(**settings).host_names == names  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["example.org:8000", "https://example.org", "a b", ""])
def test_a_setting_that_is_no_name_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="must be the name of a host"):
        Settings(allowed_hosts=(name,))


def test_any_name_is_not_no_name(start_in_process: StartInProcess) -> None:
    app = start_in_process(allowed_hosts="*")
    assert app.get("/healthz", headers={"Host": "any.example"}).status_code == 200
    assert problem_of(app.get("/healthz", headers={"Host": ""})) == "host-not-allowed"


@pytest.mark.parametrize(
    "path", ["/metrics", "/readyz", "/rounds", "/reports", "/rounds/x/reports"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "OPTIONS"])
def test_control_characters_in_a_path_are_not_found(
    in_process: InProcess, method: str, path: str
) -> None:
    for character in map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)):
        for spelling in (path + character, f"/{character}{path[1:]}", f"{path}/{character}"):
            answer = in_process.request(method, quote(spelling))
            assert problem_of(answer) == "not-found"


def test_host_and_authorization_are_given_once(server: ServerProcess) -> None:
    own, foreign = b"Host: localhost\r\n", b"Host: evil.example\r\n"
    key, basic = b"Authorization: Bearer x\r\n", b"authorization: Basic x\r\n"
    for request in (b"GET /healthz", b"GET /rounds", b"POST /reports", b"PUT /nothing"):
        head = request + b" HTTP/1.%d\r\n%sConnection: close\r\n\r\n"
        for fields in (b"", b"Host:\r\n", own + own, own + foreign, foreign + own):
            answer = server.talk(head % (1, fields))
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert b"#host-not-allowed" in answer
        gzip, identity = b"Content-Encoding: gzip\r\n", b"content-encoding: identity\r\n"
        twice = (key + key, key + basic, basic + key, b"Authorization:\r\n" + key)
        for fields in (*twice, gzip + identity, identity + gzip):
            answer = server.talk(head % (1, own + fields))
            assert answer.startswith(b"HTTP/1.1 422 ")
            assert b"#invalid-parameter" in answer
        assert b"#host-not-allowed" not in server.talk(head % (0, b""))


@pytest.mark.parametrize("length", ["Content-Length: 40", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize(
    "connection", ["Upgrade, HTTP2-Settings", "upgrade\r\nConnection: close", "x,\tUPGRADE"]
)
def test_rejects_a_body_behind_upgrade(server: ServerProcess, connection: str, length: str) -> None:
    """The parser would drop the body and take what comes later for the next request."""
    head = f"Host: localhost\r\nUpgrade: h2c\r\nConnection: {connection}\r\n{length}\r\n\r\n"
    for request in ("POST /recover", "GET /rounds", "POST /reports", "PUT /nothing"):
        answer = server.talk(f"{request} HTTP/1.1\r\n{head}".encode())
        assert answer.startswith(b"HTTP/1.1 422 ")
        assert b"without the header Upgrade" in answer
