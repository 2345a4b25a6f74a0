"""Opening, listing, showing, closing and deleting rounds on a real server."""

import io
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Terminal
from tests.conftest import ServerProcess, StartServer

from ldprecover_client import load_dataset
from ldprecover_client._httpx import httpx

FOUR = "--epsilon 1 --domain-size 4"


def test_a_round_is_opened_shown_listed_closed_and_deleted(on_server: Run, name: str) -> None:
    opened = on_server(f"round open {name} --epsilon 1 --item soup --item salad --json").json
    expected = {"name": name, "state": "open", "n": 0, "protocol": "grr"}
    assert opened | expected == opened
    assert opened["items"] == ["soup", "salad"]
    assert on_server(f"round show {name} --json").json == opened
    assert on_server("round show --json").json == opened  # it is the current one
    listed = on_server("round list --json").json["rounds"]
    assert listed[0] == {key: value for key, value in opened.items() if key != "items"}
    closed = on_server(f"round close {name} --json").json
    assert closed["state"] == "closed"
    assert closed["closed_at"] is not None
    assert on_server(f"round delete {name} --yes --json").json == {"deleted": opened["id"]}
    assert on_server(f"round show {name}").code == 1


def test_rounds_are_shown_as_text(
    on_server: Run, server: ServerProcess, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = on_server(f"round open {name} --epsilon 0.5 --protocol oue --dataset cities")
    assert opened.succeeds().out.splitlines() == [
        f"{name} is open: 102 items, oue, epsilon 0.5.",
        f"Survey: {server.url}/page/survey.html?round={name}",
        f"To answer it: ldprecover send value VALUE {name}",
        f"To see its results: ldprecover result frequencies {name}",
    ]
    shown = on_server("round show").succeeds()
    for word in (f"{name} (the current one)", "oue", "0.5", "102", "New York, NY; ", "(94 more)"):
        assert word in shown.out
    assert re.search(rf"^{name} +open ", on_server("round list").out, re.MULTILINE)
    monkeypatch.setenv("COLUMNS", "60")
    narrow = on_server("round list").out.splitlines()
    assert narrow[1].split() == [name, "open", "oue", "0.5", "102", "0"], (
        "whole, if beyond the edge"
    )
    assert narrow[-1] == "A wider terminal also shows the time of opening."
    assert on_server(f"round close {name}").out == f"{name} is closed, with 0 reports.\n"
    deleted = on_server(f"round delete {name} -y")
    assert deleted.out == f"Deleted {name} and its 0 reports.\n"


def test_texts_of_the_survey_are_shown(
    on_server: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    question = "What did you have for lunch, in one word, if you had any?"
    texts = ["--question", question, "--title", "Lunch", "--thanks", "Merci !", "--language", "fr"]
    opened = on_server(f"round open {name} {FOUR}", *texts).succeeds().out
    assert f"Question: {question}\n" in opened
    shown = on_server(f"round show {name} --json").json
    names = [each[2:] for each in texts[::2]]
    assert [shown[each] for each in names] == [question, *texts[3::2]]
    assert f"{question[:39]}…" in " ".join(on_server("round list").out.split())
    on_server(f"send value 2 {name}").succeeds()
    (entry,) = on_server("send ledger --json").json["reports"]
    assert entry["question"] == question
    assert "What did you have" in on_server("send ledger").out
    for command in ("frequencies", "recover"):
        assert f"Question: {question}\n" in on_server(f"result {command} {name}").out
    on_server(f"round export {name} -o {name}.json").succeeds()
    assert on_server(f"file recompute {name}.json").json["question"] == question
    assert on_server(f"round export {name}").json["question"] == question
    titled = on_server(f"round open {name}-t --epsilon 2.5 --domain-size 4 --title Lunchtime")
    assert "Surveys send no report above epsilon 2" in titled.err
    assert "Lunchtime" in on_server("round list").out
    on_server(f"send value 2 {name}-t --max-epsilon 3").succeeds()
    assert on_server("send ledger --json").json["reports"][1]["question"] == "Lunchtime"
    error = on_server(f"round open {FOUR}", "--question", " ").fails(2)
    assert "--question is blank" in error


def test_protocol_is_the_best_for_the_users_by_default(on_server: Run, name: str) -> None:
    opened = on_server(f"round open {name} {FOUR}").succeeds()
    assert opened.out.startswith(f"{name} is open: 4 items, grr (the best for 10,000 users), ")
    assert on_server(f"round show {name} --json").json["protocol"] == "grr"
    expected = on_server(f"round open {FOUR} --users 30").succeeds().err
    assert expected.startswith("With 30 people each share is ±")
    wide = "--epsilon 0.5 --domain-size 20000 --protocol auto --users 1000000"
    for retention, protocol in (("none", "llh"), ("forever", "olh")):
        answer = on_server(f"round open {wide} --retention {retention} --json").json
        assert answer["protocol"] == protocol


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--parameter hash_range=4", "hash_range is a parameter of one protocol: name that"),
        ("--protocol kue", "whose LDPRECOVER_PLUGINS names the plugin"),
        ("--protocol olh --users 5", "--users needs --protocol auto"),
        ("--column x", "--column belongs to --items or --dataset"),
        (
            "--parameter epsilon=4",
            "--parameter takes what one protocol has, as hash_range, not eps",
        ),
        ("--protocol olh --parameter hash_range=4_0", "hash_range must be an integer from 2 to"),
    ],
)
def test_rejects_options_that_do_not_fit(on_server: Run, options: str, message: str) -> None:
    assert message in on_server(f"round open {FOUR} {options}").fails(2)


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ("--epsilon 1", "give the items by one of"),
        ("--epsilon 1 --dataset no.csv", "there is no file no.csv"),
        ("--epsilon 1 --items tea,soup", "there is no file tea,soup: name single items by --item"),
        ("--epsilon 1 --items cut.txt", "cut.txt, line 2: the item holds a control character, U+"),
    ],
)
def test_error_begins_with_the_parameter(on_server: Run, options: str, start: str) -> None:
    Path("cut.txt").write_text("tea\nso\x85up\n", encoding="utf-8")
    assert on_server(f"round open {options}").fails(2).startswith(start)


def test_item_in_another_encoding_is_named(run: Run) -> None:
    error = run("round open --epsilon 1 --item tea --item", "caf\udce9").fails(2)
    assert error == "--item: item 1 holds half a surrogate pair, which UTF-8 cannot write"


def test_items_come_from_a_data_set_a_file_or_a_number(on_server: Run) -> None:
    Path("labels.txt").write_text("red\n  green, too \n\nblue\n", encoding="utf-8-sig")
    Path("people.csv").write_text("city,age\n" + 5 * "Rome,3\nOslo,4\nRome,5\n" + "Nice,6\n")
    Path("obst.csv").write_text("Nr;Name\n1;Äpfel\n2;Birnen, rot\n", encoding="cp1252")
    for options, items in (
        ("--items labels.txt", ["red", "green, too", "blue"]),
        ("--items obst.csv --column Name --encoding cp1252", ["Äpfel", "Birnen, rot"]),
        ("--dataset people.csv --column city", ["Oslo", "Rome"]),
        ("--dataset people.csv --column city --least 1", ["Nice", "Oslo", "Rome"]),
        ("--dataset fire", list(load_dataset("fire").items)),
        ("--domain-size 3", ["0", "1", "2"]),
    ):
        assert on_server(f"round open --epsilon 1 {options} --json").json["items"] == items


def test_misspelt_round_gets_close_matches(on_server: Run, name: str) -> None:
    on_server(f"round open {name} {FOUR}")
    for command in ("round show", "round close", "result frequencies", "sim users --users=1"):
        assert f"did you mean '{name}'" in on_server(f"{command} {name[:-1]}_").fails(1)


def test_list_of_a_file_is_confirmed_on_a_terminal(
    on_server: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("days.txt").write_text("Mon\nTue\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    line = "round open --epsilon 1 --items days.txt"
    for options, answer, code in (("", "n", 1), ("", "y", 0), ("--yes", "", 0), ("--json", "", 0)):
        monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
        ended = on_server(f"{line} {options}")
        assert (ended.code, "Open it?" in ended.err) == (code, not options)


def test_deleting_asks_first_and_needs_yes_without_a_terminal(
    on_server: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_server(f"round open {name} {FOUR}")
    for closed in (io.StringIO(""), None):
        monkeypatch.setattr("sys.stdin", closed)
        assert "--yes" in on_server(f"round delete {name}").fails(2)
    for answer, code, code_of_show in (("n", 1, 0), ("y", 0, 1)):
        monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
        assert on_server(f"round delete {name}").code == code
        assert on_server(f"round show {name}").code == code_of_show


@pytest.mark.parametrize("line", [f"round open {FOUR}", "send value a"])
@pytest.mark.parametrize("status", [404, 200])
def test_names_the_url_of_another_web_server(
    run: Run, monkeypatch: pytest.MonkeyPatch, line: str, status: int
) -> None:
    page = httpx.Response(status, html="<h1>")
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda *_: page)
    error = run(f"{line} --url http://127.0.0.1:1/page").fails(1)
    assert error.startswith("http://127.0.0.1:1/page: ")
    assert error.endswith("; check --url")
    words = "status 404 without a problem, so this is not an LDPRecover server"
    assert (words in error) is (status == 404)


@pytest.mark.parametrize("line", ["round list", "send value a"])
def test_unreachable_server_is_one_line_that_helps(
    run: Run, server: ServerProcess, nowhere: str, line: str
) -> None:
    tls = run(f"{line} --url {server.url.replace('http:', 'https:')}").fails(1)
    assert "http://" in tls
    assert "ldprecover serve" not in tls
    error = run(f"{line} --url {nowhere}").fails(1)
    assert nowhere in error
    assert "ldprecover serve" in error


def test_url_with_a_path_is_one_line(run: Run, server: ServerProcess) -> None:
    error = run(f"round list --url {server.url}/docs").fails(1)
    assert error.startswith("Path not found: GET /docs/rounds; check --url")


def test_empty_server_says_how_to_open_a_round(
    run: Run, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDPRECOVER_URL", start_server().url)
    assert "ldprecover round open" in run("round list").out
    assert "ldprecover round open" in run("result frequencies").fails(1)
