"""A class: what its server answers on this machine and on the network."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.practice.conftest import NETWORK, ROUND, token_of

from ldprecover_cli.practice import lesson
from ldprecover_cli.practice.server import PracticeServer, practice_server
from ldprecover_client._httpx import httpx
from ldprecover_server.errors import StorageFullError
from ldprecover_server.submissions import Submissions

ALLOWED = {
    ("GET", "/"): 307,
    ("POST", "/fake"): 422,
    ("GET", "/page/fake.html"): 200,
    ("GET", "/page/survey.html"): 200,
    ("GET", "/page/client/example/survey.js"): 200,
    ("GET", "/rounds/class"): 200,
    ("GET", "/rounds/class/parameters"): 200,
    ("POST", "/rounds/class/reports"): 422,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PracticeServer]:
    monkeypatch.setattr(lesson, "ADDRESS_RATE", 0.001)
    with practice_server("class", practice=True, address=NETWORK) as server:
        lesson.Lesson(server, ROUND)
        yield server


def call(url: str, method: str, path: str, body: object = None, **headers: str) -> httpx.Response:
    return httpx.request(
        method, url + path, json=body, headers=headers, trust_env=False, verify=False
    )


def press(server: PracticeServer, item: int = 0, **headers: str) -> httpx.Response:
    return call(server.public, "POST", f"/fake?item={item}", **headers)


def attack(server: PracticeServer, share: float, target: int = 0) -> httpx.Response:
    path = f"/class/attack?share={share}&target={target}"
    return call(server.url, "POST", path, **{"X-Page-Token": token_of(server)})


def test_network_has_the_survey_alone(server: PracticeServer) -> None:
    of_server = server.app.openapi()["paths"]
    assert len(of_server) > 20
    of_class = {path for _, path in ALLOWED} | {"/class", "/class/attack"}
    names = dict.fromkeys(("round", "form", "series"), "class")
    for path in {path.format(**names) for path in of_server} | of_class:
        for method in ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"):
            status = call(server.public, method, path).status_code
            assert status == ALLOWED.get((method, path), 403), (method, path)


def test_network_takes_no_key_and_no_name(server: PracticeServer) -> None:
    for url, status in ((server.public, 403), (server.url, 200)):
        key = f"Bearer {server.key}"
        assert call(url, "GET", "/rounds/class", Authorization=key).status_code == status
        assert call(url, "GET", "/rounds/class", Host="evil.example").status_code == 400


def test_other_sites_send_nothing(server: PracticeServer) -> None:
    for origin, status in (("http://evil.example", 403), ("null", 403), (server.public, 200)):
        assert press(server, Origin=origin).status_code == status


def test_teacher_attacks_beside_students(server: PracticeServer) -> None:
    """The share counts what students have sent."""
    for _ in range(6):
        call(server.public, "POST", "/rounds/class/reports", {"reports": [0]})
    assert press(server, 1).status_code == 200
    again = press(server, 1)
    assert (again.status_code, again.headers["retry-after"]) == (429, "1000")
    state = attack(server, 0.5).json()
    assert (state["fakes"], state["sent"], state["targets"]) == (6, 5, [0, 1])
    assert attack(server, 0.5).json()["sent"] == 0
    assert attack(server, 0.6, target=2).status_code == 422
    round = call(server.public, "GET", "/rounds/class").json()
    assert (round["n"], round["practice"]) == (12, True)


def test_refused_fake_reports_are_not_counted(
    server: PracticeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: Any) -> None:
        raise StorageFullError

    call(server.public, "POST", "/rounds/class/reports", {"reports": [0]})
    with monkeypatch.context() as patch:
        patch.setattr(Submissions, "submit", fail)
        assert attack(server, 0.9).status_code == 507
    call(server.url, "POST", "/rounds/class/close", Authorization=f"Bearer {server.key}")
    assert press(server).status_code == 409
    assert attack(server, 0).json()["fakes"] == 0
