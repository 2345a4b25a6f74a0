"""Opening, listing, showing, closing and deleting rounds on a real server."""

import io
import uuid
from pathlib import Path
from typing import Any

import pytest

from ldprecover_client import load_dataset


@pytest.fixture
def name() -> str:
    return f"r{uuid.uuid4().hex}"


def test_a_round_s_life(on_server: Any, name: str) -> None:
    opened = on_server("round", "open", name, "--epsilon", "1", "--item", "soup", "--item", "salad", "--json").json
    assert (opened["name"], opened["state"], opened["n"], opened["protocol"]) == (name, "open", 0, "olh")
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


def test_a_round_s_life_in_words(on_server: Any, name: str) -> None:
    opened = on_server("round", "open", name, "--epsilon", "0.5", "--protocol", "oue", "--dataset", "cities")
    assert opened.code == 0
    for word in (name, "oue", "0.5", "102", "New York, NY", "(94 more)"):
        assert word in opened.out
    assert f"{name}  open" in on_server("round", "list").out
    assert "closed" in on_server("round", "close", name).out
    deleted = on_server("round", "delete", name, "-y")
    assert deleted.out == f"Deleted {name} and its 0 reports.\n"


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
        assert on_server("round", "open", "--epsilon", "1", *options, "--json").json["items"] == items


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
def test_items_from_nowhere_or_two_places_are_refused(on_server: Any, options: tuple[str, ...]) -> None:
    result = on_server("round", "open", "--epsilon", "1", *options)
    assert result.code == 2
    assert result.error


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("Capital", "--epsilon", "1", "--domain-size", "4"), "name"),
        (("--epsilon", "11", "--domain-size", "4"), "epsilon"),
        (("--epsilon", "1", "--domain-size", "1"), "domain_size"),
        (("--epsilon", "1", "--domain-size", "4", "--protocol", "grr", "--hash-range", "3"), "hash_range"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_server_refuses_is_said_in_one_line(on_server: Any, options: tuple[str, ...], word: str) -> None:
    result = on_server("round", "open", *options)
    assert result.code == 1
    assert word in result.error


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
    for arguments in (("round", "list"), ("frequencies",), ("recover",), ("simulate", "--users", "1")):
        result = run(*arguments, "--url", nowhere)
        assert result.code == 1
        assert nowhere in result.error
        assert "ldprecover serve" in result.error


def test_a_url_that_is_none_is_refused(run: Any) -> None:
    result = run("round", "list", "--url", "localhost:8000")
    assert result.code == 2
    assert "http://" in result.error


def test_an_empty_server_says_how_to_open_a_round(run: Any, start_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDPRECOVER_URL", start_server().url)
    assert "ldprecover round open" in run("round", "list").out
    nothing = run("frequencies")
    assert nothing.code == 1
    assert "ldprecover round open" in nothing.error
