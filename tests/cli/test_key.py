"""`key` and `ticket`: made, listed, revoked, and what they let in."""

import stat
from pathlib import Path
from typing import Any

import pytest

DATABASE = "sqlite:///keys.db"


@pytest.fixture
def key(run: Any) -> Any:
    """Run a `key` command on a database of its own."""
    assert run("migrate", "--database-url", DATABASE).code == 0
    return lambda *arguments: run("key", *arguments, "--database-url", DATABASE)


def test_a_key_is_the_only_thing_on_standard_output_and_listed_without_itself(key: Any) -> None:
    made = key("create", "crowd", "--scope", "report")
    assert made.code == 0
    assert "A report key of" in made.err
    assert made.out.startswith("ldp-")
    assert made.out.count("\n") == 1
    other = key("create")
    assert other.out != made.out
    listed = key("list", "--json").json["keys"]
    assert {(k["scope"], k["revoked"]) for k in listed} == {("report", None), ("admin", None)}
    assert {k["name"] for k in listed} > {"crowd"}
    assert all(k["created"] for k in listed)
    shown = key("list").out
    assert "crowd" in shown
    assert made.out.strip() not in shown


def test_a_revoked_key_is_listed_as_such_and_revoked_once(key: Any) -> None:
    key("create", "crowd")
    assert key("revoke", "crowd").code == 0
    (listed,) = key("list", "--json").json["keys"]
    assert listed["revoked"] is not None
    again = key("revoke", "crowd")
    assert again.code == 1
    assert "crowd" in again.error


def test_a_key_goes_to_a_new_file_that_only_its_owner_reads(key: Any, tmp_path: Path) -> None:
    made = key("create", "--output", "secret.key")
    assert (made.code, made.out) == (0, "")
    file = tmp_path / "secret.key"
    assert file.read_text().startswith("ldp-")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text()
    assert key("create", "--output", "secret.key").code != 0
    assert file.read_text() == before
    assert len(key("list", "--json").json["keys"]) == 1


def test_a_key_that_cannot_be_made_leaves_no_file(key: Any, tmp_path: Path) -> None:
    key("create", "crowd")
    assert key("create", "crowd", "--output", "secret.key").code == 1
    assert not (tmp_path / "secret.key").exists()


@pytest.mark.parametrize(
    "arguments", [("create",), ("list",), ("list", "--json"), ("revoke", "crowd")], ids=" ".join
)
@pytest.mark.parametrize("empty", [False, True])
def test_where_no_database_is_none_is_made(
    run: Any, tmp_path: Path, arguments: tuple[str, ...], empty: bool
) -> None:
    if empty:
        (tmp_path / "ldprecover.db").touch()
    before = sorted(tmp_path.rglob("*"))
    result = run("key", *arguments)
    assert result.code == 2
    assert f"there is no database {tmp_path / 'ldprecover.db'}" in result.error
    for way in (
        "--database-url",
        "LDPRECOVER_DATABASE_URL",
        "ldprecover serve",
        "ldprecover migrate",
    ):
        assert way in result.error
    assert sorted(tmp_path.rglob("*")) == before
    assert not empty or (tmp_path / "ldprecover.db").stat().st_size == 0


def test_where_no_database_is_no_file_for_a_key_is_left(run: Any, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert run("key", "create", "--output", "secret.key").code == 2
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("arguments", [("No", "such"), ("Crowd",), ("-x",), ("--scope", "root")])
def test_names_and_scopes_that_cannot_be_are_refused(key: Any, arguments: tuple[str, ...]) -> None:
    assert key("create", *arguments).code == 2
    assert key("list", "--json").json == {"keys": []}


def test_tickets_are_minted_one_a_line_and_each_admits_one_report(
    on_server: Any, tmp_path: Path
) -> None:
    arguments = ("--epsilon", "1", "--item", "a", "--item", "b", "--access", "ticket", "--json")
    opened = on_server("round", "open", *arguments).json
    assert opened["access"] == "ticket"
    minted = on_server("ticket", "mint", opened["id"], "--count", "3")
    first, second, _ = minted.out.split()

    def report(ledger: str, *ticket: str) -> Any:
        return on_server(
            "report", "a", "--round", opened["id"], "--ledger", str(tmp_path / ledger), *ticket
        )

    assert report("one", "--ticket", first).code == 0
    assert report("two", "--ticket", second).code == 0
    assert "ldprecover ticket mint" in report("three").error
    assert report("four", "--ticket", "nonsense").code == 2
    reused = report("five", "--ticket", first)
    assert reused.code in (0, 1)  # a duplicate where chance made the same report, else refused
    assert on_server("frequencies", "--round", opened["id"], "--json").json["n"] == 2


def test_only_keys_that_are_sent_let_a_crowd_in(
    on_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = on_server(
        "round", "open", "--epsilon", "1", "--domain-size", "4", "--access", "key", "--json"
    ).json
    arguments = ("simulate", "--round", opened["id"], "--users", "50")
    assert on_server(*arguments).code == 0
    monkeypatch.delenv("LDPRECOVER_ADMIN_KEY")
    refused = on_server(*arguments)
    assert refused.code == 1
    assert "--key" in refused.err


def test_a_crowd_without_a_key_in_an_open_round_is_told_to_get_one(
    on_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are: more than a body without a key may be long, or fewer."""
    opened = on_server("round", "open", "--epsilon", "1", "--domain-size", "4", "--json").json
    monkeypatch.delenv("LDPRECOVER_ADMIN_KEY")
    for users in ("5", "5000"):
        refused = on_server("simulate", "--round", opened["id"], "--users", users)
        assert refused.code == 1
        assert "`ldprecover key create --scope report`" in refused.error
