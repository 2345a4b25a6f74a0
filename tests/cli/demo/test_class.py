"""`ldprecover class`: what its server answers on this machine and on the network."""

import contextlib
import re
import signal
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.demo.conftest import StartDemo, assert_nothing_remains, wait_for_line

from ldprecover.planning import accuracy
from ldprecover_attacker import Campaign
from ldprecover_cli.classroom import fakes
from ldprecover_cli.classroom.server import ClassServer, class_server
from ldprecover_cli.local_server import local_settings
from ldprecover_client import UnansweredError
from ldprecover_client._httpx import httpx
from ldprecover_interface import paths
from ldprecover_server import create_app

NETWORK = "127.0.0.2"  # not the address of the teacher's page, so the guard takes it for a network
ROUND: dict[str, Any] = {
    "question": "Which <b>?",
    "items": ["tea", "<b>"],
    "protocol": "grr",
    "epsilon": 4.0,
}
ALLOWED = {
    ("GET", "/"): 307,
    ("GET", "/rounds/class"): 200,
    ("GET", "/rounds/class/parameters"): 200,
    ("POST", "/rounds/class/reports"): 422,
}


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClassServer]:
    folder = tmp_path_factory.mktemp("class")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fakes, "ADDRESS_RATE", 0.001)
        with class_server(folder / "class.db", NETWORK, 0, ROUND) as server:
            yield server


def call(url: str, method: str, path: str, **headers: str) -> httpx.Response:
    return httpx.request(method, url + path, headers=headers, trust_env=False, verify=False)


def press(server: ClassServer, item: object = 1) -> httpx.Response:
    return httpx.post(f"{server.students}/fake", data={"item": item}, trust_env=False)


def token(server: ClassServer) -> dict[str, str]:
    return {"X-Page-Token": re.split("[=&]", server.link)[1]}


def test_network_has_the_survey_alone(lesson: ClassServer, tmp_path: Path) -> None:
    app = create_app(local_settings("key", tmp_path / "none.db"), practice=True)
    constants = {path for path in vars(paths).values() if str(path).startswith("/")}
    own = {"/class", "/class/attack", "/page/index.html", "/rounds/current", "/rounds/class/x"}
    calls = {
        path.format(round="class", form="class") for path in {*app.openapi()["paths"], *constants}
    }
    assert len(calls) > 20
    for path in calls | own:
        for method in ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"):
            response = call(lesson.students, method, path)
            assert response.status_code == ALLOWED.get((method, path), 404), (method, path)
    for path in ("/fake", "/page/survey.html", "/page/client/example/survey.js"):
        assert call(lesson.students, "GET", path).status_code == 200
    assert call(lesson.url, "GET", "/rounds/class/frequencies").status_code == 200


def test_network_needs_its_host_and_no_key(lesson: ClassServer) -> None:
    for host in ("evil.example", NETWORK, lesson.url.removeprefix("http://")):
        assert call(lesson.students, "GET", "/rounds/class", Host=host).status_code == 400
    assert call(lesson.url, "GET", "/rounds/class", Host="evil.example").status_code == 400
    bearer = f"Bearer {lesson.key}"
    answers = [
        call(url, "GET", "/rounds/class", Authorization=bearer).status_code
        for url in (lesson.students, lesson.url)
    ]
    assert answers == [403, 200]


def test_round_is_for_practice(lesson: ClassServer) -> None:
    parameters = call(lesson.students, "GET", "/rounds/class/parameters").json()
    assert (parameters["practice"], parameters["question"]) == (True, "Which <b>?")


def test_teacher_attacks_beside_students(lesson: ClassServer) -> None:
    """The share counts what a student has sent."""
    for _ in range(6):
        sent = httpx.post(
            f"{lesson.students}/rounds/class/reports", json={"reports": [0]}, trust_env=False
        )
        assert sent.status_code == 202
    page = call(lesson.students, "GET", "/fake").text
    assert "Which &lt;b&gt;?" in page
    assert '<button name="item" value="1"><bdi>&lt;b&gt;</bdi></button>' in page
    assert [press(lesson, item).status_code for item in ("", "x", 2, "1" * 999)] == 4 * [422]
    pressed = press(lesson)
    assert (pressed.status_code, pressed.headers["location"]) == (303, "fake?sent=1")
    assert "raises “&lt;b&gt;”." in call(lesson.students, "GET", "/fake?sent=1").text
    again = press(lesson)
    assert (again.status_code, again.headers["retry-after"]) == (429, "1000")
    attack = "/class/attack?share=0.5&target=0"
    assert call(lesson.url, "POST", attack).status_code == 403
    state = call(lesson.url, "POST", attack, **token(lesson)).json()
    assert (state["fakes"], state["sent"], state["targets"]) == (6, 5, [0, 1])
    assert call(lesson.url, "POST", attack, **token(lesson)).json()["sent"] == 0
    assert call(lesson.url, "GET", "/rounds/class").json()["n"] == 12
    assert (
        call(lesson.url, "POST", "/class/attack?share=0.6&target=2", **token(lesson)).status_code
        == 422
    )


def test_fake_page_says_that_the_round_is_closed(tmp_path: Path) -> None:
    with class_server(tmp_path / "class.db", NETWORK, 0, ROUND) as server:
        server.close_round()
        response = press(server)
    assert response.status_code == 409
    assert "The round is closed: it takes no more reports." in response.text


def test_other_sites_send_nothing(lesson: ClassServer) -> None:
    for url in (lesson.students, lesson.url):
        for origin in ("http://evil.example", "null", url + "0"):
            assert call(url, "POST", "/fake", Origin=origin).status_code == 403
        assert call(url, "POST", "/fake", Origin=url).status_code == 422


def test_long_head_is_an_error(lesson: ClassServer) -> None:
    address = lesson.students.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        with contextlib.suppress(ConnectionError):
            for _ in range(1024):
                connection.sendall(1024 * b"x")
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_full_disk_counts_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Campaign.run

    def run_or_fail(campaign: Campaign) -> object:
        if campaign.m == 1:
            raise UnansweredError("Disk full", 507)
        return run(campaign)

    monkeypatch.setattr(fakes, "_BATCH", 4)
    monkeypatch.setattr(Campaign, "run", run_or_fail)
    with class_server(tmp_path / "class.db", NETWORK, 0, ROUND) as server:
        httpx.post(f"{server.url}/rounds/class/reports", json={"reports": [0]}, trust_env=False)
        attack = "/class/attack?share=0.9&target=0"
        refused = call(server.url, "POST", attack, **token(server))
        pressed = press(server)
        state = call(server.url, "GET", "/class", **token(server)).json()
        n = call(server.url, "GET", "/rounds/class").json()["n"]
    assert (refused.status_code, pressed.status_code) == (507, 507)
    assert refused.json()["detail"] == "8 of 9 fake reports were sent: Disk full"
    assert "Not sent: the server cannot store it." in pressed.text
    assert (state["fakes"], n) == (8, 9)


def test_ctrl_c_leaves_only_the_named_file(
    start_demo: StartDemo, temporary: Path, tmp_path: Path
) -> None:
    database = tmp_path / "class.db"
    for options in ([], ["--keep", str(database)]):
        process = start_demo("class", "--port", "0", "--host", "127.0.0.1", *options)
        assert str(accuracy(5, 4.0, 30)) in wait_for_line(process, "With")
        link = re.search(r"http://127\.0\.0\.1:\d+/", wait_for_line(process, "Students: "))
        assert link
        assert wait_for_line(process, f"Teacher: {link[0]}#/rounds/class?class=")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        last = "Nothing was kept."
        if options:
            last = (
                f"The round is in {database}.\n"
                f"To look at it: ldprecover serve --database-url sqlite:///{database}"
            )
        assert (process.returncode, out, err) == (0, "", f"Stopped.\n{last}\n")
        assert_nothing_remains(temporary)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["class.db"]
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT name, state FROM rounds").fetchall() == [
            ("class", "closed")
        ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("class --question Which?", "give a file of answers and --question, or neither"),
        ("class --host school", "--host must be an IPv4 address, not 'school'"),
        ("class --host 0.0.0.0", "--host must be one address: phones are shown it"),
        ("class --keep old.db", "cannot write old.db: it exists; delete it, or name another file"),
        ("class --keep no/x.db", "cannot write no/x.db: there is no folder no"),
        ("class none.txt", "there is no file none.txt"),
        ("class one.txt --question Which?", "give at least two items, not 1"),
        ("survey one.txt --question Which?", "items must be at least two, not 1"),
        ("round open x --epsilon 1 --item tea", "give at least two items, not 1"),
        ("class two.txt --question ''", "--question must be a text of 1 to 300 characters"),
    ],
)
def test_rejects_what_cannot_be_served(run: Run, line: str, message: str) -> None:
    Path("old.db").touch()
    Path("one.txt").write_text("tea\n")
    Path("two.txt").write_text("tea\ncoffee\n")
    assert run(line).fails(2) == message


def test_taken_port_is_named(run: Run, nowhere: str) -> None:
    port = nowhere.rpartition(":")[2]
    result = run(f"class --host 127.0.0.1 --port {port}")
    assert result.code == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in result.err
