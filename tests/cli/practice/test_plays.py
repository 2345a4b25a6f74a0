"""The calls of the plays of `demo --page`."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.practice.conftest import token_of

from ldprecover_cli.practice.plays import Plays
from ldprecover_cli.practice.server import PracticeServer, practice_server
from ldprecover_client._httpx import httpx
from ldprecover_experiments import Demo, DemoSettings

SETTINGS = DemoSettings(users=2000, protocol="grr", targets=3)
PLAY: dict[str, Any] = {"attack": "mga", "beta": 0.3, "targets": 2}


@pytest.fixture(scope="module")
def server() -> Iterator[PracticeServer]:
    with practice_server("demo") as server, contextlib.closing(Plays(server, SETTINGS)):
        yield server


@pytest.fixture
def http(server: PracticeServer) -> Iterator[httpx.Client]:
    headers = {"X-Page-Token": token_of(server), "Authorization": f"Bearer {server.key}"}
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=60) as client:
        yield client


def finished(http: httpx.Client, round: str) -> dict[str, Any]:
    """Return the state of a play that has ended."""
    while True:
        state = http.get("/truth", params={"round": round}).json()
        if state["state"] != "running":
            return state


def test_play_attacks_a_new_round_and_scores_it(server: PracticeServer, http: httpx.Client) -> None:
    assert finished(http, "another")["state"] == "none"
    name = http.post("/attack", params=PLAY).json()["round"]
    state = finished(http, name)
    assert state["state"] == "done"
    settings = DemoSettings(users=2000, protocol="grr", targets=2, beta=0.3)
    assert state["settings"] == settings.as_json()
    round = http.get(f"/rounds/{name}").json()
    assert (round["n"], round["state"]) == (2000 + 857, "closed")
    expected = Demo(settings).on(server.url, server.key, name="expected").score
    assert state["score"] == expected.as_json()


@pytest.mark.parametrize("token", ["", "wrong", "wr\xf6ng"])
def test_wrong_token_is_forbidden(http: httpx.Client, token: str) -> None:
    headers = [(b"X-Page-Token", token.encode("latin-1"))]
    for method, path in (("GET", "/truth?round=demo"), ("POST", "/attack")):
        response = http.request(method, path, headers=headers)
        assert response.status_code == 403
        assert "token" in response.json()["detail"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"attack": "bribe"}, "attack must be one of"),
        ({"targets": 102}, "from 1 to 101"),
        ({"targets": "many"}, "targets must be an integer"),
    ],
)
def test_invalid_play_opens_no_round(http: httpx.Client, change: dict[str, Any], word: str) -> None:
    def ids() -> list[str]:
        return [round["id"] for round in http.get("/rounds").json()["rounds"]]

    before = ids()
    response = http.post("/attack", params=PLAY | change)
    assert response.status_code == 422
    assert word in response.json()["detail"]
    assert ids() == before


def test_failed_play_says_why(http: httpx.Client) -> None:
    name = http.post("/attack", params={**PLAY, "beta": 0.9}).json()["round"]
    assert http.delete(f"/rounds/{name}").status_code == 204
    state = finished(http, name)
    assert state["state"] == "failed"
    assert "round" in state["error"]
