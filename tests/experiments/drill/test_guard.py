"""Access to a drill: its own page under a name of this machine, with the token."""

import contextlib
import http.client
from typing import Any

import httpx
import pytest
from tests.experiments.drill.conftest import DRILL_TOKEN, RunningDrill

from ldprecover_experiments.drill.guard import HEADER

CALLS = [
    ("GET", "/drill/options"),
    ("GET", "/drill/run"),
    ("POST", "/drill/run"),
    ("DELETE", "/drill/run"),
]
PATHS = [*CALLS, ("GET", "/rounds"), ("POST", "/rounds"), ("GET", "/"), ("GET", "/page/app.css")]


def ask(drill: RunningDrill, method: str, path: str, headers: dict[Any, Any]) -> httpx.Response:
    """Send a request with these headers alone."""
    return httpx.request(method, f"{drill.url}{path}", headers=headers, trust_env=False, timeout=60)


def assert_forbidden(response: httpx.Response, word: str) -> None:
    assert (response.status_code, response.headers["content-type"]) == (
        403,
        "application/problem+json",
    )
    assert word in response.json()["detail"]
    assert response.headers["content-security-policy"].startswith("default-src 'self';")


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_drill_calls_need_the_token_in_its_header(
    drill: RunningDrill, method: str, path: str
) -> None:
    for token in ("", DRILL_TOKEN[:-1], f"{DRILL_TOKEN}, {DRILL_TOKEN}", "é"):
        headers = {HEADER.encode(): token.encode("latin-1")}
        assert_forbidden(ask(drill, method, path, headers), "token")
    for name, value in (("Cookie", f"token={DRILL_TOKEN}"), ("Authorization", DRILL_TOKEN)):
        assert_forbidden(ask(drill, method, path, {name: value}), "token")
    assert_forbidden(ask(drill, method, f"{path}?token={DRILL_TOKEN}", {}), "token")


@pytest.mark.parametrize(
    "path", ["/%64rill/run", "/drill%2Frun", "/drill//run", "/drill/nothing", "/drill/"]
)
def test_every_spelling_of_the_path_needs_the_token(drill: RunningDrill, path: str) -> None:
    assert_forbidden(ask(drill, "GET", path, {}), "token")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "10.0.0.1",
        "a@[::1]",
    ],
)
def test_rejects_rebound_host_names(drill: RunningDrill, host: str) -> None:
    """DNS rebinding: the browser believes that it speaks to the other site, whose name it sends."""
    for method, path in PATHS:
        assert_forbidden(ask(drill, method, path, {"Host": host, HEADER: DRILL_TOKEN}), "Host")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://{host}", ""]
)
def test_rejects_pages_of_other_sites(drill: RunningDrill, origin: str) -> None:
    """Cross-site request forgery: browsers send Origin with all but plain reads."""
    other = origin.replace("{host}", drill.url.removeprefix("http://"))
    for method, path in PATHS:
        headers = {"Origin": other, HEADER: DRILL_TOKEN}
        assert_forbidden(ask(drill, method, path, headers), "Origin")


def test_rejects_two_hosts(drill: RunningDrill) -> None:
    host = drill.url.removeprefix("http://")
    with contextlib.closing(http.client.HTTPConnection(host)) as connection:
        connection.putrequest("GET", "/rounds", skip_host=True)
        for name in (host, "evil.example"):
            connection.putheader("Host", name)
        connection.endheaders()
        assert connection.getresponse().status == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "127.9.9.9"])
def test_accepts_every_name_of_this_machine(drill: RunningDrill, name: str) -> None:
    host = f"{name}:{drill.url.rpartition(':')[2]}"
    for headers in ({"Host": name}, {"Host": host, "Origin": f"http://{host}"}):
        for path in ("/drill/run", "/rounds"):
            assert ask(drill, "GET", path, {HEADER: DRILL_TOKEN, **headers}).status_code == 200
