"""Opening, listing, showing, closing and deleting rounds on a real server."""

import io
import re
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ldprecover_client import load_dataset


@pytest.fixture
def name() -> str:
    return f"r{uuid.uuid4().hex}"


def test_a_round_s_life(on_server: Any, name: str) -> None:
    opened = on_server(
        "round", "open", name, "--epsilon", "1", "--item", "soup", "--item", "salad", "--json"
    ).json
    assert (opened["name"], opened["state"], opened["n"], opened["protocol"]) == (
        name,
        "open",
        0,
        "olh",
    )
    assert opened["items"] == ["soup", "salad"]
    shown = on_server("round", "show", name, "--json").json
    assert shown == opened
    assert on_server("round", "show", "--json").json == opened  # it is the current one
    listed = on_server("round", "list", "--json").json["rounds"]
    assert listed[0] == {key: value for key, value in opened.items() if key != "items"}
    closed = on_server("round", "close", name, "--json").json
    assert closed["state"] == "closed"
    assert closed["closed_at"] is not None
    assert on_server("round", "delete", name, "--yes", "--json").json == {"deleted": opened["id"]}
    assert on_server("round", "show", name).code == 1


def test_a_round_s_life_in_words(
    on_server: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = on_server(
        "round", "open", name, "--epsilon", "0.5", "--protocol", "oue", "--dataset", "cities"
    )
    assert opened.code == 0
    for word in (name, "oue", "0.5", "102", "New York, NY", "(94 more)"):
        assert word in opened.out
    assert re.search(rf"^{name} +open ", on_server("round", "list").out, re.MULTILINE)
    monkeypatch.setenv("COLUMNS", "60")
    narrow = on_server("round", "list").out.splitlines()
    assert max(map(len, narrow)) <= 60
    assert narrow[1].startswith(name)
    assert narrow[-1] == "A wider terminal also shows the time of opening."
    assert "closed" in on_server("round", "close", name).out
    deleted = on_server("round", "delete", name, "-y")
    assert deleted.out == f"Deleted {name} and its 0 reports.\n"


def test_the_protocol_that_suits_a_round_is_chosen_and_said_why(on_server: Any, name: str) -> None:
    opened = on_server(
        "round", "open", name, "--epsilon", "1", "--domain-size", "4", "--protocol", "auto"
    )
    assert opened.code == 0
    title, _, best, *_ = opened.out.splitlines()
    assert title.rstrip() == "4 items, epsilon 1, 10,000 users: the first is the best"
    assert best.split() == ["grr", "±1.37", "points", "2.16", "points", "4", "none"]
    assert on_server("round", "show", name, "--json").json["protocol"] == "grr"
    wide = (
        "--epsilon",
        "0.5",
        "--domain-size",
        "20000",
        "--protocol",
        "auto",
        "--users",
        "1000000",
        "--json",
    )
    assert on_server("round", "open", *wide).json["protocol"] == "hr"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--protocol", "auto", "--hash-range", "4"),
            "hash_range is a parameter of one protocol: name that with --protocol",
        ),
        (
            ("--protocol", "auto", "--parameter", "keep=4"),
            "keep is a parameter of one protocol: name that with --protocol",
        ),
        (
            ("--protocol", "ss", "--parameter", "subset_size=3", "--subset-size", "3"),
            "subset_size either by --subset-size or",
        ),
        (
            ("--protocol", "ss", "--parameter", "dummies=3"),
            "--parameter dummies: no protocol of the server has this",
        ),
        (("--protocol", "ss", "--parameter", "dummies=3"), "; ss has subset_size"),
        (("--protocol", "grr", "--parameter", "dummies=3"), "; grr has none"),
        (("--protocol", "kue"), "with LDPRECOVER_PLUGINS naming the plugin"),
        (("--protocol", "kue", "--parameter", "dummies=3"), "--protocol: Input should be"),
        (("--protocol", "auto", "--users", "0"), "number of users"),
        (("--protocol", "olh", "--users", "5"), "--users needs --protocol auto"),
    ],
)
def test_what_does_not_go_with_a_choice_is_refused(
    on_server: Any, options: tuple[str, ...], said: str
) -> None:
    refused = on_server("round", "open", "--epsilon", "1", "--domain-size", "4", *options)
    assert refused.code == 2
    assert said in " ".join(refused.err.split())


def test_seeds_are_given_in_rounds_of_tickets(on_server: Any, name: str) -> None:
    given = ("--epsilon", "0.5", "--domain-size", "20", "--given-seeds")
    opened = on_server("round", "open", name, *given, "128", "--access", "ticket")
    assert opened.code == 0
    assert re.search(r"^given_seeds +128 *$", opened.out, re.MULTILINE)
    assert on_server("round", "show", name, "--json").json["given_seeds"] == 128
    (ticket,) = on_server("ticket", "mint", name, "--count", "1").out.split()
    assert on_server("report", "7", "--round", name, "--ticket", ticket).code == 0
    for options, said in (
        (("128",), "--given-seeds: tickets pick the seeds, so access must be 'ticket', not 'open'"),
        (
            ("128", "--access", "ticket", "--protocol", "oue"),
            "--given-seeds belongs to olh; oue has none",
        ),
    ):
        refused = on_server("round", "open", *given, *options)
        assert refused.code != 0
        assert said in " ".join(refused.err.split())


def test_the_series_is_shown_where_there_is_one(on_server: Any, name: str) -> None:
    opened = on_server(
        "round", "open", name, "--epsilon", "1", "--domain-size", "4", "--series", "weekly"
    )
    for shown in (opened, on_server("round", "show", name)):
        assert re.search(r"^series +weekly *$", shown.out, re.MULTILINE)
    assert on_server("round", "show", name, "--json").json["series"] == "weekly"
    alone = on_server("round", "open", "--epsilon", "1", "--domain-size", "4")
    assert alone.code == 0
    assert "series" not in alone.out
    assert on_server("round", "show", "--json").json["series"] is None


def test_a_round_may_have_canaries_and_a_quarantine(on_server: Any, name: str) -> None:
    opened = on_server(
        "round",
        "open",
        name,
        "--epsilon",
        "1",
        "--domain-size",
        "2",
        "--canaries",
        "2",
        "--quarantine",
    )
    for shown in (opened, on_server("round", "show", name)):
        assert re.search(r"^canaries +canary 1; canary 2 *$", shown.out, re.MULTILINE)
        assert "0 reports by their size; seeds are tested after closing" in " ".join(
            shown.out.split()
        )
    found = on_server("round", "show", name, "--json").json
    assert (found["canaries"], found["quarantine"], found["quarantined"]) == (
        [2, 3],
        True,
        {"sizes": 0, "seeds": None},
    )
    labelled = on_server(
        "round", "open", "--epsilon", "1", "--domain-size", "2", "--canary", "x", "--canary", "y"
    )
    assert re.search(r"^canaries +x; y *$", labelled.out, re.MULTILINE)
    assert "quarantine" not in labelled.out
    both = on_server(
        "round", "open", "--epsilon", "1", "--domain-size", "2", "--canary", "x", "--canaries", "1"
    )
    assert both.code == 2
    assert "either --canaries or --canary" in both.err
    said = on_server(
        "round", "open", "--epsilon", "1", "--domain-size", "4", "--protocol", "grr", "--quarantine"
    )
    assert said.code != 0
    assert "no size is impossible" in " ".join(said.err.split())


def test_items_may_come_from_a_data_set_a_file_or_a_number(on_server: Any, tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("red\n\n  green, too \nblue\n", encoding="utf-8-sig")
    people = tmp_path / "people.csv"
    people.write_text("city,age\nRome,3\nOslo,4\nRome,5\n")
    for options, items in (
        (("--items", str(labels)), ["red", "green, too", "blue"]),
        (("--dataset", str(people), "--column", "city"), ["Rome", "Oslo"]),
        (("--dataset", "fire"), list(load_dataset("fire").items)),
        (("--domain-size", "3"), ["0", "1", "2"]),
    ):
        assert (
            on_server("round", "open", "--epsilon", "1", *options, "--json").json["items"] == items
        )


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--item", "a", "--domain-size", "2"),
        ("--column", "x", "--domain-size", "2"),
        ("--dataset", "no.csv"),
        ("--items", "no.txt"),
        ("--dataset", "cities", "--column", "x"),
    ],
    ids=" ".join,
)
def test_items_from_nowhere_or_two_places_are_refused(
    on_server: Any, options: tuple[str, ...]
) -> None:
    result = on_server("round", "open", "--epsilon", "1", *options)
    assert result.code == 2
    assert result.error


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (
            ("Capital", "--epsilon", "1", "--domain-size", "4"),
            "NAME",
        ),
        (
            ("--epsilon", "1", "--domain-size", "4", "--series", "Bad Name"),
            "--series",
        ),
        (
            ("current", "--epsilon", "1", "--domain-size", "4"),
            "NAME: 'current'",
        ),
        (("--epsilon", "11", "--domain-size", "4"), "--epsilon"),
        (("--epsilon", "nan", "--domain-size", "4"), "--epsilon"),
        (
            ("--epsilon", "1", "--domain-size", "1"),
            "--domain-size",
        ),
        (("--epsilon", "1", "--item", "a"), "the items"),
        (
            ("--epsilon", "1", "--item", "a", "--item", ""),
            "the items: item 2",
        ),
        (("--epsilon", "1", "--item", "a", "--item", "a"), "the items must be distinct"),
        (
            ("--epsilon", "1", "--domain-size", "4", "--protocol", "grr", "--hash-range", "3"),
            "--hash-range",
        ),
        (
            ("--epsilon", "1", "--domain-size", "4", "--retention", "1w"),
            "--retention",
        ),
        (("--epsilon", "0", "--domain-size", "0"), "--epsilon"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_names_option_that_server_rejects(
    on_server: Any, options: tuple[str, ...], word: str
) -> None:
    result = on_server("round", "open", *options)
    assert result.code == 2
    assert result.error.startswith(word)


@pytest.mark.parametrize(
    ("given", "kept"),
    [((), "forever"), (("--retention", "none"), "none"), (("--retention", "48h"), "2d")],
)
def test_who_may_report_and_read_and_how_long_reports_are_kept_is_shown(
    on_server: Any, given: tuple[str, ...], kept: str
) -> None:
    access = ("--access", "key", "--read-access", "key")
    opened = on_server(
        "round", "open", "--epsilon", "1", "--domain-size", "4", *access, *given, "--json"
    ).json
    assert (opened["access"], opened["read_access"], opened["retention"]) == ("key", "key", kept)
    assert on_server("round", "list", "--json").json["rounds"][0]["retention"] == kept
    assert f"retention    {kept}" in on_server("round", "show", opened["id"]).out


def test_a_name_that_is_taken_is_refused(on_server: Any, name: str) -> None:
    arguments = ("round", "open", name, "--epsilon", "1", "--domain-size", "4")
    assert on_server(*arguments).code == 0
    assert name in on_server(*arguments).error


def test_a_misspelt_round_gets_its_close_matches(on_server: Any, name: str) -> None:
    on_server("round", "open", name, "--epsilon", "1", "--domain-size", "4")
    for command in (
        ("round", "show"),
        ("round", "close"),
        ("frequencies", "--round"),
        ("simulate", "--users=1", "--round"),
    ):
        result = on_server(*command, name[:-1] + "_")
        assert result.code == 1
        assert f"did you mean '{name}'" in result.error


def test_without_a_key_and_with_a_wrong_one_it_says_where_keys_are(
    on_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("round", "open", "--epsilon", "1", "--domain-size", "4")
    wrong = on_server(*arguments, "--key", "a-wrong-key-of-some-length")
    assert wrong.code == 1
    assert "does not know this key" in wrong.error
    assert "ldprecover key create" in wrong.error
    monkeypatch.delenv("LDPRECOVER_ADMIN_KEY")
    none = on_server(*arguments)
    assert none.code == 1
    assert "LDPRECOVER_ADMIN_KEY" in none.error
    assert "ldprecover key create" in none.error


def test_deleting_asks_first_and_without_a_terminal_refuses(
    on_server: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    on_server("round", "open", name, "--epsilon", "1", "--domain-size", "4")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    refused = on_server("round", "delete", name)
    assert refused.code == 2
    assert "--yes" in refused.error
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert on_server("round", "delete", name).code == 1
    assert on_server("round", "show", name).code == 0
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert on_server("round", "delete", name).code == 0
    assert on_server("round", "show", name).code == 1


def test_where_no_server_listens_it_says_how_to_start_one(run: Any, nowhere: str) -> None:
    for arguments in (
        ("round", "list"),
        ("frequencies",),
        ("recover",),
        ("simulate", "--users", "1"),
    ):
        result = run(*arguments, "--url", nowhere)
        assert result.code == 1
        assert nowhere in result.error
        assert "ldprecover serve" in result.error


class OtherServer(BaseHTTPRequestHandler):
    """Some web server that knows nothing of rounds, and has a page for everything below /page."""

    def do_GET(self) -> None:
        status = 200 if self.path.startswith("/page") else 404
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"<h1>")

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def other_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), OtherServer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


EVERY_CALL = [
    ("round", "list"),
    ("round", "open", "--epsilon", "1", "--domain-size", "4"),
    ("round", "show"),
    ("frequencies",),
    ("recover",),
    ("export",),
    ("report", "a"),
    ("simulate", "--users", "1"),
    ("attack", "rpa", "--users", "1"),
    ("ticket", "mint", "current", "--count", "1"),
    ("demo", "--part", "users"),
]


@pytest.mark.parametrize("arguments", EVERY_CALL, ids=" ".join)
@pytest.mark.parametrize(
    ("path", "said"),
    [("", "status 404 without a problem, so this is not an LDPRecover server"), ("/page", "")],
)
def test_another_web_server_is_one_line_that_names_the_url(
    run: Any, other_server: str, path: str, said: str, arguments: tuple[str, ...]
) -> None:
    url = other_server + path
    result = run(*arguments, "--url", url)
    assert result.code == 1
    assert result.error.startswith(f"{url}: ")
    assert said in result.error
    assert result.error.endswith("; check --url")


@pytest.mark.parametrize("arguments", EVERY_CALL, ids=" ".join)
def test_a_server_without_tls_asked_for_it_is_one_line(
    run: Any, server: Any, arguments: tuple[str, ...]
) -> None:
    result = run(*arguments, "--url", server.url.replace("http:", "https:"))
    assert result.code == 1
    assert "http://" in result.error
    assert "ldprecover serve" not in result.error


def test_a_path_behind_the_servers_address_is_one_line(run: Any, server: Any) -> None:
    result = run("round", "list", "--url", f"{server.url}/docs")
    assert result.code == 1
    assert result.error.startswith("Path not found: GET /docs/rounds; check --url")


def test_a_url_that_is_none_is_refused(run: Any) -> None:
    result = run("round", "list", "--url", "localhost:8000")
    assert result.code == 2
    assert "http://" in result.error


def test_an_empty_server_says_how_to_open_a_round(
    run: Any, start_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDPRECOVER_URL", start_server().url)
    assert "ldprecover round open" in run("round", "list").out
    nothing = run("frequencies")
    assert nothing.code == 1
    assert "ldprecover round open" in nothing.error
