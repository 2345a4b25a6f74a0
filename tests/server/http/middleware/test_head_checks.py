"""Requests under host names that are not the server's, as DNS rebinding sends them."""

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
        ({"host": "::1"}, ()),
        ({"host": "localhost"}, ()),
        ({"host": "0.0.0.0"}, None),
        ({"host": "ldp.example.org"}, None),
        ({"allowed_hosts": ("*",)}, None),
        ({"host": "0.0.0.0", "allowed_hosts": ("a.example",)}, ("a.example",)),
    ],
)
def test_names_are_checked_on_loopback_or_if_set(
    settings: dict[str, object], names: tuple[str, ...] | None
) -> None:
    assert Settings(**settings).host_names == names  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["example.org:8000", "https://example.org", "a b", ""])
def test_a_setting_that_is_no_name_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        Settings(allowed_hosts=(name,))


def test_each_host_of_a_request_must_be_allowed(server: ServerProcess) -> None:
    head = b"GET /healthz HTTP/1.%d\r\n%sConnection: close\r\n\r\n"
    own, foreign = b"Host: localhost\r\n", b"Host: evil.example\r\n"
    statuses = [
        server.talk(head % (minor, hosts)).split()[1]
        for minor, hosts in ((1, own), (1, own + foreign), (1, foreign + own), (0, b""))
    ]
    assert statuses == [b"200", b"400", b"400", b"200"]
