"""`demo --page`: its server, the calls of its plays, and that nothing of it remains."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.demo.conftest import StartDemo, assert_nothing_remains, token_of, wait_for_line
from tests.forked import Process

from ldprecover_attacker import ATTACKS
from ldprecover_cli.demo.server import DemoServer, demo_server
from ldprecover_client._httpx import httpx
from ldprecover_experiments import Demo, DemoSettings

SETTINGS = DemoSettings(users=2000, protocol="grr", targets=3)
PAGE = ("demo", "--users", "1000", "--protocol", "grr", "--targets", "3", "--json", "--page")
PLAY: dict[str, Any] = {"attack": "mga", "beta": 0.3, "targets": 2}


def caller(url: str, link: str) -> httpx.Client:
    headers = {"X-Page-Token": token_of(link)}
    return httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60)


@pytest.fixture(scope="module")
def page() -> Iterator[DemoServer]:
    with demo_server(SETTINGS) as server:
        yield server


@pytest.fixture
def http(page: DemoServer) -> Iterator[httpx.Client]:
    with caller(page.url, page.link) as client:
        yield client


def finished(http: httpx.Client, round: str) -> dict[str, Any]:
    """Return the state of a play that has ended."""
    while True:
        state = http.get("/truth", params={"round": round}).json()
        if state["state"] != "running":
            return state


def test_play_attacks_a_new_round_and_scores_it(page: DemoServer, http: httpx.Client) -> None:
    response = http.post("/attack", params=PLAY)
    assert response.status_code == 202
    name = response.json()["round"]
    state = finished(http, name)
    assert state["state"] == "done"
    settings = DemoSettings(users=2000, protocol="grr", targets=2, beta=0.3)
    assert state["settings"] == settings.as_json()
    round = http.get(f"/rounds/{name}").json()
    assert (round["n"], round["state"]) == (2000 + 857, "closed")
    expected = Demo(settings).on(page.url, page.key, name="expected").score
    assert state["score"] == {
        "headline": expected.headline,
        "details": expected.details,
        "targets": list(expected.targets or ()),
        "truth": expected.true.tolist(),
    }


def test_round_without_play_has_the_choices_alone(http: httpx.Client) -> None:
    state = http.get("/truth", params={"round": "another"}).json()
    assert (state["state"], state.get("score")) == ("none", None)
    assert state["settings"] == SETTINGS.as_json()
    assert list(state["attacks"]) == sorted(ATTACKS)
    assert state["attacks"]["mla"]["targeted"] is False
    assert state["attacks"]["mga"]["targeted"] is True


@pytest.mark.parametrize("token", [None, "", "wrong", "wr\xf6ng"])
def test_wrong_or_missing_token_is_forbidden(page: DemoServer, token: str | None) -> None:
    headers = [] if token is None else [(b"X-Page-Token", token.encode("latin-1"))]
    for method, path in (("GET", "/truth?round=demo"), ("POST", "/attack")):
        response = httpx.request(method, page.url + path, headers=headers, trust_env=False)
        assert response.status_code == 403
        assert response.headers["content-type"] == "application/problem+json"
        assert "token" in response.json()["detail"]


def test_foreign_host_is_rejected(http: httpx.Client) -> None:
    response = http.post("/attack", params=PLAY, headers={"Host": "evil.example"})
    assert response.status_code == 400
    assert response.json()["title"] == "Host or origin not allowed"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"attack": "bribe"}, "attack must be one of"),
        ({"targets": 102}, "from 1 to 101"),
        ({"targets": "many"}, "targets must be an integer"),
    ],
)
def test_invalid_play_is_a_problem(http: httpx.Client, change: dict[str, Any], word: str) -> None:
    before = http.get("/rounds").json()
    response = http.post("/attack", params=PLAY | change)
    assert response.status_code == 422
    assert word in response.json()["detail"]
    assert http.get("/rounds").json() == before


def test_failed_play_says_why(page: DemoServer, http: httpx.Client) -> None:
    name = http.post("/attack", params={**PLAY, "beta": 0.9}).json()["round"]
    deleted = http.delete(f"/rounds/{name}", headers={"Authorization": f"Bearer {page.key}"})
    assert deleted.status_code == 204
    state = finished(http, name)
    assert state["state"] == "failed"
    assert "round" in state["error"]


def link_of(process: Process) -> tuple[str, str, str]:
    """Wait for the line with the link; return the URL, the link and the admin key."""
    line = wait_for_line(process, "The page: ")
    match = re.search(r"((http://127\.0\.0\.1:\d+)/\S+) until Ctrl-C; .* key is (\S+)", line)
    assert match is not None, line
    return match[2], match[1], match[3]


def test_page_is_served_until_ctrl_c_in_the_middle_of_a_play(
    start_demo: StartDemo, temporary: Path
) -> None:
    """Whatever the environment says of other servers."""
    process = start_demo(*PAGE, LDPRECOVER_DATABASE_URL="sqlite:////nowhere/at.all")
    url, link, key = link_of(process)
    with caller(url, link) as http:
        assert finished(http, "demo")["score"]["headline"]
        headers = {"Authorization": f"Bearer {key}"}
        assert http.get("/rounds/demo", headers=headers).json()["state"] == "closed"
        assert http.post("/attack", params={**PLAY, "beta": 0.9}).status_code == 202
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "Stopped.\n")
    assert json.loads(out)["settings"]["users"] == 1000
    assert_nothing_remains(temporary)
