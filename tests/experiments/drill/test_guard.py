"""Who is let in to a drill: its own page under a name of this machine, with the token."""

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
PASSED = [("GET", "/rounds"), ("POST", "/rounds"), ("GET", "/"), ("GET", "/page/app.css")]


def ask(drill: RunningDrill, method: str, path: str, **headers: Any) -> httpx.Response:
    """Call as someone who sends these headers alone."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    with httpx.Client(base_url=drill.url, trust_env=False, timeout=60) as caller:
        return caller.request(method, path, headers=given)


def assert_is_refused(answer: httpx.Response, word: str) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")
    assert word in answer.json()["detail"]
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")


@pytest.mark.parametrize(("method", "path"), CALLS)
@pytest.mark.parametrize(
    "token", [None, "", "a-token", DRILL_TOKEN[:-1], f"{DRILL_TOKEN}, {DRILL_TOKEN}", "é"]
)
def test_drill_calls_need_the_token(
    drill: RunningDrill, method: str, path: str, token: str | None
) -> None:
    given = {} if token is None else {HEADER.encode(): token.encode("latin-1")}
    with httpx.Client(base_url=drill.url, trust_env=False, timeout=60) as caller:
        assert_is_refused(caller.request(method, path, headers=given), "token")
        assert_is_refused(caller.request(method, f"{path}?token={DRILL_TOKEN}"), "token")
        assert_is_refused(
            caller.request(method, path, headers={"Cookie": f"token={DRILL_TOKEN}"}), "token"
        )
        assert_is_refused(
            caller.request(method, path, headers={"Authorization": f"Bearer {DRILL_TOKEN}"}),
            "token",
        )


def test_token_is_needed_for_every_spelling_of_the_path(drill: RunningDrill) -> None:
    for path in ("/%64rill/run", "/drill%2Frun", "/drill//run", "/drill/nothing", "/drill/"):
        assert_is_refused(ask(drill, "GET", path), "token")


@pytest.mark.parametrize(("method", "path"), [*CALLS, *PASSED])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "a@[::1]",
    ],
)
def test_rejects_rebound_host_names(drill: RunningDrill, method: str, path: str, host: str) -> None:
    """DNS rebinding: the browser believes that it speaks to the other site, whose name it sends."""
    assert_is_refused(ask(drill, method, path, Host=host, X_Drill_Token=DRILL_TOKEN), "Host")


@pytest.mark.parametrize(("method", "path"), [*CALLS, *PASSED])
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://{host}", ""]
)
def test_a_page_of_another_site_is_refused(
    drill: RunningDrill, method: str, path: str, origin: str
) -> None:
    """Cross-site request forgery: a browser sends Origin with whatever a page makes it send but for
    plain reading.
    """
    other = origin.replace("{host}", drill.url.removeprefix("http://"))
    assert_is_refused(ask(drill, method, path, Origin=other, X_Drill_Token=DRILL_TOKEN), "Origin")


def test_a_request_of_two_hosts_is_refused(drill: RunningDrill) -> None:
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
    for headers in (
        {"Host": host},
        {"Host": host, "Origin": f"http://{host}"},
        {"Host": "localhost"},
    ):
        assert (
            ask(drill, "GET", "/drill/run", X_Drill_Token=DRILL_TOKEN, **headers).status_code == 200
        )
        assert ask(drill, "GET", "/rounds", **headers).status_code == 200
