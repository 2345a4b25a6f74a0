"""A class: what its server answers on this machine and on the network."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.practice.conftest import NETWORK, ROUND, token_of

from ldprecover_cli.practice import lesson
from ldprecover_cli.practice.lesson import Lesson
from ldprecover_cli.practice.server import PracticeServer, practice_server
from ldprecover_client._httpx import httpx
from ldprecover_interface import paths
from ldprecover_server.errors import StorageFullError
from ldprecover_server.submissions import Submissions

ALLOWED = {
    ("GET", "/"): 307,
    ("GET", "/fake"): 200,
    ("POST", "/fake"): 422,
    ("GET", "/page/survey.html"): 200,
    ("GET", "/page/client/example/survey.js"): 200,
    ("GET", "/rounds/class"): 200,
    ("GET", "/rounds/class/parameters"): 200,
    ("POST", "/rounds/class/reports"): 422,
}


@pytest.fixture
def server() -> Iterator[PracticeServer]:
    with practice_server("class", practice=True, address=NETWORK) as server:
        yield server


@pytest.fixture
def class_(server: PracticeServer, monkeypatch: pytest.MonkeyPatch) -> Lesson:
    monkeypatch.setattr(lesson, "ADDRESS_RATE", 0.001)
    return Lesson(server, ROUND)


def call(url: str, method: str, path: str, **headers: str) -> httpx.Response:
    return httpx.request(method, url + path, headers=headers, trust_env=False, verify=False)


def report(server: PracticeServer) -> None:
    url = f"{server.public}/rounds/class/reports"
    assert httpx.post(url, json={"reports": [0]}, trust_env=False).status_code == 202


def attack(server: PracticeServer, share: float, target: int = 0) -> httpx.Response:
    path = f"/class/attack?share={share}&target={target}"
    return call(server.url, "POST", path, **{"X-Page-Token": token_of(server)})


def test_network_has_the_survey_alone(server: PracticeServer, class_: Lesson) -> None:
    constants = {path for path in vars(paths).values() if str(path).startswith("/")}
    calls = {path.format(round="class", form="class") for path in constants}
    calls |= {"/class", "/class/attack", "/page/index.html", "/rounds/current", "/rounds/class/x"}
    assert len(calls) > 20
    for path in calls | {path for _, path in ALLOWED}:
        for method in ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"):
            status = call(server.public, method, path).status_code
            assert status == ALLOWED.get((method, path), 403), (method, path)


def test_network_takes_no_key_and_no_name(server: PracticeServer, class_: Lesson) -> None:
    for url, status in ((server.public, 403), (server.url, 200)):
        key = f"Bearer {server.key}"
        assert call(url, "GET", "/rounds/class", Authorization=key).status_code == status
        assert call(url, "GET", "/rounds/class", Host="evil.example").status_code == 400


def test_other_sites_send_nothing(server: PracticeServer, class_: Lesson) -> None:
    for origin, status in (("http://evil.example", 403), ("null", 403), (server.public, 200)):
        assert call(server.public, "POST", "/fake?item=0", Origin=origin).status_code == status


def test_teacher_attacks_beside_students(server: PracticeServer, class_: Lesson) -> None:
    """The share counts what a student has sent."""
    for _ in range(6):
        report(server)
    page = call(server.public, "GET", "/fake").text
    assert "Which &lt;b&gt;?" in page
    assert '<button formaction="fake?item=1"><bdi>&lt;b&gt;</bdi></button>' in page
    pressed = call(server.public, "POST", "/fake?item=1")
    assert "raises “&lt;b&gt;”." in pressed.text
    again = call(server.public, "POST", "/fake?item=1")
    assert (again.status_code, again.headers["retry-after"]) == (429, "1000")
    state = attack(server, 0.5).json()
    assert (state["fakes"], state["sent"], state["targets"]) == (6, 5, [0, 1])
    assert attack(server, 0.5).json()["sent"] == 0
    assert attack(server, 0.6, target=2).status_code == 422
    round = call(server.public, "GET", "/rounds/class").json()
    assert (round["n"], round["practice"]) == (12, True)
    assert call(server.url, "POST", "/class/attack?share=0.6&target=0").status_code == 403


def test_fake_page_says_that_the_round_is_closed(server: PracticeServer, class_: Lesson) -> None:
    class_.close()
    response = call(server.public, "POST", "/fake?item=0")
    assert response.status_code == 409
    assert "The round is closed: it takes no more reports." in response.text


def test_full_disk_counts_no_fake_report(
    server: PracticeServer, class_: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: Any) -> None:
        raise StorageFullError("the disk is full")

    report(server)
    monkeypatch.setattr(Submissions, "submit", fail)
    pressed = call(server.public, "POST", "/fake?item=0")
    assert (attack(server, 0.9).status_code, pressed.status_code) == (507, 507)
    assert "Not sent: the server cannot store it." in pressed.text
    assert class_.state()["fakes"] == 0
